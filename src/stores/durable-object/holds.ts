import {
  type Adjustment,
  byPlace,
  type Counter,
  type Demand,
  type GroupVerdict,
  type ReadRow,
  type Refund,
  storedKey,
  type Tally,
  windowAt,
  withCost,
} from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";

/** Charges of a decision that can still be released. */
interface Hold {
  readonly charges: readonly HeldCharge[];
  /** When the charges were made, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Quota that a hold has charged to a counter. */
export interface HeldCharge {
  readonly counter: Demand;
  readonly quota: number;
  /** The count after the charge. */
  readonly count: number;
}

/** The charges of an admitted group. */
export function heldChargesOf(
  counters: readonly Demand[],
  { tallies }: GroupVerdict,
): HeldCharge[] {
  return counters.flatMap((counter, index) => {
    const { cost, checkOnly } = counter;
    const { charged = cost, count = 0 } = tallies[index] ?? {};
    const quota = checkOnly ? 0 : charged;
    return quota > 0 ? [{ counter, quota, count }] : [];
  });
}

/** Returns counters whose negative costs take back the charges of a released hold. */
function refundsOf({ charges, now }: Hold, read: ReadRow): Adjustment[] {
  return charges
    .filter(({ counter }) => !wasChargedLater(counter, now, read))
    .map(({ counter, quota, count }) => {
      const refund = withCost(counter, -quota);
      if (counter.capacity === undefined) return refund;
      // Other requests may have reserved quota after this charge.
      const upTo = Math.max(count, counter.capacity);
      return { ...refund, chargedIn: windowAt(now, counter).index, upTo };
    });
}

export function isRefund(each: Adjustment): each is Refund {
  return each.upTo !== undefined;
}

/**
 * Whether a counter with rollover was charged in a later window than the hold. The quota granted since then may
 * have repaid the hold's charge. Taking back the charge could then admit requests above the limit.
 */
function wasChargedLater(counter: Counter, heldAt: number, read: ReadRow): boolean {
  const row = counter.rollsOver ? read(storedKey(counter, heldAt)) : undefined;
  return row !== undefined && row.window > windowAt(heldAt, counter).index;
}

/** Maps the stored key of each full counter to the quota that a request lacks there. */
export type Shortfall = ReadonlyMap<string, number>;

/** The stored keys of a hold's counters. */
type Keys = ReadonlyMap<string, unknown>;

/**
 * The calls to one object that wait for holds to end, in the order of arrival. A release wakes a single call. When
 * the woken call ends, it wakes the next one. So a release causes about two decisions, however many calls wait.
 */
class HoldWaiters {
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
   * Records that a hold was kept. Wakes each call that lacks quota of these keys and will be denied even if all
   * remaining open holds are released.
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
class HoldWaiter {
  readonly #waiters: HoldWaiters;
  readonly #maxWaitMs: number;
  /** The number of the last release that woke this call; 0 if no release has woken it. */
  wokenBy = 0;
  shortfall: Shortfall = new Map();
  /** Whether the call has waited for its maximum time. */
  hasTimedOut: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #resume = () => {};

  constructor(waiters: HoldWaiters, maxWaitMs: number) {
    this.#waiters = waiters;
    this.#maxWaitMs = maxWaitMs;
    this.hasTimedOut = maxWaitMs <= 0;
  }

  lacksAnyOf(keys: Keys): boolean {
    return [...this.shortfall.keys()].some((key) => keys.has(key));
  }

  /**
   * Waits until a hold has ended and the decision may change, or until the maximum time has passed.
   */
  wait(shortfall: Shortfall): Promise<void> {
    this.shortfall = shortfall;
    this.#waiters.add(this);
    // All waits of this call share one timer.
    this.#timer ??= setTimeout(() => {
      this.hasTimedOut = true;
      this.#resume();
    }, this.#maxWaitMs);
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  wake(): void {
    this.#resume();
  }

