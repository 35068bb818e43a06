import type { Counter, Tally, UnusedQuota } from "../../engine/counter.ts";
import { Deadline, withDeadline } from "../deadline.ts";
import type { GroupAnswer, Store, Verdict } from "../store.ts";
import { StoreError } from "../store-error.ts";
import type { Lease } from "./lease.ts";
import type { LeaseBook, LeaseCall } from "./lease-book.ts";
import { type GroupPlan, unspentChargeOf } from "./lease-plan.ts";
import { blockOf, refillDemand } from "./lease-size.ts";

/**
 * The time in milliseconds for which a counter requests no new block after the answer to its call
 * for a block was lost.
 */
const LOST_BLOCK_MS = 10_000;

export interface LeaseCallOptions {
  /** The deadline of a call, in milliseconds. A block that arrives later counts as lost. */
  readonly timeoutMs: number;
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
}

/** A block that a call requests. */
interface PendingBlock {
  readonly lease: Lease;
  /** The value of `refillPendingUntil` that this call has set in the lease. */
  readonly pendingUntil: number;
}

/** Calls the store, requests blocks, and records the answers in the leases. */
export class LeaseCalls {
  readonly #store: Store;
  readonly #book: LeaseBook;
  readonly #options: LeaseCallOptions;
  /**
   * Whether the last call was answered. If not, calls request no blocks, because a block is lost if
   * the answer to its call is lost.
   */
  #isAnswering = true;

  constructor(store: Store, book: LeaseBook, options: LeaseCallOptions) {
    this.#store = store;
    this.#book = book;
    this.#options = options;
  }

  /**
   * Decides groups in one call. Every group must have a counter with a `request`.
   *
   * @param timeLeftMs the deadline in milliseconds, if it is shorter than the store's own
   */
  async decide(
    groups: readonly GroupPlan[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    timeLeftMs?: number,
  ): Promise<Verdict> {
    const requests = groups.map((plans) => plans.flatMap(({ request }) => request ?? []));
    const blocks = groups.map(pendingBlocksOf);
    const { clockSteps } = this.#book;
    const sentAt = Date.now();
    let verdict: Verdict;
    try {
      const store = timeLeftMs === undefined ? this.#store : withDeadline(this.#store, timeLeftMs);
      verdict = await store.decide(requests, now, unused);
    } catch (error) {
      this.#isAnswering = false;
      setLost(blocks.flat(), now);
      throw error;
    }
    this.#isAnswering = true;
    const isGiven = now !== undefined;
    const callAt = (decidedAt: number): LeaseCall => {
      const answeredAt = Date.now();
      if (!isGiven) this.#book.observe(answeredAt);
      return { sentAt, answeredAt, decidedAt, isGiven, clockSteps };
    };
    for (const [index, answer] of verdict.groups.entries()) {
      const plans = groups[index] as GroupPlan;
      const ownBlocks = blocks[index] as PendingBlock[];
      const record = (own: GroupAnswer, decidedAt: number) => {
        setPendingUntil(ownBlocks, 0);
        this.#record(plans, own, callAt(decidedAt));
      };
      if (!answer.later) record(answer, verdict.now);
      else {
        answer.later.then(
          (late) => record(late.groups[0] as GroupAnswer, late.now),
          () => setLost(ownBlocks, now),
        );
      }
    }
    return verdict;
  }

  /**
   * Adjusts counters. The unspent quota of their leases is returned first, so that the store's
   * counts contain only used quota.
   *
   * @throws {StoreError} ("timeout") if both calls in total take longer than the deadline
   */
  async adjust(counters: readonly Counter[], now: number | undefined): Promise<readonly Tally[]> {
    const { timeoutMs } = this.#options;
    const unused = this.#book.drain(counters, now ?? Date.now());
    if (unused.length === 0) return this.#store.adjust(counters, now);
    const deadline = new Deadline(timeoutMs, () => {});
    await this.#store.decide([], now, unused).finally(() => deadline.clear());
    const { timeLeftMs } = deadline;
    if (timeLeftMs <= 0) throw new StoreError("timeout", "no time was left to adjust a counter");
    return withDeadline(this.#store, timeLeftMs).adjust(counters, now);
  }

  /** Fetches blocks in the background for leases that will soon be used up at the current rate. */
  refill(plans: GroupPlan, now: number | undefined, time: number): void {
    if (!this.#isAnswering) return;
    let groups: GroupPlan[] | undefined;
    for (const { lease, counter } of plans) {
      if (!lease || counter.checkOnly || counter.cost === 0) continue;
      const demand = refillDemand(lease, time);
      if (demand < 1 || lease.quota >= demand * counter.cost) continue;
      const request = this.requestBlock(lease, counter, time);
      if (!request) continue;
      groups ??= [];
      groups.push([{ counter, lease, request, isRefill: true }]);
    }
    if (!groups) return;
    const call = this.decide(groups, now, this.#book.takeReturns(time));
    // A failure is ignored, because the next decision that needs the store reports it.
    this.#options.background(call.catch(() => {}));
  }

  /**
   * Adds a block to a counter's request, and marks the block as pending in the lease.
   *
   * @returns undefined if no block larger than the cost is due
   */
  requestBlock(lease: Lease, counter: Counter, now: number): Counter | undefined {
    const block = this.#isAnswering ? blockOf(lease, counter, now) : 0;
    if (block <= counter.cost) return undefined;
    lease.refillPendingUntil = now + this.#options.timeoutMs;
    return { ...counter, block };
  }

  #record(plans: GroupPlan, answer: GroupAnswer, call: LeaseCall): void {
    if (answer.skipCache) return;
    const tallies = answer.tallies.values();
    for (const plan of plans) {
      const { lease, request } = plan;
      if (!request) continue;
      const tally = tallies.next().value;
      if (!lease || !tally) continue;
      const quota = answer.admitted ? unspentChargeOf(plan, tally) : 0;
      this.#book.record(lease, request, tally, call, quota);
    }
  }
}

function pendingBlocksOf(plans: GroupPlan): PendingBlock[] {
  return plans.flatMap(({ lease, request }) => {
    return lease && request?.block !== undefined
      ? [{ lease, pendingUntil: lease.refillPendingUntil }]
      : [];
  });
}

/**
 * Notes that the answer to a call for blocks was lost. The store may have charged the blocks, so
 * their counters request no block for a while. Otherwise, a store whose answers are lost would
 * charge more and more blocks.
 */
function setLost(blocks: readonly PendingBlock[], now = Date.now()): void {
  setPendingUntil(blocks, now + LOST_BLOCK_MS);
}

/** @param until the new value of `refillPendingUntil`; 0 if the blocks have arrived */
function setPendingUntil(blocks: readonly PendingBlock[], until: number): void {
  for (const { lease, pendingUntil } of blocks) {
    // If this block has counted as lost meanwhile, the lease may already wait for a newer block.
    // The time of that newer block must stay.
    if (lease.refillPendingUntil === pendingUntil) lease.refillPendingUntil = until;
  }
}
