import { type Counter, MAX_COUNT, type Ring, type Row, windowAt, windowStart } from "./counter.ts";

// Sliding windows: a limit for every interval of a length, whenever it begins. The length is divided into `n`
// sub-windows, and each is counted like a fixed window. An interval that ends now lies in the current sub-window and in
// the `n` before it. So a request is admitted only if the counts of all `n + 1`, the oldest one whole, leave quota for
// its cost. A client that sends evenly is never denied up to `n / (n + 1)` of its limit.

/** A counter of sub-windows. `windowMs` is the length of one of them. */
export type SlidingCounter = Counter & { readonly subWindows: number };

export function countsSubWindows<Each extends Counter>(
  counter: Each,
): counter is Each & SlidingCounter {
  return counter.subWindows !== undefined;
}

/**
 * Returns the quota for each interval up to which a client that sends evenly is never denied, rounded down: below 100, to
 * a tenth.
 */
export function evenQuota(limit: number, subWindows: number): number {
  const unit = limit < 100 ? 10 : 1;
  return (limit * unit - Math.ceil((limit * unit) / (subWindows + 1))) / unit;
}

/** Returns the counts that still count at a time, from a stored row or from earlier counts. */
export function ringAt(counter: SlidingCounter, row: Ring | Row | undefined, now: number): Ring {
  const { index } = windowAt(now, counter);
  // The window never goes back. Otherwise a clock that is set back would grant a window's quota twice.
  const window = Math.max(index, row?.window ?? index);
  const passed = row ? window - row.window : 0;
  const counts = Array.from(
    { length: counter.subWindows + 1 },
    (_, age) => (age < passed ? undefined : row?.counts?.[age - passed]) ?? 0,
  );
  return { window, counts };
}

/** Returns the sum of all counts. */
export function totalOf({ counts }: Ring): number {
  return Math.min(
    MAX_COUNT,
    counts.reduce((sum, count) => sum + count, 0),
  );
}

/**
 * Returns the counts after a charge, or after a refund if the cost is negative. A count stays from 0 to `MAX_COUNT`.
 *
 * @param chargedIn the sub-window of the cost, which changes no count if it no longer counts. Without it, the current
 * sub-window is charged, and a refund is taken from the newest counts
 */
export function withCharge(ring: Ring, cost: number, chargedIn?: number): Ring {
  const { window, counts } = ring;
  let left = Math.min(cost, MAX_COUNT - totalOf(ring));
  const isMeant = (age: number) =>
    chargedIn === undefined ? cost < 0 || age === 0 : age === window - chargedIn;
  const changed = counts.map((count, age) => {
    const change = isMeant(age) ? Math.max(-count, left) : 0;
    left -= change;
    return count + change;
  });
  return { window, counts: changed };
}

/**
 * Returns the time at which a part of the counted quota is free again, in milliseconds since the Unix epoch.
 *
 * @param quota the part; the time at which all is free if it is more than the total
 */
export function freeAt(counter: SlidingCounter, { window, counts }: Ring, quota: number): number {
  let free = 0;
  let age = counts.length;
  while (age > 0 && free < quota) {
    age -= 1;
    free += counts[age] as number;
  }
  return windowStart(counter, window + counts.length - age);
}

/** Returns the quota that requests get until a time if they take all of it as soon as it is free. */
export function quotaUntil(counter: SlidingCounter, ring: Ring, time: number): number {
  const { window, counts } = ring;
  const passed = Math.max(0, windowAt(time, counter).index - window);
  // What is taken now is free again when as many sub-windows have passed as are counted.
  const times = 1 + Math.floor(passed / counts.length);
  const left = counts.slice(0, counts.length - (passed % counts.length));
  return times * counter.limit - totalOf({ window, counts: left });
}

/** Returns the fields of a tally for these counts. */
export function countedIn(counter: SlidingCounter, ring: Ring, now: number) {
  return {
    ring,
    count: totalOf(ring),
    resetMs: Math.min(MAX_COUNT, freeAt(counter, ring, 1) - now),
  };
}
