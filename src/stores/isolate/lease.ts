import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import type { Frequency } from "./frequency-map.ts";
import { type CounterSnapshot, isValidAt, type StoreCall } from "./snapshot.ts";

/** A lease that was not used for this long is returned to the store, in milliseconds. */
export const IDLE_MS = 5000;

/** Quota of one counter that the store has charged already and only this isolate may use. */
export interface Lease extends Frequency {
  /** The counter as it was when the quota was charged. */
  counter: Counter;
  /** Quota not used yet. It is valid in the window of `snapshot` only. */
  quota: number;
  /** The store's last answer; undefined before the first, and after the lease was drained. */
  snapshot: CounterSnapshot | undefined;
  /** Until when a call for a block may be pending, by this isolate's clock; 0 if none is. */
  refillPendingUntil: number;
  /** Moving average of the quota that a request takes. */
  meanCost: number;
  /** Duration of the last call to the store, in milliseconds; 0 before the first. */
  roundTripMs: number;
  /** When the lease was opened, by this isolate's clock. */
  readonly openedAt: number;
  /** Whether the counter was reset: the store no longer contains the charge for this quota. */
  isReset: boolean;
}

/** Quota that a request took from a lease. */
export interface TakenQuota {
  readonly quota: number;
  /** The number of the window in which it was charged. */
  readonly window: number;
}

/** An empty lease for a counter that has been used once. */
export function openLease(counter: Counter, now: number): Lease {
  return {
    counter,
    quota: 0,
    snapshot: undefined,
    refillPendingUntil: 0,
    meanCost: counter.cost,
    roundTripMs: 0,
    openedAt: now,
    isReset: false,
    recentUses: 1,
    lastUsedAt: now,
  };
}

/** Quota of a lease that requests may use now. */
export function availableQuota({ quota, snapshot }: Lease, now: number): number {
  return snapshot && isValidAt(snapshot, now) ? quota : 0;
}

/** Whether a lease is due to be returned. */
export function isIdle({ lastUsedAt, refillPendingUntil }: Lease, now: number): boolean {
  return now - lastUsedAt >= IDLE_MS && refillPendingUntil <= now;
}

/** What a lease can return to the store, if its window has not ended. */
export function unusedQuotaOf(lease: Lease, now: number): UnusedQuota | undefined {
  const quota = availableQuota(lease, now);
  if (quota === 0 || !lease.snapshot) return undefined;
  return { counter: lease.counter, quota, window: lease.snapshot.window };
}

/**
 * Adds charged quota to a lease and updates its snapshot. An answer about an earlier window than
 * the lease's is dropped with its quota.
 */
export function addQuota(
  lease: Lease,
  quota: number,
  snapshot: CounterSnapshot,
  call: StoreCall,
): void {
  const previous = lease.snapshot;
  if (previous && isOutdated(snapshot, previous, call)) return;
  if (snapshot.window !== previous?.window) {
    lease.quota = 0;
    lease.snapshot = snapshot;
  } else if (isNewer(snapshot, previous)) {
    lease.snapshot = snapshot;
  }
  lease.quota += quota;
  lease.roundTripMs = Math.max(0, call.answeredAt - call.sentAt) || lease.roundTripMs;
}

/**
 * Whether an answer belongs to an earlier window than the lease's snapshot. The answer is accepted
 * all the same if that snapshot has expired: the store's clock may have been put back, and the
 * store decides which window is the current one.
 */
function isOutdated(answer: CounterSnapshot, previous: CounterSnapshot, call: StoreCall): boolean {
  if (answer.window >= previous.window) return false;
  return (call.isGiven ? call.decidedAt : call.answeredAt) < previous.validUntil;
}

/** Whether one snapshot of a window was taken after another: answers may arrive in any order. */
function isNewer(one: CounterSnapshot, other: CounterSnapshot): boolean {
  if (one.decidedAt !== other.decidedAt) return one.decidedAt > other.decidedAt;
  return one.count >= other.count;
}
