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
 * - It is the expected use in {@link DECAY_MS}, or in the rest of the window, at the current rate. It
 *   is at most twice the use so far without the first request, so that it starts small.
 * - It is larger where requests come faster than blocks: it then lasts for several round trips.
 * - It is at most the quota left divided by {@link BLOCK_SHARE}, as far as this isolate knows.
 */
export function blockOf(lease: Lease, counter: Counter, now: number): number {
  const { recentUses, meanCost, snapshot, refillPendingUntil, openedAt } = lease;
  if (refillPendingUntil > now) return 0;
  // The snapshot lies in the future after the caller's clock went back: this window gets no block.
  if (snapshot && now < snapshot.validFrom) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  // Use in DECAY_MS: a lease younger than that has counted only a part of it.
  const steadyUses = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const expectedUses = Math.min(steadyUses, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const burstUses = Math.min(2 * refillDemand(lease, now), 4 * (recentUses - 4));
  const used = snapshot && isValidAt(snapshot, now) ? snapshot.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(expectedUses, burstUses)) * meanCost));
}

/** Requests expected at the current rate during {@link REFILL_ROUND_TRIPS} round trips. */
export function refillDemand({ recentUses, openedAt, roundTripMs }: Lease, now: number): number {
  // All recent uses of a lease younger than DECAY_MS happened during its lifetime.
  const periodMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / periodMs) * roundTripMs * REFILL_ROUND_TRIPS;
}
