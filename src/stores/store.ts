import type { Counter, GroupVerdict, Tally, UnusedQuota } from "../engine/counter.ts";

/** What a store answers: a verdict for each group, and the time by which it decided. */
export interface Verdict {
  /** Milliseconds since the Unix epoch, by the clock that placed the windows. */
  readonly now: number;
  readonly groups: readonly GroupAnswer[];
}

/** A verdict; of a denial that is told from memory, only as much as is known. */
export interface GroupAnswer extends Omit<GroupVerdict, "tallies"> {
  /** Whether it is told from memory, or may soon be otherwise: there is nothing to be learnt of it. */
  readonly skipCache?: boolean;
  /** Of a denial: others are being decided, and counts that have room may yet turn out to be less. */
  readonly isProvisional?: boolean;
  /**
   * Of a shadow group that is not decided with the others: what comes of it, a verdict on this group
   * alone. It rejects with a `StoreError` when the group cannot be decided. Until then there are no
   * tallies, and `admitted` means nothing.
   */
  readonly later?: Promise<Verdict>;
  /** One for each counter, in their order. Of one at least that had no room, if any had none. */
  readonly tallies: readonly (Tally | undefined)[];
}

/**
 * Where counters live.
 *
 * - **Atomic.** A group is charged as a whole or not at all, and no two decisions see a counter
 *   between. Groups are independent of each other: a rule in shadow mode is one of its own.
 * - **Shadow groups do no harm.** Beside enforced groups, one that fails is reported as `later`, and
 *   one that lives elsewhere is not waited for.
 * - **Exact.** A decision never takes a counter above its ceiling, under any concurrency.
 * - **Its own clock**, unless `now` is given: milliseconds since the Unix epoch, where the caller's
 *   clock is to place the windows.
 * - **Over the limit is no error.** A store throws a `StoreError` only when it cannot do what it
 *   was asked; that may then have been done or not, so nobody asks again.
 * - Keys arrive hashed: a store may keep and show them.
 */
export interface Store {
  /**
   * @param groups of at least one counter each; a key stands only once among them
   * @param unused given back before anything is decided. Its loss is not told: quota that nobody
   * uses is no request too many
   */
  decide(
    groups: readonly (readonly Counter[])[],
    now?: number,
    unused?: readonly UnusedQuota[],
  ): Promise<Verdict>;

  /**
   * Adds each counter's cost without asking for room, or takes a negative one off: what a response
   * turned out to cost, and refunds. A count stays from 0 to 2^53 − 1.
   *
   * @returns what was left of each counter
   */
  adjust(counters: readonly Counter[], now?: number): Promise<readonly Tally[]>;

  /** Makes clients new to these counters: nothing used in the current window, and no ban. */
  reset(counters: readonly Counter[], now?: number): Promise<void>;
}
