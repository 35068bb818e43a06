import { type Counter, type Tally, type UnusedQuota, windowAt } from "../../engine/counter.ts";
import { BLOCK_SHARE } from "../../engine/fixed-window.ts";
import { DECAY_MS, type Frequency, FrequencyMap } from "./frequency-map.ts";
import { type CounterSnapshot, isValidAt, type StoreCall, snapshotOf } from "./snapshot.ts";

/** A lease that nobody has used for this long, in milliseconds, is given back. */
export const IDLE_MS = 5000;

/** Leases given back with one call at most, and how many may wait for one: about 0.5 MB. */
const MAX_UNUSED_PER_CALL = 8;
const MAX_UNUSED = 1024;

/** A fresh block is fetched while this many round trips' worth of requests is left of the old one. */
const ROUND_TRIPS_AHEAD = 3;

/** Quota of one counter that is charged to it already, to be used by this isolate alone. */
export interface Lease extends Frequency {
  /** As it was when the quota was bought. */
  counter: Counter;
  /** What is left, good for the window of `known`. */
  quota: number;
  snapshot: CounterSnapshot | undefined;
  /** Until when a block may be under way, by this isolate's clock; 0 when none is. */
  refillPendingUntil: number;
  /** Quota that a request takes, on the average of late. */
  meanCost: number;
  /** How long the last call took, in milliseconds. */
  roundTripMs: number;
  /** When it was opened, by this isolate's clock. */
  readonly openedAt: number;
  /** Whether its counter has been reset: what was charged for it is gone from the store. */
  isReset: boolean;
}

/** Quota that a request has taken from a lease, and the window that it is good for. */
export interface Taken {
  readonly quota: number;
  readonly window: number;
}

/**
 * The leases of an isolate: plain values, at most `max` of them.
 *
 * A lease is quota that has been charged. Losing one, or forgetting it, denies somebody who had room,
 * and never admits one too many; so whatever is in doubt is dropped.
 */
export class LeaseBook {
  readonly #leases: FrequencyMap<Lease>;
  /** To be given back with the next call. */
  #unused: UnusedQuota[] = [];
  #latest = Number.NEGATIVE_INFINITY;
  #steps = 0;

  constructor(max: number) {
    this.#leases = new FrequencyMap(max, (lease, now) => this.#release(lease, now));
  }

  /** How often this isolate's clock has gone back. */
  get steps(): number {
    return this.#steps;
  }

  /**
   * Notes the time by this isolate's clock.
   *
   * The ends of windows are known by that clock. How far it has gone back cannot be seen: between two
   * requests it may have run on and hidden most of the step. So after any step back all leases are
   * returned; the store still knows whether their windows last.
   */
  observe(now: number): void {
    const hasGoneBack = now < this.#latest;
    this.#latest = now;
    if (!hasGoneBack) return;
    this.#steps += 1;
    for (const { counter, quota, snapshot: known } of this.#leases.clear()) {
      if (known) this.#queue({ counter, quota, window: known.window });
    }
  }

  /** The lease that was bought for a counter, without noting a use. */
  peek({ key, ceiling, leasable }: Counter): Lease | undefined {
    const lease = leasable ? this.#leases.peek(key) : undefined;
    return lease?.counter.ceiling === ceiling ? lease : undefined;
  }

  /** The lease that a counter falls under; undefined when there is none, nor a place for one. */
  find(counter: Counter, now: number): Lease | undefined {
    const { key, cost, ceiling, checkOnly, leasable } = counter;
    if (!leasable) return undefined;
    const isUse = cost > 0 && !checkOnly;
    const lease = isUse ? this.#leases.use(key, now) : this.#leases.peek(key);
    if (!lease) return isUse ? this.#open(counter, now) : undefined;
    if (isUse) lease.meanCost += (cost - lease.meanCost) / lease.recentUses;
    if (lease.counter.ceiling !== ceiling) {
      // Bought for another tier's limit. Only the store can tell whether it is within this one.
      this.#release(lease, now);
      lease.counter = counter;
    }
    return lease;
  }

  /**
   * Takes in what a store has told of a counter, and quota that it has charged for later.
   *
   * @param steps how often the clock had gone back when the store was asked
   */
  record(
    lease: Lease,
    counter: Counter,
    tally: Tally,
    call: StoreCall,
    quota: number,
    steps = this.#steps,
  ): void {
    if (lease.isReset) return;
    const known = snapshotOf(counter, tally, call);
    // Bought for another limit; or the lease was evicted; or nobody knows by now when its window ends.
    const isOurs = this.#isBoughtFor(lease, counter) && steps === this.#steps;
    if (!isOurs) {
      this.#queue({ counter, quota, window: known.window });
      return;
    }
    // Overtaken by an answer of the next window.
    if (isOvertaken(known, lease.snapshot, call)) return;
    if (known.window !== lease.snapshot?.window) {
      lease.quota = 0;
      lease.snapshot = known;
    } else if (isLater(known, lease.snapshot)) {
      lease.snapshot = known;
    }
    lease.quota += quota;
    lease.roundTripMs = Math.max(0, call.answeredAt - call.sentAt) || lease.roundTripMs;
  }

