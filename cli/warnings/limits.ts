import { formatDuration } from "../../src/config/duration.ts";
import { pathOf } from "../../src/config/faults.ts";
import type { Match } from "../../src/config/match.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import { placedRules } from "../../src/config/rules.ts";
import { formatPer, formatWindow } from "../../src/config/window.ts";
import { longestWindowMs } from "../../src/engine/counter.ts";
import { isLeasable } from "../../src/limiter/counters.ts";
import { keyPartName } from "../../src/request/identity.ts";
import { found, type LocalFinding } from "../finding.ts";
import { isCovered } from "./conditions.ts";

/** Warns of a ban that is over before the client's quota is whole again. */
export function banWarnings({ name, ban, windows }: Rule, place: string) {
  const longestMs = ban?.lengthsMs.at(-1);
  if (windows.length === 0) return [];
  const shortest = shortestOf(windows);
  if (longestMs === undefined || longestMs >= shortest.windowMs) return [];
  return [
    found(
      "ban-shorter-than-window",
      `${place}.ban`,
      `In the rule "${name}", a ban of ${formatDuration(longestMs / 1000)} usually ends before the window of ${formatWindow(shortest)}, so it changes little`,
      "Make the ban longer than the window, or remove it",
    ),
  ];
}

function shortestOf(windows: readonly Window[]): Window {
  return windows.reduce((one, other) => (other.windowMs < one.windowMs ? other : one));
}

/** In longer windows, less than one in so many requests comes late enough to wait for the next window. */
const MAX_WAITS_IN_WINDOW = 30;

/** Warns of a `wait` that is too short for hardly any request to reach the next window. */
export function waitWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, waitMs, tiers } = rule;
  if (waitMs === 0) return [];
  return windowsOf(rule).flatMap((group) => {
    if (
      group.some(({ concurrent }) => concurrent) ||
      group.every(({ limit, from }) => limit === 0 && !from)
    )
      return [];
    const shortest = shortestOf(group);
    if (shortest.windowMs <= MAX_WAITS_IN_WINDOW * waitMs) return [];
    const subject = tiers
      ? `For clients with the limit ${group.map(formatLimit).join(" and ")} in the rule`
      : "In the rule";
    const wait = formatDuration(waitMs / 1000);
    const text = `${subject} "${name}", only requests in the last ${wait} of a window of ${formatWindow(shortest)} can wait, and all others get 429 at once`;
    const cure = "Write a shorter window with a lower limit, or remove wait";
    return [found("wait-has-little-effect", `${place}.wait`, text, cure)];
  });
}

/** Matches names of rules under which one request more is a guess or a payment more. */
const EXACT_NAMES = /login|password|token|(?:^|[-_])(?:t?otp|pay(?!load))/;
/** Below this limit, one request more for each isolate is much. */
const FEW_REQUESTS = 10;

/** Warns of `async` where one request above the limit matters, and of `async` under which no request can pass ahead. */
export function asyncWarnings(
  rule: Rule,
  place: string,
  { enforced, caseSensitive }: { enforced: readonly Rule[]; caseSensitive: boolean },
): LocalFinding[] {
  const { name } = rule;
  if (!rule.async) return [];
  const waiting = enforced.find(
    (other) => !other.async && needsStore(other) && isCovered(rule, [other], caseSensitive),
  );
  if (waiting) {
    const text = `No request passes ahead under the rule "${name}", because the rule "${waiting.name}" counts all of them too, and waits for the store`;
    const cure = `Leave these requests out of the rule "${waiting.name}", write async: true into it too, or remove it here`;
    return [found("async-has-no-effect", `${place}.async`, text, cure)];
  }
  const isLow = windowsOf(rule)
    .flat()
    .some(({ limit, from }) => limit > 0 && limit < FEW_REQUESTS && !from);
  if (!isLow && !EXACT_NAMES.test(name)) return [];
  const text = `With async, the rule "${name}" lets one request more for each isolate pass in a window`;
  const cure = "Remove async, so that every request waits for the store's decision";
  return [found("async-exceeds-limit", `${place}.async`, text, cure)];
}

/** Whether every request under a rule waits for the store, because no isolate can have its quota in advance. */
function needsStore(rule: Rule): boolean {
  if (rule.exempt) return false;
  return windowsOf(rule).every((windows) =>
    windows.some((each) => each.concurrent || !isLeasable(rule, each)),
  );
}

