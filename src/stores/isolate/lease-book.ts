import { type Counter, counterId, type Tally, type UnusedQuota } from "../../engine/counter.ts";
import { FrequencyMap } from "./frequency-map.ts";
import {
  addQuota,
  availableQuota,
  isIdle,
  type Lease,
  openLease,
  type TakenQuota,
  unusedQuotaOf,
} from "./lease.ts";
import { type StoreCall, snapshotOf } from "./snapshot.ts";

/** The maximum number of leases whose unused quota one call returns. */
const MAX_RETURNS_PER_CALL = 8;

/** The maximum number of returns that wait for a call. That many returns take about 0.5 MB. */
const MAX_RETURNS = 1024;

/** The times of a call for leased counters. */
export interface LeaseCall extends StoreCall {
  /** The value of {@link LeaseBook.clockSteps} when the call was sent. */
  readonly clockSteps: number;
}

/**
 * Stores at most `max` leases of an isolate. It stores no promises, because a request must not wait
 * for another request's promise.
 *
 * The store has charged all leased quota. If some of this quota is lost, requests may be denied
 * that could have been admitted, but no limit is exceeded. In doubt, the book therefore drops
 * quota.
 */
export class LeaseBook {
  readonly #leases: FrequencyMap<Lease>;
  /** Quota to return to the store with the next calls. */
  #returns: UnusedQuota[] = [];
  #latest = Number.NEGATIVE_INFINITY;
  #clockSteps = 0;

  constructor(max: number) {
    this.#leases = new FrequencyMap(max, (lease, now) => this.#release(lease, now));
  }

  /** The number of times that this isolate's clock has gone back. */
  get clockSteps(): number {
    return this.#clockSteps;
  }

  /**
   * Notes the time of this isolate's clock. If the clock has gone back, the quota of all leases is
   * queued, to be returned to the store.
   *
   * Leases rely on this clock for the ends of windows. If the clock goes back, Weir does not know by
   * how much, because it does not know how much time really passed since the last request. So it
   * cannot correct these ends. The store still knows them, so the quota goes back.
   */
  observe(now: number): void {
    const hasGoneBack = now < this.#latest;
    this.#latest = now;
    if (!hasGoneBack) return;
    this.#clockSteps += 1;
    for (const { counter, quota, snapshot } of this.#leases.clear()) {
      if (snapshot) this.#queueReturn({ counter, quota, window: snapshot.window });
    }
  }

  /**
   * Returns the lease of a counter if the lease's quota was charged under the counter's ceiling.
   * This call does not count as a use.
   */
  peek(counter: Counter): Lease | undefined {
    const lease = counter.leasable ? this.#leases.peek(counterId(counter)) : undefined;
    return lease?.counter.ceiling === counter.ceiling ? lease : undefined;
  }

  /**
   * Returns the quota of a counter that this isolate has leased and not used, also under the ceiling of
   * another tier. This call does not count as a use.
   */
  quotaOf(counter: Counter, now: number): number {
    const lease = this.#leases.peek(counterId(counter));
    return lease ? availableQuota(lease, now) : 0;
  }

  /**
   * Returns the lease for a counter's request. A request that takes quota counts as a use of the
   * lease, and opens a lease if the counter has none.
   *
   * @returns undefined if the counter is not leasable. The result is also undefined for a counter
   * without a lease, if the request takes no quota or the book is full of busier leases
   */
  findOrOpen(counter: Counter, now: number): Lease | undefined {
    const { cost, ceiling, checkOnly, leasable } = counter;
    if (!leasable) return undefined;
    const id = counterId(counter);
    const isUse = cost > 0 && !checkOnly;
    const lease = isUse ? this.#leases.use(id, now) : this.#leases.peek(id);
    if (!lease) return isUse ? this.#open(counter, now) : undefined;
    if (isUse) lease.meanCost += (cost - lease.meanCost) / lease.recentUses;
    if (lease.counter.ceiling !== ceiling) {
      // The quota was charged under the limit of a different tier. Only the store can check the
      // limit of this tier.
      this.#release(lease, now);
      lease.counter = counter;
    }
    return lease;
  }

  /**
   * Records a store's answer about a counter.
   *
   * @param quota the quota charged for later requests. This quota is added to the lease. If the
   * lease can no longer use the quota, a later call returns it to the store
   */
  record(lease: Lease, counter: Counter, tally: Tally, call: LeaseCall, quota: number): void {
    if (lease.isReset) return;
    const snapshot = snapshotOf(counter, tally, call);
    // After a step back of the clock, this isolate does not know when the window ends.
    if (this.#isCurrent(lease, counter) && call.clockSteps === this.#clockSteps) {
      addQuota(lease, quota, snapshot, call);
    } else {
      this.#queueReturn({ counter, quota, window: snapshot.window });
    }
  }

  /**
   * Puts quota back into the lease from which a request took it. If the lease's window or tier has
   * changed, the quota is returned to the store.
   */
  putBack(lease: Lease, counter: Counter, { quota, window }: TakenQuota): void {
    if (lease.isReset) return;
    if (lease.snapshot?.window === window && this.#isCurrent(lease, counter)) {
      lease.quota += quota;
    } else {
      this.#queueReturn({ counter, quota, window });
    }
  }

  /** Removes and returns the quota that the next call must return to the store. */
  takeReturns(now: number): UnusedQuota[] {
    this.#queueIdle(now);
    return this.#returns.splice(0, MAX_RETURNS_PER_CALL);
  }

  /** Empties the leases of counters. @returns their quota, which must be returned to the store */
  drain(counters: readonly Counter[], now: number): UnusedQuota[] {
    return counters.flatMap((counter): UnusedQuota[] => {
      const lease = this.#leases.peek(counterId(counter));
      if (!lease) return [];
      const unused = unusedQuotaOf(lease, now);
      lease.quota = 0;
      lease.snapshot = undefined;
      return unused ? [unused] : [];
    });
  }

  /**
   * Removes the leases of counters that were reset. The store no longer has the charges for the
   * leased quota.
   */
  discard(counters: readonly Counter[]): void {
    const ids = new Set(counters.map(counterId));
    for (const id of ids) {
      const lease = this.#leases.peek(id);
      if (lease) lease.isReset = true;
      this.#leases.delete(id);
    }
    this.#returns = this.#returns.filter(({ counter }) => !ids.has(counterId(counter)));
  }

  #open(counter: Counter, now: number): Lease | undefined {
    const lease = openLease(counter, now);
    return this.#leases.add(counterId(counter), lease) ? lease : undefined;
  }

  /** Moves idle leases, the least recently used first, to the returns of the next call. */
  #queueIdle(now: number): void {
    for (let count = this.#returns.length; count < MAX_RETURNS_PER_CALL; count++) {
      const [key, lease] = this.#leases.oldest() ?? [];
      if (!key || !lease || !isIdle(lease, now)) return;
      this.#leases.delete(key);
      this.#release(lease, now);
    }
  }

  /**
   * Whether a lease is still in the book and has the same ceiling as this counter. A counter's
   * ceiling changes if its client's tier changes.
   */
  #isCurrent(lease: Lease, counter: Counter): boolean {
    const isSameTier = lease.counter.ceiling === counter.ceiling;
    return isSameTier && this.#leases.peek(counterId(counter)) === lease;
  }

  #release(lease: Lease, now: number): void {
    const unused = unusedQuotaOf(lease, now);
    lease.quota = 0;
    if (unused) this.#queueReturn(unused);
  }

  #queueReturn(unused: UnusedQuota): void {
    if (unused.quota > 0 && this.#returns.length < MAX_RETURNS) this.#returns.push(unused);
  }
}
