import {
  type Counter,
  counterId,
  type Demand,
  type Ring,
  type Tally,
  type UnusedQuota,
  windowEndingNear,
  windowStart,
} from "../../engine/counter.ts";
import { sharedPromise } from "../../request/shared-promise.ts";
import { type Frequency, FrequencyMap } from "./frequency-map.ts";

/** A counter's state in the store's last answer, and the time for which this isolate may rely on this state. */
export interface CounterSnapshot {
  readonly count: number;
  /** The counts of its sub-windows, if the counter has any. */
  readonly ring: Ring | undefined;
  /** When the store decided, by the store's clock. */
  readonly decidedAt: number;
  /** The number of the window that `count` belongs to. */
  readonly window: number;
  /** The window's end by the store's clock. All answers for this window have the same end. */
  readonly endsAt: number;
  /** The end of a ban by the store's clock; 0 if there is no ban. */
  readonly bannedUntil: number;
  /** Whether the counter's rule is in shadow mode. The bans of such rules are stored separately. */
  readonly shadow: boolean | undefined;
  /** The time from which the snapshot is valid, by this isolate's clock. */
  readonly validFrom: number;
  /**
   * The time until which the snapshot is valid, by this isolate's clock. It is never later than the
   * window's true end.
   */
  readonly validUntil: number;
  /**
   * The store's clock minus this isolate's clock, in milliseconds. The true difference is higher by the time that the
   * answer took to arrive. 0 if the caller passed the time.
   */
  readonly clockOffsetMs: number;
}

/** The times of a call to the store. */
export interface StoreCall {
  /** When the call was sent, by this isolate's clock. */
  readonly sentAt: number;
  /** When the answer arrived, by this isolate's clock. */
  readonly answeredAt: number;
  /** When the store decided, by its own clock; or the time that the caller passed. */
  readonly decidedAt: number;
  /** Whether the caller passed the time, so that the caller's clock determines the windows. */
  readonly isGiven: boolean;
}

/**
 * Creates the snapshot of a counter from its tally. The store decided at some moment between `sentAt` and
 * `answeredAt`. So the window ends no earlier than `resetMs` after `sentAt`, and until then the count
 * certainly belongs to the current window.
 */
export function snapshotOf(counter: Counter, tally: Tally, call: StoreCall): CounterSnapshot {
  const { sentAt, answeredAt, decidedAt, isGiven } = call;
  const { count, ring, resetMs, banMs } = tally;
  // The nearest end is chosen, because `decidedAt` and `resetMs` may come from the clocks of two
  // objects, one of which may already be in the next window.
  const { index, startsAt, endsAt } = windowEndingNear(decidedAt + resetMs, counter);
  // The counts of sub-windows are known until the last of them does not count any more.
  const knownUntil = ring ? windowStart(counter, ring.window + ring.counts.length) : endsAt;
  return {
    count,
    ring,
    decidedAt,
    window: index,
    endsAt,
    bannedUntil: banMs > 0 ? decidedAt + banMs : 0,
    shadow: counter.shadow,
    // If the caller passed the time, the window's start and end are exact. A window of a counter with rollover can
    // begin after the passed time.
    validFrom: isGiven ? Math.min(startsAt, decidedAt) : sentAt,
    validUntil: isGiven ? knownUntil : sentAt + resetMs + knownUntil - endsAt,
    clockOffsetMs: isGiven ? 0 : decidedAt - answeredAt,
  };
}

/** @param now the time by this isolate's clock, or the time that the caller passed */
export function isValidAt({ validFrom, validUntil }: CounterSnapshot, now: number): boolean {
  return validFrom <= now && now < validUntil;
}

/** @param storeNow the time of the clock that determines the windows */
export function tallyOf(snapshot: CounterSnapshot, storeNow: number): Tally {
  const { count, ring } = snapshot;
  return {
    count,
    ...(ring && { ring }),
    resetMs: Math.max(1, snapshot.endsAt - storeNow),
    banMs: Math.max(0, snapshot.bannedUntil - storeNow),
  };
}

/** The time without use, in milliseconds, after which a lease is returned to the store. */
export const IDLE_MS = 5000;

