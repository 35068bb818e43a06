import { type Counter, type Tally, windowAt } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import type { Answer } from "../store.ts";
import { availableQuota, isIdle, type Lease, type TakenQuota } from "./lease.ts";
import { type CounterSnapshot, tallyOf } from "./snapshot.ts";

/** The plan for deciding one counter of a group: from its lease, by the store, or both. */
export interface CounterPlan {
  readonly counter: Counter;
  readonly lease?: Lease | undefined;
  /** Quota taken from the lease. */
  readonly takenQuota?: TakenQuota;
  /**
   * The lease's state when the plan was made. It is stored because a refund may drain the lease
   * later.
   */
  readonly leaseState?: { readonly snapshot: CounterSnapshot; readonly unspent: number };
  /** The counter to send to the store; undefined if the lease covers the cost. */
  readonly request?: Counter;
  /** Whether the call only refills the lease, so that all charged quota is for later requests. */
  readonly isRefill?: boolean;
}

/** The plans of a group's counters, in the group's order. */
export type GroupPlan = readonly CounterPlan[];

/** Takes as much of a counter's cost as possible from its lease, and requests the rest. */
export function planCounter(counter: Counter, lease: Lease | undefined, now: number): CounterPlan {
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

function isFull(request: Counter, { count, banMs }: Tally): boolean {
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
