/** Maps the stored key of each full counter to the quota that it lacks for a request. */
export type Shortfall = ReadonlyMap<string, number>;

/** The stored keys of a hold's counters. */
type Keys = ReadonlyMap<string, unknown>;

const NO_SHORTFALL: Shortfall = new Map();

/**
 * The calls of one object that wait for holds to end, in the order of arrival.
 *
 * A release wakes a single call. When that call ends, it wakes the next call. So a release causes
 * approximately two decisions, however many calls wait.
 */
export class HoldWaiters {
  readonly #waiters = new Set<HoldWaiter>();
  /** The number of releases. A release wakes each waiter at most once. */
  #releases = 0;

  add(waiter: HoldWaiter): void {
    this.#waiters.add(waiter);
  }

  /** @returns whether the call was waiting */
  remove(waiter: HoldWaiter): boolean {
    return this.#waiters.delete(waiter);
  }

  /** Records that a hold was released. Wakes the first call that lacks quota of these keys. */
  recordRelease(keys: Keys): void {
    this.#releases += 1;
    this.wakeNext(keys);
  }

  /**
   * Records that a hold was kept. Wakes each call that lacks quota of these keys, unless the holds
   * that are still open may release enough quota for the call.
   */
  recordKept(keys: Keys, mayAdmit: (shortfall: Shortfall) => boolean): void {
    for (const waiter of this.#waiters) {
      if (waiter.lacksAnyOf(keys) && !mayAdmit(waiter.shortfall)) waiter.wake();
    }
  }

  /** Wakes the first call that lacks quota of these keys and was not woken by the last release. */
  wakeNext(keys: Keys): void {
    for (const waiter of this.#waiters) {
      if (waiter.wokenBy === this.#releases || !waiter.lacksAnyOf(keys)) continue;
      waiter.wokenBy = this.#releases;
      waiter.wake();
      return;
    }
  }
}

/** A call that may have to wait for holds to end, possibly several times. */
export class HoldWaiter {
  readonly #waiters: HoldWaiters;
  readonly #maxWaitMs: number;
  /** The number of the last release that woke this call; 0 if no release has woken it. */
  wokenBy = 0;
  #shortfall = NO_SHORTFALL;
  #hasTimedOut: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resume = () => {};

  constructor(waiters: HoldWaiters, maxWaitMs: number) {
    this.#waiters = waiters;
    this.#maxWaitMs = maxWaitMs;
    this.#hasTimedOut = maxWaitMs <= 0;
  }

  get shortfall(): Shortfall {
    return this.#shortfall;
  }

  /** Whether the call has waited for its maximum time. */
  get hasTimedOut(): boolean {
    return this.#hasTimedOut;
  }

  lacksAnyOf(keys: Keys): boolean {
    return [...this.#shortfall.keys()].some((key) => keys.has(key));
  }

  /**
   * Waits until a hold has ended and the decision may change, or until the maximum time has passed.
   */
  wait(shortfall: Shortfall): Promise<void> {
    this.#shortfall = shortfall;
    this.#waiters.add(this);
    // All waits of this call share one timer.
    this.#timer ??= setTimeout(() => {
      this.#hasTimedOut = true;
      this.#resume();
    }, this.#maxWaitMs);
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  wake(): void {
    this.#resume();
  }

  /**
   * Lets the next call use released quota that is too little for this call. This call continues to
   * wait.
   */
  wakeNext(): void {
    if (this.wokenBy > 0) this.#waiters.wakeNext(this.#shortfall);
  }

  /** Must be called when the call ends. Wakes the next call, because released quota may be left. */
  end(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    if (this.#waiters.remove(this)) this.wakeNext();
  }
}
