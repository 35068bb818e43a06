import {
  type Adjustment,
  type Demand,
  type Removal,
  type Tally,
  type UnusedQuota,
  windowAt,
  withCost,
} from "../../engine/counter.ts";
import { BLOCK_SHARE, hasQuota } from "../../engine/fixed-window.ts";
import { inTime } from "../deadline.ts";
import { type Answer, type Group, type KnownState, mayBeCarriedOut, type Store } from "../store.ts";
import { DECAY_MS } from "./frequency-map.ts";
import {
  arrivalOf,
  availableQuota,
  type CounterSnapshot,
  expectIncoming,
  incomingQuota,
  isIdle,
  isValidAt,
  type Lease,
  LeaseBook,
  type LeaseCall,
  settleIncoming,
  type TakenQuota,
  tallyOf,
} from "./lease-book.ts";

// A lease's recent use determines how much quota it requests, and when.

/** A block is fetched if the lease does not cover the requests expected in this number of round trips. */
const REFILL_ROUND_TRIPS = 3;

/**
 * Returns the quota to request as a block. If it is 0 or less, no block is due.
 *
 * - The block is the quota that requests use at the current rate in {@link DECAY_MS}, or in the rest of the window if
 *   that is shorter. It is at most twice the recent use. The first request does not count here, so that the first
 *   blocks are small.
 * - At a high rate of requests, the block covers the requests of several round trips instead, if these requests need
 *   more quota.
 * - The block is at most the quota left, by this isolate's snapshot, divided by {@link BLOCK_SHARE}.
 */
function blockOf(lease: Lease, counter: Demand, now: number): number {
  const { recentUses, meanCost, snapshot, refillPendingUntil, openedAt } = lease;
  if (refillPendingUntil > now) return 0;
  // No block is requested if the clock has gone back to a time before the snapshot was valid.
  if (snapshot && now < snapshot.validFrom) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  // The uses expected in DECAY_MS. A lease younger than DECAY_MS has counted only a part of these uses.
  const steadyUses = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const expectedUses = Math.min(steadyUses, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const burstUses = Math.min(2 * expectedRequests(lease, now), 4 * (recentUses - 4));
  const used = snapshot && isValidAt(snapshot, now) ? snapshot.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(expectedUses, burstUses)) * meanCost));
}

/** Returns the number of requests expected in {@link REFILL_ROUND_TRIPS} round trips, at the current rate. */
function expectedRequests({ recentUses, openedAt, roundTripMs }: Lease, now: number): number {
  // A lease younger than DECAY_MS has counted uses only since it was opened.
  const periodMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / periodMs) * roundTripMs * REFILL_ROUND_TRIPS;
}

/** The plan for deciding one counter of a group: by its lease, by the store, or by both. */
interface CounterPlan {
  readonly counter: Demand;
  readonly lease?: Lease | undefined;
  /** Quota taken from the lease. */
  readonly takenQuota?: TakenQuota;
  /** The lease's state when the plan was made. A later refund may drain the lease. */
  readonly leaseState?: { readonly snapshot: CounterSnapshot; readonly unspent: number };
  /** The counter to send to the store; undefined if the lease covers the cost. */
  readonly request?: Demand;
  /** Whether the call only refills the lease, so that all charged quota is for later requests. */
  readonly isRefill?: boolean;
}

type GroupPlan = readonly CounterPlan[];

/** Notes the quota that the decision of a plan may bring to its lease. */
function expectQuota(plan: CounterPlan, until: number, now: number): void {
  if (plan.lease) expectIncoming(plan.lease, expectedOf(plan), until, now);
}

/** Notes that plans are decided. Requests that wait for quota of their leases look again. */
function settle(plans: GroupPlan): void {
  for (const plan of plans) if (plan.lease) settleIncoming(plan.lease, expectedOf(plan));
}

function expectedOf({ request, takenQuota }: CounterPlan): number {
  return (request?.block ?? 0) + (takenQuota?.quota ?? 0);
}

