// The fixed-window counter. No clock, no I/O, no `this`: `now` is always passed in.
// The Lua script in stores/fixed-window-script.ts is its twin; one suite holds both to one result.
//
// Policy: a request is admitted if and only if every counter has room for its cost. Then every
// counter is charged; otherwise none is, so a denied request never consumes quota.

/** One quota of one client, as a store is asked about it. */
export interface Counter {
  /** Names the counter, but for its window: `prefix:rule:window:identity`. */
  readonly key: string;
  /** The part of the key that says who is counted. */
  readonly identity: string;
  /** Quota of a window. */
  readonly limit: number;
  readonly windowMs: number;
  /** Where windows begin: whole windows after this many milliseconds past the Unix epoch. */
  readonly offsetMs: number;
  /** Quota that this request takes. */
  readonly cost: number;
}

/** What a decision left of a counter. */
export interface Tally {
  /** Quota used in the current window, this request's cost included if it was charged. */
  readonly count: number;
  /** Milliseconds until the current window ends, more than 0. */
  readonly resetMs: number;
}

/** Counters that are charged all together or not at all, and what became of them. */
export interface GroupVerdict {
  readonly admitted: boolean;
  /** One for each counter, in their order. */
  readonly tallies: readonly Tally[];
}

/** How long after its window's end a counter is kept, for clocks that disagree a little. */
export const EXPIRY_GRACE_MS = 1000;

/** The window that a moment falls into: W = ⌊(now − offset) / length⌋, until (W + 1)·length + offset. */
export function windowAt(
  now: number,
  { windowMs, offsetMs }: Pick<Counter, "windowMs" | "offsetMs">,
): { index: number; endsAt: number } {
  const index = Math.floor((now - offsetMs) / windowMs);
  return { index, endsAt: (index + 1) * windowMs + offsetMs };
}

/** What a counter is stored as in one window: `prefix:rule:window:identity:W`. */
export function storedKey(counter: Counter, now: number): string {
  return `${counter.key}:${windowAt(now, counter).index}`;
}

export function hasRoom({ limit, cost }: Counter, count: number): boolean {
  return count + cost <= limit;
}

/**
 * Decides a group of counters.
 *
 * @param counts the quota used of each, in the window that `now` falls into
 * @param now milliseconds since the Unix epoch
 */
export function decideGroup(
  counters: readonly Counter[],
  counts: readonly number[],
  now: number,
): GroupVerdict {
  const admitted = counters.every((counter, index) => hasRoom(counter, counts[index] as number));
  const tallies = counters.map((counter, index) => ({
    count: (counts[index] as number) + (admitted ? counter.cost : 0),
    resetMs: windowAt(now, counter).endsAt - now,
  }));
  return { admitted, tallies };
}
