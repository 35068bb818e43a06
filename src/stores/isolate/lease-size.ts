// How much quota a lease requests, and when. Pure: from a lease's recent use to numbers.

import { type Counter, windowAt } from "../../engine/counter.ts";
import { BLOCK_SHARE } from "../../engine/fixed-window.ts";
import { DECAY_MS } from "./frequency-map.ts";
import type { Lease } from "./lease.ts";
import { isValidAt } from "./snapshot.ts";

/** A block is fetched when the lease does not cover the requests of this many round trips. */
const REFILL_ROUND_TRIPS = 3;

/**
 * Quota to request as a block; 0 for none.
 *
 * - It is the expected use in {@link DECAY_MS}, or in the rest of the window, at the current rate.
 *   It is at most twice the use so far without the first request, so that it starts small.
 * - At a high rate of requests it covers several round trips instead, if that is more.
 * - It is at most the quota left divided by {@link BLOCK_SHARE}, as far as this isolate knows.
 */
export function blockOf(lease: Lease, counter: Counter, now: number): number {
  const { recentUses, meanCost, snapshot, refillPendingUntil, openedAt } = lease;
  if (refillPendingUntil > now) return 0;
  // The clock has gone back to before the snapshot's window. This window gets no block.
  if (snapshot && now < snapshot.validFrom) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  // The uses to expect in DECAY_MS. A younger lease has counted only a part of such a period.
  const steadyUses = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const expectedUses = Math.min(steadyUses, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const burstUses = Math.min(2 * refillDemand(lease, now), 4 * (recentUses - 4));
  const used = snapshot && isValidAt(snapshot, now) ? snapshot.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(expectedUses, burstUses)) * meanCost));
}

/** Requests expected at the current rate during {@link REFILL_ROUND_TRIPS} round trips. */
export function refillDemand({ recentUses, openedAt, roundTripMs }: Lease, now: number): number {
  // A lease younger than DECAY_MS has counted its uses since it was opened.
  const periodMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / periodMs) * roundTripMs * REFILL_ROUND_TRIPS;
}