  /** Puts back what was taken: into its lease, or into the store where the lease has moved on. */
  putBack(lease: Lease, counter: Counter, { quota, window }: Taken): void {
    if (lease.isReset) return;
    if (lease.snapshot?.window === window && this.#isBoughtFor(lease, counter))
      lease.quota += quota;
    else this.#queue({ counter, quota, window });
  }

  /** What is to be given back with a call that is about to be made. */
  takeReturns(now: number): UnusedQuota[] {
    this.#dropIdle(now);
    return this.#unused.splice(0, MAX_UNUSED_PER_CALL);
  }

  /** Empties the leases of counters that are about to be adjusted: what is to be given back first. */
  drain(counters: readonly Counter[], now: number): UnusedQuota[] {
    return counters.flatMap(({ key }): UnusedQuota[] => {
      const lease = this.#leases.peek(key);
      if (!lease) return [];
      const unused = unusedQuotaOf(lease, now);
      lease.quota = 0;
      lease.snapshot = undefined;
      return unused ? [unused] : [];
    });
  }

  /** Forgets counters that are reset: what was charged to them is gone. */
  discard(counters: readonly Counter[]): void {
    const keys = new Set(counters.map(({ key }) => key));
    for (const key of keys) {
      const lease = this.#leases.peek(key);
      if (lease) lease.isReset = true;
      this.#leases.delete(key);
    }
    this.#unused = this.#unused.filter(({ counter }) => !keys.has(counter.key));
  }

  #open(counter: Counter, now: number): Lease | undefined {
    const lease: Lease = {
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
    return this.#leases.add(counter.key, lease) ? lease : undefined;
  }

  /** Looks at the leases that were used least recently, as many as a call can give back. */
  #dropIdle(now: number): void {
    for (let looks = this.#unused.length; looks < MAX_UNUSED_PER_CALL; looks++) {
      const [key, lease] = this.#leases.oldest() ?? [];
      if (!key || !lease || !isIdle(lease, now)) return;
      this.#leases.delete(key);
      this.#release(lease, now);
    }
  }

  /** Whether a lease is still in use, for the limit that a counter has. */
  #isBoughtFor(lease: Lease, { key, ceiling }: Counter): boolean {
    return lease.counter.ceiling === ceiling && this.#leases.peek(key) === lease;
  }

  #release(lease: Lease, now: number): void {
    const unused = unusedQuotaOf(lease, now);
    lease.quota = 0;
    if (unused) this.#queue(unused);
  }

  #queue(unused: UnusedQuota): void {
    if (unused.quota > 0 && this.#unused.length < MAX_UNUSED) this.#unused.push(unused);
  }
}

/** Whether a lease is about to be given back. */
export function isIdle(
  { lastUsedAt, refillPendingUntil: askingUntil }: Lease,
  now: number,
): boolean {
  return now - lastUsedAt >= IDLE_MS && askingUntil <= now;
}

/** What a lease is good for by now. */
export function quotaOf({ quota, snapshot: known }: Lease, now: number): number {
  return known && isValidAt(known, now) ? quota : 0;
}

/**
 * The block to ask for: what is going to be used here in {@link DECAY_MS}, or in what is left of the
 * window, if it goes on like this; but at most twice what there was so far, the first request not
 * counted. More where requests come faster than a block can be fetched, so that it lasts for some
 * round trips. 0 for none.
 */
export function blockOf(lease: Lease, counter: Counter, now: number): number {
  const {
    recentUses,
    meanCost,
    snapshot: known,
    refillPendingUntil: askingUntil,
    openedAt,
  } = lease;
  // Another is under way; or a clock has gone back behind what is known, which is for later.
  if (askingUntil > now || (known && now < known.validFrom)) return 0;
  const leftMs = windowAt(now, counter).endsAt - now;
  const grown = recentUses / (1 - Math.exp(-(now - openedAt) / DECAY_MS));
  const usual = Math.min(grown, 2 * (recentUses - 1)) * Math.min(1, leftMs / DECAY_MS);
  const fast = Math.min(2 * requestsAhead(lease, now), 4 * (recentUses - 4));
  const used = known && isValidAt(known, now) ? known.count : 0;
  const share = Math.floor((counter.ceiling - used) / BLOCK_SHARE);
  return Math.min(share, Math.round(Math.round(Math.max(usual, fast)) * meanCost));
}

/** Requests that are going to come, at the present rate, while a block is fetched and a little longer. */
export function requestsAhead({ recentUses, openedAt, roundTripMs }: Lease, now: number): number {
  // Of a lease that is younger, all of the recentUses is of its own time.
  const ageMs = Math.min(DECAY_MS, Math.max(now - openedAt, roundTripMs, 1));
  return (recentUses / ageMs) * roundTripMs * ROUND_TRIPS_AHEAD;
}

/**
 * Whether an answer is about a window before the one that is known, and not because the store's clock
 * has been put back: past its end by our clock, the store knows better which window it is.
 */
function isOvertaken(
  answer: CounterSnapshot,
  known: CounterSnapshot | undefined,
  call: StoreCall,
): boolean {
  if (!known || answer.window >= known.window) return false;
  return (call.isGiven ? call.decidedAt : call.answeredAt) < known.validUntil;
}

/** Whether of two answers about one window the first was given later: they may come in any order. */
function isLater(one: CounterSnapshot, other: CounterSnapshot): boolean {
  if (one.decidedAt !== other.decidedAt) return one.decidedAt > other.decidedAt;
  return one.count >= other.count;
}

function unusedQuotaOf(lease: Lease, now: number): UnusedQuota | undefined {
  const quota = quotaOf(lease, now);
  if (quota === 0 || !lease.snapshot) return undefined;
  return { counter: lease.counter, quota, window: lease.snapshot.window };
}