/** Takes as much of a counter's cost as possible from its lease, and requests the rest. */
function planCounter(counter: Demand, lease: Lease | undefined, now: number): CounterPlan {
  if (!lease || counter.cost === 0) return { counter, lease, request: counter };
  const { cost, checkOnly } = counter;
  // The call to the store also returns the quota of an idle lease. If a check used this quota too,
  // the quota would be counted twice.
  const available = checkOnly && isIdle(lease, now) ? 0 : availableQuota(lease, now);
  const quota = Math.min(available, cost);
  if (!checkOnly) lease.quota -= quota;
  const { snapshot } = lease;
  // The fields are assigned one by one, because spreads are slower, and this code runs for each
  // request to the store.
  const plan: { -readonly [Field in keyof CounterPlan]: CounterPlan[Field] } = { counter, lease };
  if (snapshot) {
    plan.leaseState = { snapshot, unspent: lease.quota };
    if (!checkOnly) plan.takenQuota = { quota, window: snapshot.window };
  }
  if (quota < cost) plan.request = quota === 0 ? counter : withCost(counter, cost - quota);
  return plan;
}

/** The plans of a group, and its answer. */
interface Decided {
  readonly plans: GroupPlan;
  readonly answer: Promise<Answer>;
}

/** Whether a counter's request can be admitted from its lease. */
function covers(
  lease: Lease | undefined,
  { cost, checkOnly }: Demand,
  now: number,
): lease is Lease {
  return !checkOnly && cost !== 0 && lease !== undefined && availableQuota(lease, now) >= cost;
}

function needsStore(plans: GroupPlan): boolean {
  return plans.some(({ request }) => request);
}

/** Quota that this isolate has, or is about to get, and with which a denied group may be admitted. */
interface Cure {
  /** A lease that lacks quota which calls in flight may bring; undefined if all quota is there. */
  readonly waitFor?: Lease;
}

/**
 * Returns how a denied group can still be admitted. The store counts quota as used that this isolate has in its
 * leases, that it has requested in blocks, and that its undecided requests have taken and may put back.
 *
 * @returns undefined if the denial is certain
 */
function cureOf(plans: GroupPlan, answer: Answer, now: number): Cure | undefined {
  if (answer.admitted) return undefined;
  const tallies = answer.tallies.values();
  let cure: Cure | undefined;
  for (const { counter, lease, request } of plans) {
    const tally = request && tallies.next().value;
    if (!request || !tally || !isFull(request, tally)) continue;
    if (!lease || counter.cost === 0 || tally.banMs > 0) return undefined;
    const missing = missingQuota(counter, lease, tally.count, now);
    if (missing > incomingQuota(lease, now)) return undefined;
    if (missing > 0) cure = { waitFor: lease };
    else cure ??= {};
  }
  return cure;
}

/** Returns the part of a counter's cost for which neither its lease nor the store has quota. */
function missingQuota(counter: Demand, lease: Lease, count: number, now: number): number {
  const { snapshot } = lease;
  // Another call may have shown meanwhile that the store has less quota left.
  const known = snapshot && isValidAt(snapshot, now) ? Math.max(count, snapshot.count) : count;
  return known + counter.cost - counter.ceiling - availableQuota(lease, now);
}

function isFull(request: Demand, { count, banMs }: Tally): boolean {
  return banMs > 0 || !hasQuota(request, count);
}

/** The store's clock minus this isolate's clock, from the first lease; 0 if unknown. */
function clockOffsetOf(plans: GroupPlan | undefined): number {
  return plans?.[0]?.lease?.snapshot?.clockOffsetMs ?? 0;
}

/** Quota that the store charged to an admitted counter for later requests. */
function unspentChargeOf({ request, isRefill }: CounterPlan, tally: Tally): number {
  if (!request || request.checkOnly) return 0;
  const { charged = request.cost } = tally;
  return isRefill ? charged : charged - request.cost;
}

/**
 * Returns the answer for the caller. Its counts are the store's counts minus the unspent quota of the leases.
 *
 * @param answer has a tally for each `request` of the plans
 */
function answerOf(plans: GroupPlan, answer: Answer): Answer {
  const { now, admitted } = answer;
  const storeTallies = answer.tallies.values();
  const tallies = plans.map((plan): Tally | undefined => {
    if (!plan.request) return clientTally(plan, undefined, admitted, now);
    const tally = storeTallies.next().value;
    // If a denial from memory lacks the counter's tally, this isolate may know its state from the lease.
    if (!tally && !isStateKnown(plan, now)) return undefined;
    return clientTally(plan, tally, admitted, now);
  });
  return { ...answer, tallies };
}

