import { faultText } from "./faults.ts";
import { type LiteralUnion, parsed } from "./fields.ts";

/** The length of each unit, in seconds, longest first. */
const SECONDS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;

/** The maximum length of time, in seconds: 52 weeks. The store may keep a counter for this time. */
export const MAX_WINDOW_SECONDS = 52 * SECONDS.w;

/**
 * A length of time: a whole number and a unit, or a number of whole seconds. It must be at least 1
 * second and at most 52 weeks.
 *
 * The units are `s` (seconds), `m` (minutes), `h` (hours), `d` (days of 24 hours) and `w` (weeks).
 *
 * @example "10s", "15m", "1h", "1d", "1w", 90
 */
export type DurationInput = number | LiteralUnion<"10s" | "1m" | "1h" | "1d" | "1w">;

/** The allowed lengths of time, for messages. */
export const DURATION = faultText(
  () =>
    `"10s", "1m", "1h", "1d", "1w" or a number of whole seconds, at most 52 weeks (${MAX_WINDOW_SECONDS})`,
);

/**
 * Parses a length of time.
 *
 * @returns whole seconds from 1 to {@link MAX_WINDOW_SECONDS}; undefined for any other value
 */
export function parseDuration(given: unknown): number | undefined {
  return durationUpTo(MAX_WINDOW_SECONDS, given);
}

/** Parses a length of time of at most `max` seconds. @returns whole seconds; undefined for any other value */
export function durationUpTo(max: number, given: unknown): number | undefined {
  const seconds = typeof given === "string" ? secondsOf(given) : given;
  const isValid =
    typeof seconds === "number" && Number.isInteger(seconds) && seconds >= 1 && seconds <= max;
  return isValid ? seconds : undefined;
}

function secondsOf(text: string): number {
  const [, count, unit] = /^(\d{1,8})([smhdw])$/.exec(text) ?? [];
  return unit === undefined ? Number.NaN : Number(count) * SECONDS[unit as keyof typeof SECONDS];
}

/** Formats a length of time in the longest unit that divides it: 60 → `"1m"`, 90 → `"90s"`. */
export function formatDuration(seconds: number): string {
  for (const [unit, length] of Object.entries(SECONDS)) {
    if (seconds % length === 0) return `${seconds / length}${unit}`;
  }
  return `${seconds}s`;
}

/** A length of time. The output is in seconds. */
export const Duration = parsed<string | number, number>(parseDuration, DURATION);
