import type { Counter, Tally, UnusedQuota } from "../../engine/counter.ts";
import type { Answer, Group, Store } from "../store.ts";
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

  /** Decides groups in one call. Every group must have a counter with a `request`. */
  decide(
    groups: readonly GroupPlan[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): Promise<Answer>[] {
    const requests = groups.map((plans) => plans.flatMap(({ request }) => request ?? []));
    const { clockSteps } = this.#book;
    const sentAt = Date.now();
    const answers = this.#store.decide(requests, now, unused);
    return answers.map(async (answered, index) => {
      const plans = groups[index] as GroupPlan;
      const blocks = pendingBlocksOf(plans);
      try {
        const answer = await answered;
        this.#isAnswering = true;
        setPendingUntil(blocks, 0);
        const answeredAt = Date.now();
        const isGiven = now !== undefined;
        if (!isGiven) this.#book.observe(answeredAt);
        const call = { sentAt, answeredAt, decidedAt: answer.now, isGiven, clockSteps };
        this.#record(plans, answer, call);
        return answer;
      } catch (error) {
        // A group in another mode may be stored elsewhere, and says nothing about the other groups.
        if (index === 0) this.#isAnswering = false;
        setLost(blocks, now);
        throw error;
      }
    });
  }

  /**
   * Adjusts counters. The unspent quota of their leases is returned first, so that the store's
   * counts contain only used quota.
   */
  adjust(
    counters: Group,
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): Promise<readonly Tally[]> {
    const drained = this.#book.drain(counters, now ?? Date.now());
    return this.#store.adjust(counters, now, [...unused, ...drained]);
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
    const calls = this.decide(groups, now, this.#book.takeReturns(time));
    // A failure is ignored, because the next decision that needs the store reports it.
    this.#options.background(Promise.allSettled(calls));
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

  #record(plans: GroupPlan, answer: Answer, call: LeaseCall): void {
    const tallies = answer.tallies.values();
    for (const plan of plans) {
      const { lease, request } = plan;
      if (!request) continue;
      const tally = tallies.next().value;
      if (!lease || !tally || tally.isUncertain) continue;
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
