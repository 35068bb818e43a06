import { formatDuration } from "../../src/config/duration.ts";
import { pathOf } from "../../src/config/faults.ts";
import { placedRules } from "../../src/config/rules.ts";
import type { LocalFinding } from "../finding.ts";

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

/** A length of time in the input of `defineConfig`. */
interface Length {
  readonly path: string;
  readonly value: unknown;
}

/**
 * Warnings about lengths of time that were probably meant in milliseconds.
 *
 * @param input the argument of `defineConfig`, which shows whether a length is a number or a text.
 *   Weir has accepted it
 */
export function millisecondWarnings(input: unknown): LocalFinding[] {
  return lengthsIn(input).flatMap(({ path, value }) => {
    if (typeof value !== "number" || !isProbablyMilliseconds(value)) return [];
    return [
      {
        code: "milliseconds",
        severity: "warning",
        path,
        message: `${value} is a number of seconds, so this time is ${longForm(value)}`,
        cure: `If you mean ${value} milliseconds, write "${formatDuration(value / 1000)}". If you mean seconds, write "${value}s"`,
      },
    ];
  });
}

function lengthsIn(input: unknown): Length[] {
  return placedRules(recordOf(input)).flatMap(({ rule, path }) => {
    const place = pathOf(path.map(({ key }) => key));
    const { ban, retryJitter, tiers } = recordOf(rule);
    const tierLimits = Object.values(recordOf(recordOf(tiers).limits));
    return [
      ...windowsIn(rule, place),
      ...bansIn(ban, `${place}.ban`),
      { path: `${place}.retryJitter`, value: retryJitter },
      // The names of tiers may be credentials, so the path does not contain them.
      ...tierLimits.flatMap((tier, position) =>
        windowsIn(tier, `${place}.tiers.limits["(tier ${position + 1})"]`),
      ),
    ];
  });
}

function bansIn(ban: unknown, place: string): Length[] {
  if (Array.isArray(ban)) return ban.map((value, index) => ({ path: `${place}[${index}]`, value }));
  const { lengths, forgetAfter } = recordOf(ban);
  if (!Array.isArray(lengths)) return [{ path: place, value: ban }];
  return [
    ...bansIn(lengths, `${place}.lengths`),
    { path: `${place}.forgetAfter`, value: forgetAfter },
  ];
}

function windowsIn(limited: unknown, place: string): Length[] {
  const { window, limits } = recordOf(limited);
  return [
    { path: `${place}.window`, value: window },
    ...listOf(limits).map((each, index) => ({
      path: `${place}.limits[${index}].window`,
      value: recordOf(each).window,
    })),
  ];
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

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
