import { offsetAt } from "../../src/config/calendar.ts";
import { pathOf } from "../../src/config/faults.ts";
import type { Match } from "../../src/config/match.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { placedRules } from "../../src/config/rules.ts";
import { formatDuration, formatWindow } from "../../src/config/window.ts";
import { longestWindowMs } from "../../src/engine/counter.ts";
import { found, type LocalFinding } from "../finding.ts";

/** Warnings about the bans of one rule. */
export function* banWarnings(rule: Rule, place: string): Iterable<LocalFinding> {
  const { name, banMs, escalation, windows, tiers } = rule;
  if (banMs === undefined) return;
  const path = `${place}.ban`;
  const allWindows = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const [ownShortest, shortest] = [shortestOf(windows), shortestOf(allWindows)];
  const longestMs = escalation?.lengthsMs.at(-1) ?? banMs;
  if (allWindows.every(({ limit }) => limit === 0)) {
    yield found(
      "ban-without-limit",
      path,
      `In the rule "${name}", no ban starts, because a limit of 0 starts no ban`,
      "Remove ban: the rule denies every request that it matches anyway",
    );
    return;
  }
  if (longestMs < ownShortest.windowMs) {
    yield found(
      "ban-shorter-than-window",
      path,
      `In the rule "${name}", a ban of ${formatMs(longestMs)} usually ends before the window of ${formatWindow(ownShortest)}, so it changes little`,
      "Make the ban longer than the window, or remove it",
    );
  }
  if (!escalation) return;
  if (longestMs === banMs) {
    yield found(
      "ban-lengths-equal",
      path,
      `In the rule "${name}", all bans last ${formatMs(banMs)}, so no ban is longer than the one before it`,
      `Write ban: "${formatMs(banMs)}", or make the later lengths longer`,
    );
  }
  if (escalation.forgetAfterMs < shortest.windowMs) {
    yield found(
      "ban-forgotten-soon",
      path,
      `In the rule "${name}", strikes are forgotten ${formatMs(escalation.forgetAfterMs)} after a ban, which is less than the window of ${formatWindow(shortest)}. So most bans have the first length`,
      "Set forgetAfter to at least the length of the window",
    );
  }
}

function shortestOf(windows: readonly Window[]): Window {
  return windows.reduce((one, other) => (other.windowMs < one.windowMs ? other : one));
}

function formatMs(ms: number): string {
  return formatDuration(ms / 1000);
}

/**
 * Whether a limit can never deny a request, because another limit for the same requests denies earlier.
 * The calculation is exact if windows begin at the same time. Otherwise the result is true only if it
 * is certain.
 *
 * @param spread whether each client's windows begin at a time of their own
 */
export function neverBinds(idle: Window, other: Window, spread: boolean): boolean {
  // Reservations in the idle limit may use up quota of a window before it begins.
  if (idle.maxReserved > 0) return false;
  const [length, otherLength] = [longestWindowMs(idle), shortestWindowMs(other)];
  // The starts of the two windows differ by a multiple of the greatest common divisor of their
  // lengths. With spread windows and calendar windows, they can differ by any number of
  // milliseconds.
  const step = spread || idle.calendar || other.calendar ? 1 : gcd(length, otherLength);
  const isSame = idle.calendar !== undefined && idle.calendar.id === other.calendar?.id;
  const overlapping = isSame ? 1 : Math.ceil((length + otherLength - step) / otherLength);
  // The first overlapping window may begin with saved quota, and the last one may reserve some.
  const admitted =
    BigInt(other.capacity) +
    BigInt(overlapping - 1) * BigInt(other.limit) +
    BigInt(other.maxReserved);
  return admitted <= BigInt(idle.limit);
}

/**
 * The minimum length of a window in milliseconds. A change of the clocks can make a calendar window
 * shorter.
 */
function shortestWindowMs({ windowMs, calendar }: Window): number {
  return calendar ? SHORTEST_HOURS[calendar.unit] * 3_600_000 : windowMs;
}

const SHORTEST_HOURS = { day: 20, week: 6 * 24, month: 27 * 24, year: 364 * 24 };

