import type { Counter, GroupVerdict, Tally, UnusedQuota } from "../engine/counter.ts";

/** A store's answer: a verdict for each group, and the time at which the store decided. */
export interface Verdict {
  /** Milliseconds since the Unix epoch, by the clock that determines the windows. */
  readonly now: number;
  readonly groups: readonly GroupAnswer[];
}

/** The verdict on one group. */
export interface GroupAnswer extends Omit<GroupVerdict, "tallies"> {
  /** Whether caches must ignore the answer: it came from a cache, or may change at any moment. */
  readonly skipCache?: boolean;
  /** Whether counts may still decrease, because charges of other requests may be returned. */
  readonly isProvisional?: boolean;
  /**
   * Present only for a shadow group that is decided separately from the enforced groups: resolves to a
   * verdict on this group alone, or rejects with a `StoreError` if it cannot be decided. An answer with
   * `later` has no tallies, and its `admitted` has no meaning.
   */
  readonly later?: Promise<Verdict>;
  /**
   * One for each counter, in the group's order. A denial may have `undefined` for a counter whose state
   * was not read. It has the tally of at least one counter that denied.
   */
  readonly tallies: readonly (Tally | undefined)[];
}

/**
 * Stores counters and decides on them.
 *
 * - **Atomic.** A group is charged as a whole or not at all, and no other decision sees an intermediate
 *   state. Groups are independent: each rule in shadow mode is a group of its own.
 * - **Shadow groups do no harm.** If a shadow group fails beside enforced groups, its answer has
 *   `later`. Enforced groups do not wait for one that is stored elsewhere.
 * - **Exact.** A decision never raises a count above the counter's ceiling, under any concurrency.
 * - **Own clock**, unless the caller passes `now`: then the caller's clock determines the windows. Both
 *   count milliseconds since the Unix epoch.
 * - **A denial is not an error.** A store throws a `StoreError` only if it could not do its work. The
 *   work may have been done all the same, so callers must not repeat the call.
 * - Keys arrive hashed, so a store may keep and show them.
 *
 * test/suite/ tests all of this for every store; its README shows how to run it for a new one.
 */
export interface Store {
  /**
   * Decides groups of counters.
   *
   * @param groups each has at least one counter; a key occurs only once in all of them
   * @param unused quota to return before the decision. A failed return is ignored: the quota stays
   * charged, which never admits a request too many
   */
  decide(
    groups: readonly (readonly Counter[])[],
    now?: number,
    unused?: readonly UnusedQuota[],
  ): Promise<Verdict>;

  /**
   * Adds each counter's cost whether or not quota is left, or subtracts a negative cost: the actual
   * cost of a response, and refunds. A count stays between 0 and 2^53 − 1.
   *
   * @returns the state of each counter afterwards
   */
  adjust(counters: readonly Counter[], now?: number): Promise<readonly Tally[]>;

  /** Removes the counters' counts of the current window, and their bans. */
  reset(counters: readonly Counter[], now?: number): Promise<void>;
}
