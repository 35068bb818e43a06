import { type Demand, type Tally, windowAt } from "../../engine/counter.ts";
import { BLOCK_SHARE, hasQuota } from "../../engine/fixed-window.ts";
import type { Answer } from "../store.ts";
import { DECAY_MS } from "./frequency-map.ts";
import {
  availableQuota,
  type CounterSnapshot,
  isIdle,
  isValidAt,
  type Lease,
  type TakenQuota,
  tallyOf,
} from "./lease-book.ts";

// Computes how much quota a lease requests, and when, from its recent use. The functions are pure.

/**
 * A block is fetched if the lease does not cover the requests expected during this number of round
 * trips.
 */
const REFILL_ROUND_TRIPS = 3;

/**
 * Returns the quota to request as a block. If the result is 0 or less, no block is due.
 *
 * - The block is the quota that requests use at the current rate in {@link DECAY_MS}, or in the
 *   rest of the window if that is shorter. It is at most twice the recent use. The first request
 *   does not count in this maximum, so that the first blocks are small.
 * - At a high rate of requests, the block covers the requests of several round trips instead, if
 *   these requests need more quota.
 * - The block is at most the quota left, as this isolate knows it, divided by {@link BLOCK_SHARE}.
 */
export function blockOf(lease: Lease, counter: Demand, now: number): number {
  const { recentUses, meanCost, snapshot, refillPendingUntil, openedAt } = lease;
  if (refillPendingUntil > now) return 0;
  // No block is requested if the clock has gone back to a time before the snapshot was valid.
  if (snapshot && now < snapshot.validFrom) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  // The uses expected in DECAY_MS. A lease younger than DECAY_MS has counted only a part of them.
  const steadyUses = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const expectedUses = Math.min(steadyUses, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const burstUses = Math.min(2 * expectedRequests(lease, now), 4 * (recentUses - 4));
  const used = snapshot && isValidAt(snapshot, now) ? snapshot.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(expectedUses, burstUses)) * meanCost));
}

/**
 * Returns the number of requests expected at the current rate during {@link REFILL_ROUND_TRIPS}
 * round trips.
 */
export function expectedRequests(
  { recentUses, openedAt, roundTripMs }: Lease,
  now: number,
): number {
  // A lease younger than DECAY_MS has counted uses only since it was opened.
  const periodMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / periodMs) * roundTripMs * REFILL_ROUND_TRIPS;
}

/** The plan for deciding one counter of a group: from its lease, by the store, or both. */
export interface CounterPlan {
  readonly counter: Demand;
  readonly lease?: Lease | undefined;
  /** Quota taken from the lease. */
  readonly takenQuota?: TakenQuota;
  /**
   * The lease's state when the plan was made. It is stored because a refund may drain the lease
   * later.
   */
  readonly leaseState?: { readonly snapshot: CounterSnapshot; readonly unspent: number };
  /** The counter to send to the store; undefined if the lease covers the cost. */
  readonly request?: Demand;
  /** Whether the call only refills the lease, so that all charged quota is for later requests. */
  readonly isRefill?: boolean;
}

/** The plans of a group's counters, in the group's order. */
export type GroupPlan = readonly CounterPlan[];

/** Takes as much of a counter's cost as possible from its lease, and requests the rest. */
export function planCounter(counter: Demand, lease: Lease | undefined, now: number): CounterPlan {
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
  if (quota < cost) plan.request = quota === 0 ? counter : { ...counter, cost: cost - quota };
  return plan;
}

/** Whether a group needs a call, because its leases do not cover it. */
export function needsStore(plans: GroupPlan): boolean {
  return plans.some(({ request }) => request);
}

/** Whether a group was denied only because of counters whose leases cover the cost by now. */
export function isCoveredByNow(plans: GroupPlan, answer: Answer, now: number): boolean {
  if (answer.admitted) return false;
  const tallies = answer.tallies.values();
  let isCovered = false;
  for (const { counter, lease, request } of plans) {
    const tally = request && tallies.next().value;
    if (!request || !tally || !isFull(request, tally)) continue;
    if (!lease || counter.cost === 0 || availableQuota(lease, now) < counter.cost) return false;
    isCovered = true;
  }
  return isCovered;
}

function isFull(request: Demand, { count, banMs }: Tally): boolean {
  return banMs > 0 || !hasQuota(request, count);
}

/**
 * The store's clock minus this isolate's clock in milliseconds, as stored in the first lease; 0 if
 * unknown.
 */
export function clockOffsetOf(plans: GroupPlan | undefined): number {
  return plans?.[0]?.lease?.snapshot?.clockOffsetMs ?? 0;
}

/** Quota that the store charged to an admitted counter for later requests. */
export function unspentChargeOf({ request, isRefill }: CounterPlan, tally: Tally): number {
  if (!request || request.checkOnly) return 0;
  const { charged = request.cost } = tally;
  return isRefill ? charged : charged - request.cost;
}

/**
 * The answer for the caller. Its counts are the counts of the store minus the unspent quota of the
 * leases.
 *
 * @param answer has a tally for each `request` of the plans
 */
export function answerOf(plans: GroupPlan, answer: Answer): Answer {
  const { now, admitted } = answer;
  const storeTallies = answer.tallies.values();
  const tallies = plans.map((plan): Tally | undefined => {
    if (!plan.request) return clientTally(plan, undefined, admitted, now);
    const tally = storeTallies.next().value;
    // A denial from memory may lack a counter whose state this isolate knows from its lease.
    if (!tally && !isStateKnown(plan, now)) return undefined;
    return clientTally(plan, tally, admitted, now);
  });
  return { ...answer, tallies };
}

function isStateKnown({ counter, lease, leaseState }: CounterPlan, storeNow: number): boolean {
  const snapshot = lease?.snapshot ?? leaseState?.snapshot;
  return snapshot !== undefined && snapshot.window === windowAt(storeNow, counter).index;
}

/** A counter's tally without the quota that its lease has not used yet. */
function clientTally(
  { counter, lease, request, leaseState }: CounterPlan,
  storeTally: Tally | undefined,
  admitted: boolean,
  storeNow: number,
): Tally {
  const snapshot = lease?.snapshot ?? leaseState?.snapshot;
  const unspent = lease?.snapshot ? lease.quota : (leaseState?.unspent ?? 0);
  // Without a tally of the store, the lease has a snapshot.
  const tally = storeTally ?? tallyOf(snapshot as CounterSnapshot, storeNow);
  const { charged: _, ...state } = tally;
  const isCurrent = snapshot?.window === windowAt(storeNow, counter).index;
  const count = Math.max(0, tally.count - (isCurrent ? unspent : 0));
  // A block may have arrived after the denial, but the reported count must still explain the
  // denial.
  const isDenied = !admitted && storeTally && request && isFull(request, tally);
  return { ...state, count: isDenied && hasQuota(counter, count) ? tally.count : count };
}
