import type {
  Adjustment,
  Counter,
  Demand,
  GroupVerdict,
  Removal,
  Tally,
  UnusedQuota,
} from "../engine/counter.ts";

/**
 * The reason why a store could not decide.
 *
 * - `timeout`: no answer within the deadline
 * - `unreachable`: no connection, or the connection broke
 * - `error-reply`: the store answered with an error, for example because of a wrong token, an
 *   exhausted quota of the database, or a failed script
 * - `invalid-reply`: the store's answer does not have the expected form
 * - `memory-full`: the store has no space for a new counter
 * - `circuit-open`: the store has failed several times in a row, so Weir did not call it
 * - `abandoned`: the store has failed several times in a row, so Weir stopped waiting for the answer to this call. The
 *   store may still carry it out
 * - `misconfigured`: the store could not be created
 */
export type StoreFailure = (typeof STORE_FAILURES)[number];

export const STORE_FAILURES = [
  "timeout",
  "unreachable",
  "error-reply",
  "invalid-reply",
  "memory-full",
  "circuit-open",
  "abandoned",
  "misconfigured",
] as const;

/** The failures of calls that were not made, or that have changed nothing. */
const WITHOUT_EFFECT: readonly StoreFailure[] = ["circuit-open", "misconfigured", "memory-full"];

/** Whether a store may carry out a failed call all the same, or has carried it out. */
export function mayBeCarriedOut(error: unknown): boolean {
  return !(error instanceof StoreError && WITHOUT_EFFECT.includes(error.failure));
}

/** Thrown by a store that could not decide. The message contains neither keys nor secrets. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly failure: StoreFailure;
  /** Whether the call missed its deadline because the isolate was busy. The store may be healthy. */
  readonly wasBusy: boolean;

  constructor(failure: StoreFailure, detail: string, { wasBusy = false } = {}) {
    super(detail);
    this.failure = failure;
    this.wasBusy = wasBusy;
  }
}

/** Counters that are charged together or not at all. */
export type Group = readonly Demand[];

/** The answer for one group. */
export interface Answer extends Omit<GroupVerdict, "tallies"> {
  /** Milliseconds since the Unix epoch, by the clock that determines the windows. */
  readonly now: number;
  /**
   * One tally for each counter, in the group's order. In a denial, the tally is `undefined` for
   * each counter whose state was not read. At least one counter that denied the group has a tally.
   */
  readonly tallies: readonly (Tally | undefined)[];
  /** Whether the group was decided from memory, without a call over a network. */
  readonly fromMemory?: boolean;
  /** Whether slots of the denied group may still be taken, because a call has failed or is late. */
  readonly mayHold?: boolean;
}

/** What an isolate's memory knows of a group: see `Store.stateOf`. */
export interface KnownState {
  /** Whether `decide` would admit the group without a call. */
  readonly isCovered: boolean;
  /** The state of each counter after the group; undefined if it is unknown. Other isolates may have used quota since. */
  readonly tallies: readonly (Tally | undefined)[];
}

/**
 * Stores counters, and decides groups of them.
 *
 * - **Atomic.** A group is charged as a whole or not at all, and no other decision sees an intermediate state.
 * - **Independent groups.** Each group has its own promise, and is decided whatever becomes of the others. A group
 *   that fails or is slow affects no other group.
 * - **Exact.** A decision never raises a count above the counter's ceiling, under any concurrency.
 * - **Own clock.** The store's clock determines the windows, unless the caller passes `now`. All times are
 *   milliseconds since the Unix epoch.
 * - **A denial is not an error.** A promise rejects with a `StoreError` only if a call failed. A failed call may have
 *   charged counters, so callers must not repeat it.
 * - **Keys are not secret.** Keys contain only hashes of clients' values, so a store may keep and show keys.
 *
 * The tests in test/suite/ check these promises for every store. test/suite/README.md shows how to test a new store.
 */
export interface Store {
  /**
   * Decides groups of counters. Never throws.
   *
   * @param groups each group has at least one counter. Each key occurs only once in all groups
   * @param unused quota to return before the decision. If a return fails, the failure is ignored.
   * The quota then stays charged, so no limit is exceeded
   * @returns a promise for each group
   */
  decide(
    groups: readonly Group[],
    now?: number,
    unused?: readonly UnusedQuota[],
  ): readonly Promise<Answer>[];

  /**
   * Denies a group from this isolate's memory if `decide` would certainly deny it. Makes no call and charges
   * nothing. So a request can be denied before its body is read. A store without such a memory lacks this method.
   *
   * @returns undefined if only `decide` can tell
   */
  readonly denialOf?: (group: Group, now?: number) => Answer | undefined;

  /**
   * Returns what this isolate's memory knows of a group. A store without such a memory lacks this method.
   */
  readonly stateOf?: (group: Group, now?: number) => KnownState;

  /**
   * Adds each counter's cost to its count, even if no quota is left, because a response's actual cost may exceed
   * the quota. A negative cost is a refund and lowers the count. A count stays between 0 and 2^53 − 1.
   *
   * @param unused quota to return first: see `decide`
   * @returns the new state of each counter
   */
  adjust(
    counters: readonly Adjustment[],
    now?: number,
    unused?: readonly UnusedQuota[],
  ): Promise<readonly Tally[]>;

  /**
   * Removes the counters' counts of the current window, their bans and their strikes. Keeps the count of
   * a counter with `keepsCount`.
   */
  reset(counters: readonly Removal[], now?: number): Promise<void>;
}

/** Whether a group belongs to a rule in another mode than `enforce`. Such a group must not harm other groups. */
export function isOptional(group: readonly Counter[]): boolean {
  const [first] = group;
  return first?.shadow === true || first?.marks === true;
}
