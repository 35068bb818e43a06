import type { Counter, GroupVerdict, Tally, UnusedQuota } from "../engine/counter.ts";

/** A store's answer: a verdict for each group, and the time at which the store decided. */
export interface Verdict {
  /** Milliseconds since the Unix epoch, by the clock that determines the windows. */
  readonly now: number;
  readonly groups: readonly GroupAnswer[];
  /**
   * Whether the enforced groups were decided from memory, without a call over a network. In a call
   * without enforced groups, this concerns the groups with the next role: see `decisiveRole`.
   */
  readonly fromMemory?: boolean;
}

/** The verdict on one group. */
export interface GroupAnswer extends Omit<GroupVerdict, "tallies"> {
  /** Whether caches must ignore the answer, because it came from a cache or may change soon. */
  readonly skipCache?: boolean;
  /**
   * Whether counts may still decrease, because charges of requests that are still being decided may
   * be returned.
   */
  readonly isProvisional?: boolean;
  /**
   * Whether a dependent group was not decided, because an enforced group of the call was denied.
   * Such an answer has no tallies.
   */
  readonly isSkipped?: boolean;
  /**
   * Present only for a shadow or dependent group that is decided separately from the enforced
   * groups. It resolves to a verdict on this group alone, or rejects with a `StoreError` if the
   * group cannot be decided. An answer with `later` has no tallies, and its `admitted` has no
   * meaning.
   */
  readonly later?: Promise<Verdict>;
  /**
   * One tally for each counter, in the group's order. In a denial, the tally is `undefined` for
   * each counter whose state was not read. At least one counter that denied the group has a tally.
   */
  readonly tallies: readonly (Tally | undefined)[];
}

/**
 * Stores counters, and decides groups of them.
 *
 * - **Atomic.** A group is charged as a whole or not at all, and no other decision sees an
 *   intermediate state. Each rule in shadow mode and each rule with the mode `mark` is a group of
 *   its own. All groups except the dependent ones are independent of each other.
 * - **Dependent groups.** A dependent group (`Counter.dependent`) is charged only if the enforced
 *   groups of the call are admitted and all of its own counters have quota left. If an enforced
 *   group is denied, the answer for the dependent group has `isSkipped`. In a call without enforced
 *   groups, a dependent group is decided like an enforced one. In each call, the dependent groups
 *   come after the enforced groups.
 * - **Shadow and dependent groups do no harm.** If such a group fails in a call with enforced
 *   groups, its answer has `later`. Enforced groups do not wait for a shadow or dependent group
 *   that is stored elsewhere.
 * - **Exact.** A decision never raises a count above the counter's ceiling, under any concurrency.
 * - **Own clock.** The store's clock determines the windows. If the caller passes `now`, the
 *   caller's clock determines them. Both clocks count milliseconds since the Unix epoch.
 * - **A denial is not an error.** A store throws a `StoreError` only if a call failed. A failed
 *   call may have charged counters, so callers must not repeat it.
 * - **Keys are not secret.** Keys contain only hashes of clients' values, so a store may keep and
 *   show keys.
 *
 * test/suite/ tests all of this for every store. Its README shows how to run the tests for a new
 * store.
 */
export interface Store {
  /**
   * Decides groups of counters.
   *
   * @param groups each group has at least one counter. Each key occurs only once in all groups
   * @param unused quota to return before the decision. If a return fails, the failure is ignored.
   * The quota then stays charged, so no limit is exceeded
   */
  decide(
    groups: readonly (readonly Counter[])[],
    now?: number,
    unused?: readonly UnusedQuota[],
  ): Promise<Verdict>;

  /**
   * Denies a group from this isolate's memory if `decide` would certainly deny it. Makes no call and
   * charges nothing. So a request can be denied before the rest of it is read.
   *
   * A store that remembers nothing lacks this method.
   *
   * @returns undefined if only `decide` can tell
   */
  readonly denialOf?: (group: readonly Counter[], now?: number) => Verdict | undefined;

  /**
   * Adds each counter's cost to its count, even if no quota is left. This method charges the actual
   * cost of a response. A negative cost is a refund and lowers the count. A count stays between 0
   * and 2^53 − 1.
   *
   * @returns the new state of each counter
   */
  adjust(counters: readonly Counter[], now?: number): Promise<readonly Tally[]>;

  /**
   * Removes the counters' counts of the current window, their bans and their strikes. Keeps the count of
   * a counter with `keepsCount`.
   */
  reset(counters: readonly Counter[], now?: number): Promise<void>;
}
