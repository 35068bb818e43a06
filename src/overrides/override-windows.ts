import { MAX_LIMIT } from "../config/limits.ts";
import type { Window } from "../config/rule.ts";

/** The largest factor of an override. */
export const MAX_FACTOR = 1000;

/**
 * Returns the windows with all limits multiplied by a factor and rounded down.
 *
 * A limit of 1 or more stays at least 1, so that a small factor never closes a rule by accident. A factor
 * of 0 makes all limits 0, which denies every request that costs something.
 */
export function scaledWindows(windows: readonly Window[], factor: number): readonly Window[] {
  return windows.map((window) => {
    const least = factor > 0 && window.limit > 0 ? 1 : 0;
    return withLimit(window, Math.max(least, scaled(window.limit, factor)));
  });
}

/** Returns the windows with other limits. @param limits the limits, by the names of their policies */
export function limitedWindows(
  windows: readonly Window[],
  limits: Readonly<Record<string, number>>,
): readonly Window[] {
  return windows.map((window) => {
    const limit = Object.hasOwn(limits, window.policy) ? limits[window.policy] : undefined;
    return limit === undefined ? window : withLimit(window, limit);
  });
}

/** Returns the windows without any quota. */
export function emptyWindows(windows: readonly Window[]): readonly Window[] {
  return windows.map((window) => withLimit(window, 0));
}

/**
 * Returns a window with another limit. `capacity` and `maxReserved` change in the same proportion.
 *
 * If quota rolls over or can be reserved, this stays so unless the limit is 0. Otherwise the window would
 * have another counter in the store, which would lack the quota that the client has used.
 */
function withLimit(window: Window, given: number): Window {
  if (given === 0) return { ...window, limit: 0, capacity: 0, maxReserved: 0 };
  const { capacity, maxReserved } = window;
  const rollsOver = capacity > window.limit;
  const limit = Math.min(given, rollsOver ? MAX_LIMIT - 1 : MAX_LIMIT);
  const factor = window.limit === 0 ? 1 : limit / window.limit;
  return {
    ...window,
    limit,
    capacity: rollsOver ? Math.max(limit + 1, scaled(capacity, factor)) : limit,
    maxReserved: maxReserved > 0 ? Math.max(1, scaled(maxReserved, factor)) : 0,
  };
}

/**
 * Multiplies a quota, and rounds it down. Floating-point errors are removed first, so that 100 × 0.29 is
 * 29 and not 28.
 */
function scaled(quota: number, factor: number): number {
  return Math.min(MAX_LIMIT, Math.floor(Number((quota * factor).toPrecision(15))));
}
