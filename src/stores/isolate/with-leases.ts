import type { Store } from "../store.ts";
import { type LeaseOptions, LeaseStore } from "./lease-store.ts";

/**
 * Wraps a store so that blocks of quota are fetched for busy counters. Requests are then admitted
 * from memory until a block is used up.
 *
 * The store charges a block when it is taken, so that all isolates in total never admit more than
 * the limit in a window. The price is that some quota may stay unused. The unused quota is at most
 * the unspent quota in the blocks of idle isolates, until these isolates return it.
 *
 * - The size of a block follows the counter's recent use in this isolate (see lease-size.ts). A
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
    adjust: (counters, now) => leases.adjust(counters, now),
    reset: (counters, now) => leases.reset(counters, now),
  };
}