/** Returns the windows of a rule, and those of each tier. */
function windowsOf({ windows, tiers }: Rule): readonly (readonly Window[])[] {
  return [windows, ...(tiers?.windows.values() ?? [])];
}

/**
 * Whether a limit can never deny a request, because another limit for the same requests denies earlier. The
 * calculation is exact if windows begin at the same time. Otherwise, the result may be false for a limit that never
 * denies.
 *
 * @param spread whether each client's windows begin at a time of their own
 */
export function neverBinds(idle: Window, other: Window, spread: boolean): boolean {
  // Reservations in the idle limit may use up quota of a window before it begins.
  if (idle.maxReserved > 0) return false;
  // An interval of a sliding window may begin at any time, and counts its oldest sub-window whole.
  const oldestMs = idle.sliding === undefined ? 0 : idle.windowMs / idle.sliding;
  const [length, otherLength] = [longestWindowMs(idle) + oldestMs, shortestWindowMs(other)];
  // The starts of the two windows differ by a multiple of the greatest common divisor of their lengths. With spread or
  // calendar windows, the starts can differ by any number of milliseconds.
  const isAligned = !spread && !idle.calendar && !other.calendar && oldestMs === 0;
  const step = isAligned ? gcd(length, otherLength) : 1;
  const isSame = idle.calendar !== undefined && idle.calendar.id === other.calendar?.id;
  const overlapping = isSame ? 1 : Math.ceil((length + otherLength - step) / otherLength);
  // The first overlapping window may begin with saved quota, and the last one may have reservations.
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
export function unusedLimitWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, spread } = rule;
  return windowsOf(rule).flatMap((group, index) =>
    group.flatMap((idle) => {
      // Each client may have other numbers than the defaults.
      const isConstant = (each: Window) => each !== idle && !each.from && !idle.from;
      const other = group.find((each) => isConstant(each) && neverBinds(idle, each, spread));
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

/** Formats a limit: `33 per 1m`, or `custom:quota per 1m`. */
export function formatLimit(window: Window): string {
  const source = window.from?.limit?.from;
  return `${source ? keyPartName(source) : window.limit} ${formatPer(window)}`;
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

/** Warns of a limit of 0 for everybody. */
export function zeroLimitWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, windows, mode, tiers, exempt } = rule;
  const zero = windows.findIndex(({ limit, from }) => limit === 0 && !from);
  if (zero === -1 || rule.for === "programs") return [];
  // A rule with tiers or exemptions admits some clients on purpose.
  if (mode !== "enforce" || !matchesEverybody(rule.match) || tiers || exempt) return [];
  return [
    found(
      "denies-everybody",
      windows.length === 1 ? `${place}.limit` : `${place}.limits[${zero}].limit`,
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
 * Whether a number in a configuration was probably meant in milliseconds, as in `window: 60000`. Weir reads numbers
 * as seconds. So a number is suspicious if it is an unusual length of time in seconds (60000 s are 16 h 40 min) and a
 * usual one in milliseconds (60000 ms are one minute). A number that is usual in both units (18000 s are five hours)
 * or in none is not suspicious.
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

/** Matches the path of a rule's field, or of an element of its list, with a length of time. */
const LENGTHS =
  /\.(?:window|maxDuration|retryJitter|ban|ban\.lengths|ban\.forgetAfter)(?:\[\d+\])?$/;

/**
 * Warnings about lengths of time that were probably meant in milliseconds.
 *
 * @param input the valid argument of `defineConfig`, which shows whether a length is a number or a text
 */
export function millisecondWarnings(input: unknown): LocalFinding[] {
  return placedRules(recordOf(input)).flatMap(({ rule, path }) =>
    [...numbersIn(rule, pathOf(path))]
      .filter(([place, value]) => LENGTHS.test(place) && isProbablyMilliseconds(value))
      .map(([place, value]) =>
        found(
          "milliseconds",
          place,
          `${value} is a number of seconds, so this time is ${formatDuration(value)}`,
          `If you mean ${value} milliseconds, write "${formatDuration(value / 1000)}". If you mean seconds, write "${value}s"`,
        ),
      ),
  );
}

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

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