/** Quota of one counter. The store has already charged this quota, and only this isolate may use it. */
export interface Lease extends Frequency {
  /** The counter as it was when the quota was charged. */
  counter: Demand;
  /** Quota not used yet, which is valid only in the window of `snapshot`. */
  quota: number;
  /** From the store's last answer; undefined before the first answer, and after the lease was drained. */
  snapshot: CounterSnapshot | undefined;
  /** The time until which a requested block is expected, by this isolate's clock; 0 if no block is expected. */
  refillPendingUntil: number;
  /** Quota that calls in flight may still bring: see {@link incomingQuota}. */
  incoming: number;
  /** The time until which `incoming` is expected, because the call of a killed invocation never ends. */
  incomingUntil: number;
  /** Wakes the requests that wait for one of these calls to end. */
  waiting: (() => void)[];
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
function openLease(counter: Demand, now: number): Lease {
  return {
    counter,
    quota: 0,
    snapshot: undefined,
    refillPendingUntil: 0,
    incoming: 0,
    incomingUntil: 0,
    waiting: [],
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

/**
 * Returns the quota that a lease may get from calls in flight: the blocks that they request, and the quota that their
 * requests have taken and put back if the store denies them.
 */
export function incomingQuota({ incoming, incomingUntil }: Lease, now: number): number {
  return now < incomingUntil ? incoming : 0;
}

export function expectIncoming(lease: Lease, quota: number, until: number, now: number): void {
  if (quota === 0) return;
  lease.incoming = incomingQuota(lease, now) + quota;
  lease.incomingUntil = until;
}

export function settleIncoming(lease: Lease, quota: number): void {
  if (quota === 0) return;
  lease.incoming = Math.max(0, lease.incoming - quota);
  for (const wake of lease.waiting.splice(0)) wake();
}

/** Resolves when the next call that may bring quota to a lease has ended. */
export function arrivalOf(lease: Lease): Promise<void> {
  // Each request has a promise of its own: with the request that has made a promise, all that wait for it would end.
  const { promise, resolve } = sharedPromise<void>();
  lease.waiting.push(resolve);
  return promise;
}

/** Whether a lease should be returned, because it was not used for {@link IDLE_MS}. */
export function isIdle({ lastUsedAt, refillPendingUntil }: Lease, now: number): boolean {
  return now - lastUsedAt >= IDLE_MS && refillPendingUntil <= now;
}

/** The quota that a lease can return to the store; undefined if none is left in its window. */
function unusedQuotaOf(lease: Lease, now: number): UnusedQuota | undefined {
  const quota = availableQuota(lease, now);
  if (quota === 0 || !lease.snapshot) return undefined;
  return { counter: lease.counter, quota, window: lease.snapshot.window };
}

/**
 * Adds charged quota to a lease and updates its snapshot. If the answer is for a window before the lease's window,
 * the answer and its quota are dropped.
 */
function addQuota(lease: Lease, quota: number, snapshot: CounterSnapshot, call: StoreCall): void {
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
 * Whether an answer must be dropped, because it is for a window before the window of the lease's snapshot. After that
 * snapshot has expired, such an answer is accepted: the store's clock may have stepped back.
 */
function isOutdated(answer: CounterSnapshot, previous: CounterSnapshot, call: StoreCall): boolean {
  if (answer.window >= previous.window) return false;
  return (call.isGiven ? call.decidedAt : call.answeredAt) < previous.validUntil;
}

/** Compares two snapshots of the same window. The answers may have arrived in any order. */
function isNewer(one: CounterSnapshot, other: CounterSnapshot): boolean {
  if (one.decidedAt !== other.decidedAt) return one.decidedAt > other.decidedAt;
  return one.count >= other.count;
}

/** The maximum number of leases whose unused quota one call returns. */
const MAX_RETURNS_PER_CALL = 8;

/** The maximum number of returns that wait for a call. That many returns take about 0.5 MB. */
const MAX_RETURNS = 1024;

/** A call for leased counters. */
export interface LeaseCall extends StoreCall {
  /** The value of {@link LeaseBook.clockSteps} when the call was sent. */
  readonly clockSteps: number;
}

/**
 * The leases of an isolate, at most `max` of them. The store has charged all leased quota. If leased quota is lost,
 * Weir may deny too many requests, but no limit is exceeded. So in doubt, the book drops quota.
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
   * Notes the time of this isolate's clock. If the clock has gone back, the ends of windows by this clock are
   * unknown. The quota of all leases is then queued, to be returned to the store.
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

  /** Returns the lease of a counter if the lease's quota was charged under the counter's ceiling. Counts no use. */
  peek(counter: Demand): Lease | undefined {
    const lease = counter.leasable ? this.#leases.peek(counterId(counter)) : undefined;
    return lease?.counter.ceiling === counter.ceiling ? lease : undefined;
  }

  /**
   * Returns the quota of a counter that this isolate has leased and not used, under the ceiling of any tier. Counts
   * no use.
   */
  quotaOf(counter: Counter, now: number): number {
    const lease = this.#leases.peek(counterId(counter));
    return lease ? availableQuota(lease, now) : 0;
  }

  /**
   * Returns the lease for a counter's request. A request that takes quota counts as a use. If the counter has no
   * lease, the request opens a lease, unless the book is full of busier leases.
   */
  findOrOpen(counter: Demand, now: number): Lease | undefined {
    const { cost, ceiling, checkOnly, leasable } = counter;
    if (!leasable) return undefined;
    const id = counterId(counter);
    const isUse = cost > 0 && !checkOnly;
    const lease = isUse ? this.#leases.use(id, now) : this.#leases.peek(id);
    if (!lease) return isUse ? this.#open(counter, now) : undefined;
    if (isUse) lease.meanCost += (cost - lease.meanCost) / lease.recentUses;
    if (lease.counter.ceiling !== ceiling) {
      // The quota was charged under another tier. Only the store can check the limit of the new tier.
      this.#release(lease, now);
      lease.counter = counter;
    }
    return lease;
  }

  /**
   * Records a store's answer about a counter.
   *
   * @param quota the quota charged for later requests. It is added to the lease, or returned to the store with a
   * later call if the lease can no longer use it
   */
  record(lease: Lease, counter: Demand, tally: Tally, call: LeaseCall, quota: number): void {
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
  putBack(lease: Lease, counter: Demand, { quota, window }: TakenQuota): void {
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

  /** Removes the leases of counters that were reset: the store no longer has the charges for them. */
  discard(counters: readonly Counter[]): void {
    const ids = new Set(counters.map(counterId));
    for (const id of ids) {
      const lease = this.#leases.peek(id);
      if (lease) lease.isReset = true;
      this.#leases.delete(id);
    }
    this.#returns = this.#returns.filter(({ counter }) => !ids.has(counterId(counter)));
  }

  #open(counter: Demand, now: number): Lease | undefined {
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

  /** Whether a lease is still in the book, and has the tier of this counter. */
  #isCurrent(lease: Lease, counter: Demand): boolean {
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
