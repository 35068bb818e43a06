/** Quota that full counters lack for a request, by stored key. */
export type Shortfall = ReadonlyMap<string, number>;

/** The stored keys of a hold's counters. */
type Keys = ReadonlyMap<string, unknown>;

const NO_SHORTFALL: Shortfall = new Map();

/**
 * The calls of one object that wait for holds to end, in the order of arrival.
 *
 * A release wakes a single call, which wakes the next one when it is done. So quota that is released
 * costs about two decisions, however many calls wait for it.
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

  /** Wakes the first call that lacks quota of a hold that was released. */
  recordRelease(keys: Keys): void {
    this.#releases += 1;
    this.wakeNext(keys);
  }

  /** Wakes the calls that lack quota of a hold that was kept, unless another hold may admit them. */
  recordKept(keys: Keys, mayAdmit: (shortfall: Shortfall) => boolean): void {
    for (const waiter of this.#waiters) {
      if (waiter.lacksAnyOf(keys) && !mayAdmit(waiter.shortfall)) waiter.wake();
    }
  }

  /** Wakes the first call that lacks quota of these keys and was not yet woken by the last release. */
  wakeNext(keys: Keys): void {
    for (const waiter of this.#waiters) {
      if (waiter.wokenBy === this.#releases || !waiter.lacksAnyOf(keys)) continue;
      waiter.wokenBy = this.#releases;
      waiter.wake();
      return;
    }
  }
}

/** A call that may have to wait, several times, for holds to end. */
export class HoldWaiter {
  readonly #waiters: HoldWaiters;
  readonly #maxWaitMs: number;
  /** The number of the release that last woke the call; 0 if none has. */
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

  /** Whether the call has waited as long as it may. */
  get hasTimedOut(): boolean {
    return this.#hasTimedOut;
  }

  lacksAnyOf(keys: Keys): boolean {
    return [...this.#shortfall.keys()].some((key) => keys.has(key));
  }

  /** Waits until a hold ends that may change the decision, or until the time is up. */
  wait(shortfall: Shortfall): Promise<void> {
    this.#shortfall = shortfall;
    this.#waiters.add(this);
    // One timer for all waits of this call.
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

  /** Lets the next call use released quota that is too little for this call, which waits on. */
  wakeNext(): void {
    if (this.wokenBy > 0) this.#waiters.wakeNext(this.#shortfall);
  }

  /** Must be called when the call ends. Wakes the next call, because released quota may be left. */
  end(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    if (this.#waiters.remove(this)) this.wakeNext();
  }
}