/** Warns of each limit that denies no request, because another limit of the rule denies earlier. */
export function unusedLimitWarnings(
  { name, windows, tiers, spread }: Rule,
  place: string,
): LocalFinding[] {
  const groups = [windows, ...(tiers?.windows.values() ?? [])];
  return groups.flatMap((group, index) =>
    group.flatMap((idle) => {
      const other = group.find((each) => each !== idle && neverBinds(idle, each, spread));
      if (!other || other.limit === 0) return [];
      const where = index === 0 ? `${place}.limits` : `${place}.tiers.limits`;
      return [
        found(
          "limit-never-binds",
          `${where}[${group.indexOf(idle)}]`.replace(/tiers\.limits\[\d+\]/, "tiers.limits"),
          `In the rule "${name}", the limit ${formatLimit(idle)} denies no request, because ${formatLimit(other)} denies earlier`,
          `Make the first limit lower or the second one higher, or remove ${formatLimit(idle)}`,
        ),
      ];
    }),
  );
}

/** Formats a limit: `33 per 1m`. */
export function formatLimit(window: Window): string {
  return `${window.limit} per ${formatWindow(window)}`;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Warnings about one rule whose limit is 0. */
export function zeroLimitWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, windows, cost, mode, tiers, exempt } = rule;
  const zero = windows.findIndex(({ limit }) => limit === 0);
  if (zero === -1 || rule.for === "programs") return [];
  const path = windows.length === 1 ? `${place}.limit` : `${place}.limits[${zero}].limit`;
  if (cost === 0) {
    return [
      found(
        "zero-cost-of-zero-limit",
        `${place}.cost`,
        `The rule "${name}" denies no request, because a request with cost: 0 passes even with limit: 0`,
        "Remove cost, if the rule shall deny every request that it matches",
      ),
    ];
  }
  // If some clients have a tier or an exemption, the rule admits these clients on purpose.
  if (mode !== "enforce" || !matchesEverybody(rule.match) || tiers || exempt) return [];
  return [
    found(
      "denies-everybody",
      path,
      `The rule "${name}" denies every request that it matches, because its limit is 0`,
      "Write match with the clients or paths to deny, or a limit above 0",
    ),
  ];
}

/** Whether a rule matches all requests, or all requests over IPv4 or over IPv6. */
function matchesEverybody({ ips, paths, ...others }: Match): boolean {
  return (
    Object.values(others).every((condition) => condition === undefined) &&
    (!paths || paths.some((path) => /^\/?\*$/.test(path))) &&
    (!ips || [...ips].some(([, bits]) => bits === 0))
  );
}

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/**
 * Whether a number in a configuration was probably meant in milliseconds, as in `window: 60000`. Weir
 * reads numbers as seconds. So a number is suspicious if it is an unusual length of time in seconds
 * (60000 s are 16 h 40 min) and a usual one in milliseconds (60000 ms are one minute). It is not
 * suspicious if it is usual in both units (18000 s are five hours) or in none.
 *
 * @param value a number of whole seconds, as Weir reads it
 */
export function isProbablyMilliseconds(value: number): boolean {
  return value % 1000 === 0 && !isUsual(value) && isUsual(value / 1000);
}

/** Whether people choose this length of time for a limit. */
function isUsual(seconds: number): boolean {
  const minutes = seconds / MINUTE;
  const hours = seconds / HOUR;
  const days = seconds / DAY;
  return (
    // Up to a minute, any number of seconds; then halves of a minute up to five minutes.
    seconds <= MINUTE ||
    (seconds % 30 === 0 && minutes <= 5) ||
    // Whole minutes up to two hours, and whole hours up to a day.
    (Number.isInteger(minutes) && hours <= 2) ||
    (Number.isInteger(hours) && days <= 1) ||
    // Whole days up to a month, and whole weeks and months of 30 days.
    (Number.isInteger(days) && (days <= 31 || days % 7 === 0 || days % 30 === 0))
  );
}

/** The fields of a rule with lengths of time, and the lists in such a field. */
const LENGTHS = /\.(?:window|retryJitter|ban|ban\.lengths|ban\.forgetAfter)(?:\[\d+\])?$/;

