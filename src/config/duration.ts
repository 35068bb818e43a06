/** Seconds in one of each unit that a window may be written in, largest first. */
const SECONDS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;

/** The longest window, in seconds: 52 weeks. Stored counters live that long. */
export const MAX_WINDOW_SECONDS = 52 * SECONDS.w;

/**
 * Reads a window's length.
 *
 * @param text a number of whole seconds, or a count and a unit: `"10s"`, `"1m"`, `"1h"`, `"1d"`, `"1w"`
 * @returns whole seconds from 1 to {@link MAX_WINDOW_SECONDS}, or undefined when it is none of these
 */
export function parseDuration(text: string | number): number | undefined {
  const seconds = typeof text === "number" ? text : secondsOf(text);
  return Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_WINDOW_SECONDS
    ? seconds
    : undefined;
}

function secondsOf(text: string): number {
  const [, count, unit] = /^(\d{1,8})([smhdw])$/.exec(text) ?? [];
  return unit === undefined ? Number.NaN : Number(count) * SECONDS[unit as keyof typeof SECONDS];
}

/** Writes a window's length in the largest unit that divides it: 60 → `"1m"`, 90 → `"90s"`. */
export function formatDuration(seconds: number): string {
  for (const [unit, length] of Object.entries(SECONDS)) {
    if (seconds % length === 0) return `${seconds / length}${unit}`;
  }
  return `${seconds}s`;
}
