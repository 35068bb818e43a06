import type { Counter, GroupVerdict } from "../engine/fixed-window.ts";

/** What a store answers: a verdict for each group, and the time by which it decided. */
export interface Verdict {
  /** Milliseconds since the Unix epoch, by the clock that placed the windows. */
  readonly now: number;
  readonly groups: readonly GroupVerdict[];
}

/**
 * Where counters live.
 *
 * - **Atomic.** A group is charged as a whole or not at all, and no two decisions see a counter
 *   between. Groups are independent of each other: a rule in shadow mode is one of its own.
 * - **Exact.** A window never admits more than its limit, under any concurrency.
 * - **Its own clock**, unless `now` is given.
 * - **Over the limit is no error.** A store throws a `StoreError` only when it cannot decide; what
 *   it was asked may then have been charged or not, so nobody asks again.
 * - Keys arrive hashed: a store may keep and show them.
 */
export interface Store {
  /**
   * @param groups at least one, of at least one counter each; a key stands only once among them
   * @param now milliseconds since the Unix epoch, where the caller's clock is to place the windows
   */
  decide(groups: readonly (readonly Counter[])[], now?: number): Promise<Verdict>;
}