function isStateKnown({ counter, lease, leaseState }: CounterPlan, storeNow: number): boolean {
  const snapshot = lease?.snapshot ?? leaseState?.snapshot;
  return snapshot !== undefined && snapshot.window === windowAt(storeNow, counter).index;
}

/** Returns a counter's tally without the unspent quota of its lease. */
function clientTally(
  { counter, lease, request, leaseState }: CounterPlan,
  storeTally: Tally | undefined,
  admitted: boolean,
  storeNow: number,
): Tally {
  const snapshot = lease?.snapshot ?? leaseState?.snapshot;
  const unspent = lease?.snapshot ? lease.quota : (leaseState?.unspent ?? 0);
  // If the store sent no tally, the lease has a snapshot.
  const tally = storeTally ?? tallyOf(snapshot as CounterSnapshot, storeNow);
  const { charged: _, ...state } = tally;
  const isCurrent = snapshot?.window === windowAt(storeNow, counter).index;
  const count = Math.max(0, tally.count - (isCurrent ? unspent : 0));
  // After the denial, a block may have arrived. The reported count must still explain the denial.
  const isDenied = !admitted && storeTally && request && isFull(request, tally);
  return { ...state, count: isDenied && hasQuota(counter, count) ? tally.count : count };
}

/** The time in milliseconds for which a counter requests no new block after a block was lost with its answer. */
const LOST_BLOCK_MS = 10_000;

/** A block that a call requests. */
interface PendingBlock {
  readonly lease: Lease;
  /** The value of `refillPendingUntil` that this call has set in the lease. */
  readonly pendingUntil: number;
}

function pendingBlocksOf(plans: GroupPlan): PendingBlock[] {
  return plans.flatMap(({ lease, request }) => {
    return lease && request?.block !== undefined
      ? [{ lease, pendingUntil: lease.refillPendingUntil }]
      : [];
  });
}

/**
 * Notes that the answer to a call for blocks was lost, so that their counters request no block for a while.
 * Otherwise, a store whose answers get lost would charge more and more blocks.
 */
function setLost(blocks: readonly PendingBlock[], now = Date.now()): void {
  setPendingUntil(blocks, now + LOST_BLOCK_MS);
}

/** @param until the new value of `refillPendingUntil`; 0 if the blocks have arrived */
function setPendingUntil(blocks: readonly PendingBlock[], until: number): void {
  for (const { lease, pendingUntil } of blocks) {
    // If this block counts as lost meanwhile, the lease may already wait for a newer block.
    if (lease.refillPendingUntil === pendingUntil) lease.refillPendingUntil = until;
  }
}

/** The maximum number of leases. That many leases take about 2 MB. */
const MAX_LEASES = 4096;

interface LeaseOptions {
  /** The deadline of a call, in milliseconds. A block that arrives later counts as lost. */
  readonly timeoutMs: number;
  /** Keeps the Worker alive until a task has ended. */
  readonly background: (task: Promise<unknown>) => void;
  /** @default 4096 */
  readonly maxLeases?: number;
}

/**
 * Wraps a store so that blocks of quota are fetched for busy counters. Until a block is used up, requests are
 * admitted from memory.
 *
 * The store charges a block at once, so that all isolates in total never admit more than the limit in a window. The
 * price is that the quota in the blocks of idle isolates stays unused.
 *
 * - The size of a block follows the counter's recent use in this isolate (see `blockOf`). A block is at most an
 *   eighth of the quota left. A client's first request, and its last requests before the limit, are charged without a
 *   block.
 * - A new block is fetched in the background before the old one is used up, so that a busy client does not wait.
 * - A lease that was not used for five seconds is returned with the next call.
 * - A group is charged as a whole. The call contains only the counters whose leases do not cover the cost. If the
 *   store denies the group, the quota taken from leases is put back.
 *
 * Callers see exact counts: the store's count minus this isolate's unspent quota.
 */
export function withLeases(store: Store, options: LeaseOptions): Store {
  return new LeaseStore(store, options);
}

class LeaseStore implements Store {
  readonly #store: Store;
  readonly #options: LeaseOptions;
  readonly #book: LeaseBook;
  /**
   * Whether the last call was answered. If not, calls request no blocks, because a block is lost with the answer to
   * its call.
   */
  #isAnswering = true;

  constructor(store: Store, options: LeaseOptions) {
    this.#store = store;
    this.#options = options;
    this.#book = new LeaseBook(options.maxLeases ?? MAX_LEASES);
  }

  decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Answer>[] {
    const fromLeases = unused.length === 0 ? this.#admitFromLeases(groups, now) : undefined;
    if (fromLeases) return fromLeases;
    const startedAt = Date.now();
    return this.#decideOnce(groups, now, unused).map(({ plans, answer }, index) =>
      this.#retryIfCurable(groups[index] as Group, plans, answer, now, startedAt),
    );
  }

  /** The store's counts include the quota of this isolate's leases, and of blocks that have not arrived. */
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
      else plans.push({ ...plan, request: withCost(counter, counter.cost - quota) });
    }
    const requests = plans.flatMap(({ request }) => request ?? []);
    const answer = requests.length > 0 ? this.#store.denialOf?.(requests, now) : undefined;
    if (!answer || cureOf(plans, answer, time)) return undefined;
    return answerOf(plans, answer);
  }

  stateOf(group: Group, now?: number): KnownState {
    const time = this.#timeOf(now);
    const leases = group.map((counter) => this.#book.peek(counter));
    return {
      isCovered: group.every((counter, at) => covers(leases[at], counter, time)),
      tallies: group.map((counter, at) => {
        const lease = leases[at];
        if (!lease?.snapshot || !isValidAt(lease.snapshot, time)) return undefined;
        const storeNow = time + lease.snapshot.clockOffsetMs;
        const tally = clientTally({ counter, lease }, undefined, true, storeNow);
        return { ...tally, count: tally.count + counter.cost };
      }),
    };
  }

  async adjust(
    counters: readonly Adjustment[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<readonly Tally[]> {
    // The unspent quota of the leases is returned first, so that the store's counts contain only used quota.
    const drained = this.#book.drain(counters, now ?? Date.now());
    const tallies = await this.#store.adjust(counters, now, [...unused, ...drained]);
    // A block may have arrived during the call. Callers must see counts without the block's unspent quota.
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

  /** Returns the time that the caller passed, or else this isolate's time. */
  #timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    this.#book.observe(now);
    return now;
  }

  /** Admits all groups from memory if possible, as for nearly all requests of busy clients. */
  #admitFromLeases(
    groups: readonly Group[],
    now: number | undefined,
  ): Promise<Answer>[] | undefined {
    const time = this.#timeOf(now);
    const groupPlans: GroupPlan[] = [];
    for (const group of groups) {
      const plans: CounterPlan[] = [];
      for (const counter of group) {
        const lease = this.#book.peek(counter);
        if (!covers(lease, counter, time)) return undefined;
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
    this.#refill(groupPlans.flat(), now, time);
    return groupPlans.map(async (plans) => answerOf(plans, admittedFromLeases(storeNow)));
  }

  /**
   * Decides groups with at most one call to the store. The call contains only the counters that leases do not cover.
   * If a group is not admitted, the quota taken from its leases goes back there.
   */
  #decideOnce(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): Decided[] {
    const time = this.#timeOf(now);
    const groupPlans = groups.map((group) => group.map((counter) => this.#plan(counter, time)));
    const open = groupPlans.filter(needsStore);
    const isCalled = open.length > 0 || unused.length > 0;
    const returns = isCalled ? [...unused, ...this.#book.takeReturns(time)] : [];
    const calls = (isCalled ? this.#call(open, now, returns) : []).values();
    const covered = admittedFromLeases(time + clockOffsetOf(groupPlans[0]));
    return groupPlans.map((plans) => {
      const decided = needsStore(plans)
        ? (calls.next().value as Promise<Answer>)
        : Promise.resolve(covered);
      return { plans, answer: this.#putBackUnlessAdmitted(plans, decided) };
    });
  }

  async #putBackUnlessAdmitted(plans: GroupPlan, decided: Promise<Answer>): Promise<Answer> {
    let isAdmitted = false;
    try {
      const answer = await decided;
      isAdmitted = answer.admitted;
      return answer;
    } finally {
      if (!isAdmitted) this.#putBack(plans);
      settle(plans);
    }
  }

  /**
   * Decides a denied group again as long as this isolate itself has the missing quota, or waits for it: in a block that
   * another request has requested, or in a group that the store may deny. Without this step, a request that fits may be
   * denied until the window ends, and only 49 of 200 simultaneous requests pass a limit of 50
   * (test/node/http/limits.test.ts).
   *
   * If leases cover all counters, the next decision needs no call. It is then made even after the deadline, because
   * a busy isolate can miss the deadline.
   */
  async #retryIfCurable(
    group: Group,
    firstPlans: GroupPlan,
    decided: Promise<Answer>,
    now: number | undefined,
    startedAt: number,
  ): Promise<Answer> {
    let plans = firstPlans;
    let answer = await decided;
    let isFromMemory = answer.fromMemory ?? false;
    let { mayHold = false } = answer;
    for (;;) {
      const cure = cureOf(plans, answer, now ?? Date.now());
      if (!cure) break;
      const fromLeases = this.#admitFromLeases([group], now)?.[0];
      if (fromLeases) return { ...(await fromLeases), fromMemory: isFromMemory };
      const timeLeftMs = this.#options.timeoutMs - (Date.now() - startedAt);
      if (timeLeftMs <= 0) break;
      if (cure.waitFor) {
        const arrival = arrivalOf(cure.waitFor).then(() => true);
        if (await inTime(() => arrival, timeLeftMs).catch(() => false)) continue;
        break;
      }
      const [retry] = this.#decideOnce([group], now, []) as [Decided];
      try {
        answer = await inTime(() => retry.answer, timeLeftMs);
      } catch (error) {
        // The group stays denied.
        mayHold ||= mayBeCarriedOut(error);
        break;
      }
      plans = retry.plans;
      isFromMemory &&= answer.fromMemory ?? false;
      mayHold ||= answer.mayHold ?? false;
    }
    if (answer.admitted) this.#refill(plans, now, now ?? Date.now());
    const result = { ...answerOf(plans, answer), fromMemory: isFromMemory };
    return mayHold && !answer.admitted ? { ...result, mayHold } : result;
  }

  /** Plans a counter's decision, and requests a block for its lease if a block is due. */
  #plan(counter: Demand, now: number): CounterPlan {
    const lease = this.#book.findOrOpen(counter, now);
    const plan = planCounter(counter, lease, now);
    const { request } = plan;
    const isCharged = lease && request && counter.cost > 0 && !counter.checkOnly;
    const whole = isCharged
      ? { ...plan, request: this.#requestBlock(lease, request, now) ?? request }
      : plan;
    expectQuota(whole, now + this.#options.timeoutMs, now);
    return whole;
  }

  /** Decides groups in one call. Every group must have a counter with a `request`. */
  #call(
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
        // A later group may be stored elsewhere, so its failure says nothing about the other groups.
        if (index === 0) this.#isAnswering = false;
        setLost(blocks, now);
        throw error;
      }
    });
  }

  /** Fetches blocks in the background for leases that will soon be used up at the current rate. */
  #refill(plans: GroupPlan, now: number | undefined, time: number): void {
    if (!this.#isAnswering) return;
    let groups: GroupPlan[] | undefined;
    for (const { lease, counter } of plans) {
      if (!lease || counter.checkOnly || counter.cost === 0) continue;
      const expected = expectedRequests(lease, time);
      if (expected < 1 || lease.quota >= expected * counter.cost) continue;
      const request = this.#requestBlock(lease, counter, time);
      if (!request) continue;
      groups ??= [];
      const refill = { counter, lease, request, isRefill: true };
      expectQuota(refill, time + this.#options.timeoutMs, time);
      groups.push([refill]);
    }
    if (!groups) return;
    const calls = this.#call(groups, now, this.#book.takeReturns(time));
    // A failure is ignored, because the next decision that needs the store reports it.
    const settled = calls.map((call, index) =>
      call.catch(() => {}).then(() => settle(groups[index] as GroupPlan)),
    );
    this.#options.background(Promise.all(settled));
  }

  /**
   * Adds a block to a counter's request, and marks the block as pending in the lease.
   *
   * @returns undefined if no block larger than the cost is due
   */
  #requestBlock(lease: Lease, counter: Demand, now: number): Demand | undefined {
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

  #putBack(plans: GroupPlan): void {
    for (const { counter, lease, takenQuota } of plans) {
      if (lease && takenQuota) this.#book.putBack(lease, counter, takenQuota);
    }
  }
}

function admittedFromLeases(now: number): Answer {
  return { now, admitted: true, tallies: [], fromMemory: true };
}