/**
 * Warnings about lengths of time that were probably meant in milliseconds.
 *
 * @param input the argument of `defineConfig`, which shows whether a length is a number or a text.
 *   Weir has accepted it
 */
export function millisecondWarnings(input: unknown): LocalFinding[] {
  return placedRules(recordOf(input)).flatMap(({ rule, path }) =>
    [...numbersIn(rule, pathOf(path))]
      .filter(([place, value]) => LENGTHS.test(place) && isProbablyMilliseconds(value))
      .map(([place, value]) =>
        found(
          "milliseconds",
          place,
          `${value} is a number of seconds, so this time is ${longForm(value)}`,
          `If you mean ${value} milliseconds, write "${formatDuration(value / 1000)}". If you mean seconds, write "${value}s"`,
        ),
      ),
  );
}

/** Returns all numbers in a value with their paths. */
function* numbersIn(value: unknown, place: string): Iterable<[place: string, value: number]> {
  if (typeof value === "number") yield [place, value];
  const isList = Array.isArray(value);
  for (const [index, [name, inner]] of Object.entries(recordOf(value)).entries()) {
    // The names of tiers may be credentials, so the path does not contain them.
    const isTier = place.endsWith(".tiers.limits");
    const key = isTier ? `["(tier ${index + 1})"]` : isList ? `[${name}]` : `.${name}`;
    yield* numbersIn(inner, `${place}${key}`);
  }
}

/** Formats a length of time for readers: `16 h 40 min`. */
function longForm(seconds: number): string {
  const parts = [
    [Math.floor(seconds / DAY), "days"],
    [Math.floor((seconds % DAY) / HOUR), "h"],
    [Math.floor((seconds % HOUR) / MINUTE), "min"],
    [seconds % MINUTE, "s"],
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** Abbreviations that are names of time zones, and a place with this time in winter. */
const ABBREVIATIONS: ReadonlyMap<string, string> = new Map([
  ["EST", "America/New_York"],
  ["MST", "America/Denver"],
  ["CET", "Europe/Berlin"],
  ["MET", "Europe/Berlin"],
  ["EET", "Europe/Athens"],
  ["WET", "Europe/Lisbon"],
]);

/** A time in winter and a time in summer. These zones have the same offsets in every year. */
const WINTER = Date.UTC(2026, 0, 1);
const SUMMER = Date.UTC(2026, 6, 1);

/** Warns of time zones that are valid, but have another offset than their names suggest. */
export function timeZoneWarnings({ name, windows, tiers }: Rule, place: string): LocalFinding[] {
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const timeZone = all.find(({ calendar }) => calendar)?.calendar?.timeZone ?? "UTC";
  const path = `${place}.timeZone`;
  const [, sign, hours] = /^Etc\/GMT([+-])0?([1-9]\d?)$/i.exec(timeZone) ?? [];
  if (sign !== undefined) {
    const opposite = `Etc/GMT${sign === "+" ? "-" : "+"}${hours}`;
    return [
      found(
        "inverted-time-zone",
        path,
        `The windows of the rule "${name}" begin in ${offsetOf(timeZone)}, because the signs in names such as ${timeZone} are inverted`,
        `Write the name of a place, such as "Europe/Berlin", or "${opposite}" if you mean UTC${sign}${hours}`,
      ),
    ];
  }
  const city = ABBREVIATIONS.get(timeZone.toUpperCase());
  // Some runtimes take such a name for the name of a place that has summer time.
  if (city === undefined || offsetAt(timeZone, WINTER) !== offsetAt(timeZone, SUMMER)) return [];
  return [
    found(
      "fixed-time-zone",
      path,
      `The windows of the rule "${name}" begin in ${offsetOf(timeZone)} all year, because ${timeZone} has no summer time`,
      `Write the name of a place, such as "${city}"`,
    ),
  ];
}

/** Returns an offset from UTC in whole hours, such as `UTC-5`. */
function offsetOf(timeZone: string): string {
  const hours = offsetAt(timeZone, WINTER) / 3_600_000;
  return `UTC${hours < 0 ? "-" : "+"}${Math.abs(hours)}`;
}
