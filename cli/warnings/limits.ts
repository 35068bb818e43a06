import type { Rule, Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/windows.ts";
import { longestWindowMs } from "../../src/engine/counter.ts";
import type { LocalFinding } from "../finding.ts";
import { banWarnings } from "./bans.ts";

/** Findings about the limits of one rule. */
export function limitFindings(rule: Rule, place: string): LocalFinding[] {
  return [...unusedLimits(rule, place), ...banWarnings(rule, place)];
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

function unusedLimits({ name, windows, tiers, spread }: Rule, place: string): LocalFinding[] {
  const groups = [windows, ...(tiers?.windows.values() ?? [])];
  return groups.flatMap((group, index) =>
    group.flatMap((idle) => {
      const other = group.find((each) => each !== idle && neverBinds(idle, each, spread));
      if (!other || other.limit === 0) return [];
      const where = index === 0 ? `${place}.limits` : `${place}.tiers.limits`;
      return [
        {
          code: "limit-never-binds",
          severity: "warning",
          path: `${where}[${group.indexOf(idle)}]`.replace(/tiers\.limits\[\d+\]/, "tiers.limits"),
          message: `In the rule "${name}", the limit ${formatLimit(idle)} denies no request, because ${formatLimit(other)} denies earlier`,
          cure: `Make the first limit lower or the second one higher, or remove ${formatLimit(idle)}`,
        },
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
