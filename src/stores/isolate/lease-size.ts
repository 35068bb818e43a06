// Computes how much quota a lease requests, and when, from its recent use. The functions are pure.

import { type Counter, windowAt } from "../../engine/counter.ts";
import { BLOCK_SHARE } from "../../engine/fixed-window.ts";
import { DECAY_MS } from "./frequency-map.ts";
import type { Lease } from "./lease.ts";
import { isValidAt } from "./snapshot.ts";

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
export function blockOf(lease: Lease, counter: Counter, now: number): number {
  const { recentUses, meanCost, snapshot, refillPendingUntil, openedAt } = lease;
  if (refillPendingUntil > now) return 0;
  // No block is requested if the clock has gone back to a time before the snapshot was valid.
  if (snapshot && now < snapshot.validFrom) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  // The uses expected in DECAY_MS. A lease younger than DECAY_MS has counted only a part of them.
  const steadyUses = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const expectedUses = Math.min(steadyUses, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const burstUses = Math.min(2 * refillDemand(lease, now), 4 * (recentUses - 4));
  const used = snapshot && isValidAt(snapshot, now) ? snapshot.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(expectedUses, burstUses)) * meanCost));
}

/**
 * Returns the number of requests expected at the current rate during {@link REFILL_ROUND_TRIPS}
 * round trips.
 */
export function refillDemand({ recentUses, openedAt, roundTripMs }: Lease, now: number): number {
  // A lease younger than DECAY_MS has counted uses only since it was opened.
  const periodMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / periodMs) * roundTripMs * REFILL_ROUND_TRIPS;
}