  /** Wakes the next call, because the released quota is too little for this call. This call continues to wait. */
  wakeNext(): void {
    if (this.wokenBy > 0) this.#waiters.wakeNext(this.shortfall);
  }

  /** Must be called when the call ends. Wakes the next call, because released quota may be left. */
  end(): void {
    if (this.#timer !== undefined) clearTimeout(this.#timer);
    if (this.#waiters.remove(this)) this.wakeNext();
  }
}

interface StoredHold extends Hold {
  /** When the hold was opened, by this object's clock. */
  readonly openedAt: number;
  /** Maps the stored key of each counter to the quota charged. */
  readonly quotas: ReadonlyMap<string, number>;
}

/**
 * The time in milliseconds after which a hold can no longer be released. A Worker lives no longer than this after
 * its client has hung up, so nobody would end the hold later. The object cannot know whether the request was
 * admitted, so the charge stays.
 */
const MAX_HOLD_MS = 30_000;

/**
 * The maximum number of open holds, and of final holds. Above it, the oldest hold is dropped, and its charge stays.
 */
const MAX_HOLDS = 4096;

/**
 * The holds of one Durable Object, and the calls that wait for them, in memory. The charges themselves are in
 * storage.
 *
 * There are two kinds of holds. An *open* hold is the charge of one object while other objects must still decide.
 * Calls that find no quota left wait for open holds. A *final* hold is the charge of the last object, whose
 * decision is final. No call waits for a final hold. It can be released if the object's answer is lost.
 */
export class OpenHolds {
  readonly #open = new Map<string, StoredHold>();
  readonly #final = new Map<string, StoredHold>();
  /**
   * The holds that were released before their charges arrived: maps a hold's id to the time of its release. A charge
   * that arrives later must not be made.
   */
  readonly #releasedEarly = new Map<string, number>();
  /** The refunds of released holds that were not made yet, because other requests had reserved quota after them. */
  readonly #postponed = new Map<Refund, number>();
  readonly #waiters = new HoldWaiters();

  addOpen(id: string, charges: readonly HeldCharge[], now: number): void {
    addHold(this.#open, id, charges, now);
  }

  addFinal(id: string, charges: readonly HeldCharge[], now: number): void {
    addHold(this.#final, id, charges, now);
  }

  isReleasedEarly(id: string | undefined): boolean {
    return id !== undefined && this.#releasedEarly.has(id);
  }

  /** Ends a hold. @returns the hold if its charges must be returned */
  end(id: string, keep: boolean): Hold | undefined {
    const hold = this.#open.get(id) ?? this.#final.get(id);
    if (!hold) {
      if (!keep) addBounded(this.#releasedEarly, id, Date.now(), (releasedAt) => releasedAt);
      return undefined;
    }
    this.#remove(id, hold, keep);
    return keep ? undefined : hold;
  }

  /** Returns the refunds of a released hold, and those of the same counters that were postponed; the last place first. */
  takeRefunds(hold: Hold, read: ReadRow): Adjustment[] {
    const all = refundsOf(hold, read);
    const refunds = all.filter(isRefund);
    /** The window of each counter's last charge. Later windows may have repaid the charges of earlier ones. */
    const windows = new Map(refunds.map(({ key }) => [key, read(key)?.window ?? 0]));
    for (const each of this.#postponed.keys()) {
      const window = windows.get(each.key);
      if (window === undefined) continue;
      this.#postponed.delete(each);
      if (window <= each.chargedIn) refunds.push(each);
    }
    return [...all.filter((each) => !isRefund(each)), ...refunds.sort(byPlace)];
  }

  /** Remembers a refund, because the requests that have reserved quota after it may still give theirs back. */
  postpone(refund: Refund): void {
    addBounded(this.#postponed, refund, Date.now(), (postponedAt) => postponedAt);
  }

  /** Wakes a call that lacks quota of these stored keys, because some of it was returned. */
  wake(keys: readonly string[]): void {
    this.#waiters.recordRelease(new Map(keys.map((key) => [key, undefined])));
  }

  /**
   * Removes the charges of counters that are reset from their holds, because the reset has removed these charges
   * already. A hold keeps its charges of other counters.
   */
  drop(counters: readonly Counter[], now: number): void {
    const keys = new Set(counters.map((counter) => storedKey(counter, now)));
    for (const each of this.#postponed.keys()) if (keys.has(each.key)) this.#postponed.delete(each);
    for (const holds of [this.#open, this.#final]) {
      for (const [id, hold] of holds) {
        if (![...hold.quotas.keys()].some((key) => keys.has(key))) continue;
        const charges = hold.charges.filter(
          ({ counter }) => !keys.has(storedKey(counter, hold.now)),
        );
        const quotas = new Map([...hold.quotas].filter(([key]) => !keys.has(key)));
        if (charges.length > 0) holds.set(id, { ...hold, charges, quotas });
        else holds.delete(id);
        this.#waiters.recordRelease(hold.quotas);
      }
    }
  }

  /**
   * Returns the quota that a denied group lacks. Returns undefined if the open holds cannot release this much,
   * because the group would be denied even after a wait.
   *
   * @param maxAgeMs the age in milliseconds from which holds are ignored, because their Workers have probably ended
   */
  findShortfall(
    counters: readonly Demand[],
    tallies: readonly Tally[],
    now: number,
    maxAgeMs: number,
  ): Shortfall | undefined {
    if (this.#open.size === 0) return undefined;
    const shortfall = new Map<string, number>();
    for (const [index, counter] of counters.entries()) {
      const { count } = tallies[index] as Tally;
      if (hasQuota(counter, count)) continue;
      shortfall.set(storedKey(counter, now), count + counter.cost - counter.ceiling);
    }
    return this.#canRelease(shortfall, maxAgeMs) ? shortfall : undefined;
  }

  createWaiter(maxWaitMs: number): HoldWaiter {
    return new HoldWaiter(this.#waiters, maxWaitMs);
  }

  #remove(id: string, hold: StoredHold, keep: boolean): void {
    this.#open.delete(id);
    this.#final.delete(id);
    if (!keep) this.#waiters.recordRelease(hold.quotas);
    else {
      const mayAdmit = (shortfall: Shortfall) => this.#canRelease(shortfall, MAX_HOLD_MS);
      this.#waiters.recordKept(hold.quotas, mayAdmit);
    }
  }

  /** Whether the open holds have charged at least the missing quota. */
  #canRelease(shortfall: Shortfall, maxAgeMs: number): boolean {
    const time = Date.now();
    const isEnough = ([key, missing]: [string, number]) => {
      let remaining = missing;
      for (const { quotas, openedAt } of this.#open.values()) {
        if (Math.abs(time - openedAt) < maxAgeMs) remaining -= quotas.get(key) ?? 0;
        if (remaining <= 0) return true;
      }
      return false;
    };
    return shortfall.size > 0 && [...shortfall].every(isEnough);
  }
}

function addHold(
  holds: Map<string, StoredHold>,
  id: string,
  charges: readonly HeldCharge[],
  now: number,
): void {
  const quotas = new Map(charges.map(({ counter, quota }) => [storedKey(counter, now), quota]));
  const hold = { charges, now, quotas, openedAt: Date.now() };
  addBounded(holds, id, hold, ({ openedAt }) => openedAt);
}

/**
 * Adds an entry. Removes entries that are too old, and the oldest entries if there are too many. The oldest entry
 * is the first one.
 */
function addBounded<Id, Value>(
  entries: Map<Id, Value>,
  id: Id,
  value: Value,
  timeOf: (value: Value) => number,
): void {
  const oldest = timeOf(value) - MAX_HOLD_MS;
  for (const [key, each] of entries) {
    if (timeOf(each) > oldest && entries.size < MAX_HOLDS) break;
    entries.delete(key);
  }
  entries.set(id, value);
}
