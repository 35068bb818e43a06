import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import type { Frequency } from "./frequency-map.ts";
import { type CounterSnapshot, isValidAt, type StoreCall } from "./snapshot.ts";

/** The time in milliseconds after which an unused lease is returned to the store. */
export const IDLE_MS = 5000;

/**
 * Quota of one counter. The store has already charged this quota, and only this isolate may use it.
 */
export interface Lease extends Frequency {
  /** The counter as it was when the quota was charged. */
  counter: Counter;
  /** Quota not used yet, which is valid only in the window of `snapshot`. */
  quota: number;
  /**
   * The store's last answer; undefined before the first answer, and after the lease was drained.
   */
  snapshot: CounterSnapshot | undefined;
  /**
   * The time until which a requested block counts as pending, by this isolate's clock; 0 if no
   * block is pending.
   */
  refillPendingUntil: number;
  /** The moving average of the quota that a request takes. */
  meanCost: number;
  /** The duration of the last call to the store, in milliseconds; 0 before the first call. */
  roundTripMs: number;
  /** When the lease was opened, by this isolate's clock. */
  readonly openedAt: number;
  /** Whether the counter was reset. After a reset, the store has no charge for the lease's quota. */
  isReset: boolean;
}

/** Quota that a request took from a lease. */
export interface TakenQuota {
  readonly quota: number;
  /** The number of the window in which this quota was charged. */
  readonly window: number;
}

/** Creates an empty lease for a counter that has been used once. */
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

/** Returns the quota that requests may take from a lease now. */
export function availableQuota({ quota, snapshot }: Lease, now: number): number {
  return snapshot && isValidAt(snapshot, now) ? quota : 0;
}

/** Whether a lease should be returned, because it was not used for {@link IDLE_MS}. */
export function isIdle({ lastUsedAt, refillPendingUntil }: Lease, now: number): boolean {
  return now - lastUsedAt >= IDLE_MS && refillPendingUntil <= now;
}

/** The quota that a lease can return to the store; undefined if none is left in its window. */
export function unusedQuotaOf(lease: Lease, now: number): UnusedQuota | undefined {
  const quota = availableQuota(lease, now);
  if (quota === 0 || !lease.snapshot) return undefined;
  return { counter: lease.counter, quota, window: lease.snapshot.window };
}

/**
 * Adds charged quota to a lease and updates its snapshot. If the answer is for an earlier window
 * than the lease's, the answer and its quota are dropped.
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
 * Whether an answer must be dropped, because it is for an earlier window than the lease's snapshot.
 * If that snapshot has expired, the answer is accepted, because the store's clock may have stepped
 * back. The answer's window is then the current window.
 */
function isOutdated(answer: CounterSnapshot, previous: CounterSnapshot, call: StoreCall): boolean {
  if (answer.window >= previous.window) return false;
  return (call.isGiven ? call.decidedAt : call.answeredAt) < previous.validUntil;
}

/**
 * Whether the snapshot `one` is newer than the snapshot `other` for the same window. The answers
 * may have arrived in any order.
 */
function isNewer(one: CounterSnapshot, other: CounterSnapshot): boolean {
  if (one.decidedAt !== other.decidedAt) return one.decidedAt > other.decidedAt;
  return one.count >= other.count;
}
