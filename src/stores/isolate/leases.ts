import type { Adjustment, Demand, Removal, Tally, UnusedQuota } from "../../engine/counter.ts";
import { inTime } from "../deadline.ts";
import { type Answer, type Group, isDependent, type Store, skipped } from "../store.ts";
import { availableQuota, type Lease, LeaseBook, type LeaseCall } from "./lease-book.ts";
import {
  answerOf,
  blockOf,
  type CounterPlan,
  clockOffsetOf,
  expectedRequests,
  type GroupPlan,
  isCoveredByNow,
  needsStore,
  planCounter,
  unspentChargeOf,
} from "./lease-plan.ts";

/**
 * The time in milliseconds for which a counter requests no new block after the answer to its call
 * for a block was lost.
 */
const LOST_BLOCK_MS = 10_000;

interface LeaseCallOptions {
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
class LeaseCalls {
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
    counters: readonly Adjustment[],
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
      const expected = expectedRequests(lease, time);
      if (expected < 1 || lease.quota >= expected * counter.cost) continue;
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
  requestBlock(lease: Lease, counter: Demand, now: number): Demand | undefined {
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

/** The maximum number of leases. That many leases take about 2 MB. */
const MAX_LEASES = 4096;

interface LeaseOptions extends LeaseCallOptions {
  /** @default 4096 */
  readonly maxLeases?: number;
}

/**
 * Wraps a store so that blocks of quota are fetched for busy counters. Requests are then admitted
 * from memory until a block is used up.
 *
 * The store charges a block when it is taken, so that all isolates in total never admit more than
 * the limit in a window. The price is that some quota may stay unused. The unused quota is at most
 * the unspent quota in the blocks of idle isolates, until these isolates return it.
 *
 * - The size of a block follows the counter's recent use in this isolate (see lease-plan.ts). A
 *   block is at most an eighth of the quota left. A client's first request, and its last requests
 *   before the limit, are charged without a block.
 * - A new block is fetched in the background before the old one is used up, so that a busy client
 *   does not wait.
 * - A lease that was not used for five seconds is returned with the next call.
 * - A group is charged as a whole. The call leaves out the counters whose leases cover the cost. If
 *   the store denies the group, the quota taken from leases is put back.
 *
 * Callers see exact counts: the store's count minus the quota that is leased to this isolate and
 * not used yet.
 */
export function withLeases(store: Store, options: LeaseOptions): Store {
  const leases = new LeaseStore(store, options);
  return {
    decide: (groups, now, unused) => leases.decide(groups, now, unused),
    denialOf: (group, now) => leases.denialOf(group, now),
    adjust: (counters, now, unused) => leases.adjust(counters, now, unused),
    reset: (counters, now) => leases.reset(counters, now),
  };
}

class LeaseStore implements Store {
  readonly #store: Store;
  readonly #options: LeaseOptions;
  readonly #book: LeaseBook;
  readonly #calls: LeaseCalls;

  constructor(store: Store, options: LeaseOptions) {
    this.#store = store;
    this.#options = options;
    this.#book = new LeaseBook(options.maxLeases ?? MAX_LEASES);
    this.#calls = new LeaseCalls(store, this.#book, options);
  }

  decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Answer>[] {
    const fromLeases = unused.length === 0 ? this.#admitFromLeases(groups, now) : undefined;
    if (fromLeases) return fromLeases;
    const startedAt = Date.now();
    const answers = this.#decideOnce(groups, now, unused).map(({ plans, answer }, index) =>
      this.#retryIfCovered(groups[index] as Group, plans, answer, now, startedAt),
    );
    return answers.map((answer, index) =>
      isDependent(groups, index)
        ? this.#retryIfSkipped(groups[index] as Group, answers[0] as Promise<Answer>, answer, now)
        : answer,
    );
  }

  /** The store's counts contain the quota that this isolate has leased and not used. */
  denialOf(group: Group, now?: number): Answer | undefined {
    const time = this.#timeOf(now);
    const plans: CounterPlan[] = [];
    for (const counter of group) {
      const quota = this.#book.quotaOf(counter, time);
      const lease = this.#book.peek(counter);
      // Only `decide` can return quota that was leased under another tier.
      if (quota > 0 && !lease) return undefined;
      const plan = { counter, lease };
      if (quota === 0) plans.push({ ...plan, request: counter });
      else if (quota >= counter.cost) plans.push(plan);
      else plans.push({ ...plan, request: { ...counter, cost: counter.cost - quota } });
    }
    const requests = plans.flatMap(({ request }) => request ?? []);
    const answer = requests.length > 0 ? this.#store.denialOf?.(requests, now) : undefined;
    return answer && answerOf(plans, answer);
  }

  async adjust(
    counters: readonly Adjustment[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<readonly Tally[]> {
    const tallies = await this.#calls.adjust(counters, now, unused);
    // A block may have arrived during the call. Callers must see counts without its unspent quota.
    const time = this.#timeOf(now);
    return tallies.map((tally, index) => {
      const lease = this.#book.peek(counters[index] as Demand);
      const unspent = lease ? availableQuota(lease, time) : 0;
      return unspent > 0 ? { ...tally, count: Math.max(0, tally.count - unspent) } : tally;
    });
  }

  async reset(counters: readonly Removal[], now?: number): Promise<void> {
    const removed = counters.filter((counter) => !counter.keepsCount);
    this.#book.discard(removed);
    await this.#store.reset(counters, now);
    // Blocks charged before the reset may have arrived during the call.
    this.#book.discard(removed);
  }

  /**
   * Returns the time of a decision: the time that the caller passed, or else the time of this
   * isolate's clock. The book checks whether this clock has gone back.
   */
  #timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    this.#book.observe(now);
    return now;
  }

  /** Admits all groups from memory if possible. Nearly all requests of busy clients take this path. */
  #admitFromLeases(
    groups: readonly Group[],
    now: number | undefined,
  ): Promise<Answer>[] | undefined {
    const time = this.#timeOf(now);
    const groupPlans: GroupPlan[] = [];
    for (const group of groups) {
      const plans: CounterPlan[] = [];
      for (const counter of group) {
        const lease = counter.checkOnly ? undefined : this.#book.peek(counter);
        if (!lease || counter.cost === 0 || availableQuota(lease, time) < counter.cost) {
          return undefined;
        }
        plans.push({ counter, lease });
      }
      groupPlans.push(plans);
    }
    if (groupPlans.length === 0) return undefined;
    const storeNow = time + clockOffsetOf(groupPlans[0]);
    for (const counter of groups.flat()) {
      const lease = this.#book.findOrOpen(counter, time);
      if (lease) lease.quota -= counter.cost;
    }
    this.#calls.refill(groupPlans.flat(), now, time);
    return groupPlans.map(async (plans) => answerOf(plans, admittedFromLeases(storeNow)));
  }

  /**
   * Decides groups with at most one call to the store, which contains only the counters that leases
   * do not cover. The quota taken from the leases of a group goes back to them if the group is not admitted.
   */
  #decideOnce(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): { plans: GroupPlan; answer: Promise<Answer> }[] {
    const time = this.#timeOf(now);
    const groupPlans = groups.map((group) => group.map((counter) => this.#plan(counter, time)));
    const open = groupPlans.filter(needsStore);
    const isCalled = open.length > 0 || unused.length > 0;
    const returns = isCalled ? [...unused, ...this.#book.takeReturns(time)] : [];
    const calls = (isCalled ? this.#calls.decide(open, now, returns) : []).values();
    const covered = admittedFromLeases(time + clockOffsetOf(groupPlans[0]));
    const decided = groupPlans.map((plans) =>
      needsStore(plans) ? (calls.next().value as Promise<Answer>) : Promise.resolve(covered),
    );
    return groupPlans.map((plans, index) => {
      const own = decided[index] as Promise<Answer>;
      const first = isDependent(groups, index) ? decided[0] : undefined;
      return { plans, answer: this.#putBackUnlessAdmitted(plans, own, first) };
    });
  }

  /** @param first the answer for the group on which this one depends */
  async #putBackUnlessAdmitted(
    plans: GroupPlan,
    own: Promise<Answer>,
    first: Promise<Answer> | undefined,
  ): Promise<Answer> {
    let isAdmitted = false;
    try {
      const [answer, before] = await Promise.all([own, first]);
      const result = before?.admitted === false ? skipped(answer.now) : answer;
      isAdmitted = result.admitted;
      return result;
    } finally {
      if (!isAdmitted) this.#putBack(plans);
    }
  }

  /**
   * Decides a denied group again if leases cover it by now. If they cover all of its counters, this needs no
   * call, and also happens after the deadline, which a busy isolate can miss.
   *
   * The quota for this group arrived during the call, in a block for which another request had
   * asked the store. Without this step, only 49 of 200 simultaneous requests pass a limit of 50
   * (test/node/http/limits.test.ts).
   */
  async #retryIfCovered(
    group: Group,
    plans: GroupPlan,
    decided: Promise<Answer>,
    now: number | undefined,
    startedAt: number,
  ): Promise<Answer> {
    const answer = await decided;
    if (isSkipped(answer)) return answer;
    if (isCoveredByNow(plans, answer, now ?? Date.now())) {
      const timeLeftMs = this.#options.timeoutMs - (Date.now() - startedAt);
      const retry = () => this.#decideAlone(group, now);
      const fromLeases = this.#admitFromLeases([group], now)?.[0];
      // If the second call fails, the group stays denied.
      const fromStore = async () =>
        timeLeftMs > 0 ? await inTime(retry, timeLeftMs).catch(() => {}) : undefined;
      const second = await (fromLeases ?? fromStore());
      if (second)
        return { ...second, fromMemory: (answer.fromMemory && second.fromMemory) ?? false };
    }
    if (answer.admitted) this.#calls.refill(plans, now, now ?? Date.now());
    return answerOf(plans, answer);
  }

  /** Decides a dependent group if the group on which it depends was admitted only by a second decision. */
  async #retryIfSkipped(
    group: Group,
    first: Promise<Answer>,
    own: Promise<Answer>,
    now: number | undefined,
  ): Promise<Answer> {
    const [{ admitted }, answer] = await Promise.all([first, own]);
    return admitted && isSkipped(answer) ? await this.#decideAlone(group, now) : answer;
  }

  async #decideAlone(group: Group, now: number | undefined): Promise<Answer> {
    const [{ plans, answer }] = this.#decideOnce([group], now, []) as [
      { plans: GroupPlan; answer: Promise<Answer> },
    ];
    const decided = await answer;
    if (decided.admitted) this.#calls.refill(plans, now, now ?? Date.now());
    return answerOf(plans, decided);
  }

  /** Plans a counter, and requests a block for its lease if a block is due. */
  #plan(counter: Demand, now: number): CounterPlan {
    const lease = this.#book.findOrOpen(counter, now);
    const plan = planCounter(counter, lease, now);
    const { request } = plan;
    if (!lease || !request || counter.cost === 0 || counter.checkOnly) return plan;
    return { ...plan, request: this.#calls.requestBlock(lease, request, now) ?? request };
  }

  #putBack(plans: GroupPlan): void {
    for (const { counter, lease, takenQuota } of plans) {
      if (lease && takenQuota) this.#book.putBack(lease, counter, takenQuota);
    }
  }
}

function admittedFromLeases(now: number): Answer {
  return { now, admitted: true, tallies: [], fromMemory: true };
}

/** Whether a dependent group was not decided. */
function isSkipped({ admitted, tallies }: Answer): boolean {
  return !admitted && tallies.length === 0;
}
