import {
  type Adjustment,
  type Counter,
  type Demand,
  type GroupVerdict,
  type ReadRow,
  storedKey,
  windowAt,
  withCost,
} from "../../engine/counter.ts";

/** Quota that a decision has charged to a counter. */
interface HeldCharge {
  readonly counter: Demand;
  readonly key: string;
  readonly quota: number;
  /** The charged sub-window, if the counter has sub-windows. */
  readonly chargedIn: number | undefined;
}

/** The charges of one decision, which can still be released. */
export interface Hold {
  readonly charges: readonly HeldCharge[];
  /** The time that determines the windows of the charges, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** When the charges were made, by this object's clock. */
  readonly openedAt: number;
}

/**
 * The time in milliseconds after which a hold can no longer be released. A Worker lives no longer than this after
 * its client has hung up, so nobody would end the hold later. The object cannot know whether the request was
 * admitted, so the charge stays.
 */
const MAX_HOLD_MS = 30_000;

/** The maximum number of open holds, and of final holds. Above it, the oldest is dropped, and its charge stays. */
const MAX_HOLDS = 4096;

/**
 * The holds of one Durable Object, in memory. The charges themselves are in storage.
 *
 * An *open* hold is a charge that other objects may still deny, so that it is released. A *final* hold is the charge of
 * the object that decides last. It is released only if the object's answer is lost.
 */
export class Holds {
  readonly #open = new Map<string, Hold>();
  readonly #final = new Map<string, Hold>();
  /**
   * What was released before its charge arrived: maps the id of a hold or of a slot to the time of the release. A
   * charge that arrives later must not be made.
   */
  readonly #releasedEarly = new Map<string, number>();

  /** Adds the charges of an admitted group. */
  add(
    { id, isFinal }: { readonly id: string; readonly isFinal: boolean },
    counters: readonly Demand[],
    { tallies }: GroupVerdict,
    now: number,
  ): void {
    const charges = counters.flatMap((counter, index) => {
      const { charged = counter.cost, ring } = tallies[index] ?? {};
      const quota = counter.checkOnly ? 0 : charged;
      const key = storedKey(counter, now);
      return quota > 0 ? [{ counter, key, quota, chargedIn: ring?.window }] : [];
    });
    const hold = { charges, now, openedAt: Date.now() };
    addBounded(isFinal ? this.#final : this.#open, id, hold, ({ openedAt }) => openedAt);
  }

  /** Removes a hold, so that its charges can no longer be released. @returns undefined if there is no such hold */
  take(id: string): Hold | undefined {
    const hold = this.#open.get(id) ?? this.#final.get(id);
    this.#open.delete(id);
    this.#final.delete(id);
    return hold;
  }

  /** Remembers that a hold or a slot was released before its charge arrived. */
  releaseEarly(id: string): void {
    addBounded(this.#releasedEarly, id, Date.now(), (releasedAt) => releasedAt);
  }

  isReleasedEarly(id: string | undefined): boolean {
    return id !== undefined && this.#releasedEarly.has(id);
  }

  /** Returns the quota of a stored key that open holds may release. @param oldest the first sub-window that counts */
  openQuota(key: string, oldest = Number.NEGATIVE_INFINITY): number {
    const time = Date.now();
    let quota = 0;
    for (const { charges, openedAt } of this.#open.values()) {
      if (isTooOld(openedAt, time)) continue;
      for (const charge of charges) {
        if (charge.key === key && (charge.chargedIn ?? oldest) >= oldest) quota += charge.quota;
      }
    }
    return quota;
  }

  /** Removes the charges of counters from all holds, because a reset has removed these charges already. */
  drop(counters: readonly Counter[], now: number): void {
    const keys = new Set(counters.map((counter) => storedKey(counter, now)));
    for (const holds of [this.#open, this.#final]) {
      for (const [id, hold] of holds) {
        const charges = hold.charges.filter(({ key }) => !keys.has(key));
        if (charges.length < hold.charges.length) holds.set(id, { ...hold, charges });
      }
    }
  }
}

/** Returns counters whose negative costs return the charges of a released hold. */
export function returnsOf({ charges, now }: Hold, read: ReadRow): Adjustment[] {
  return charges
    .filter(({ counter, key }) => {
      // The quota granted since then may have repaid the charge. To return it could then admit requests above the limit.
      const row = counter.rollsOver ? read(key) : undefined;
      return !row || row.window <= windowAt(now, counter).index;
    })
    .map(({ counter, quota, chargedIn }) => ({
      ...withCost(counter, -quota),
      ...(chargedIn !== undefined && { chargedIn }),
    }));
}

/** Whether a hold is too old to be ended. The clock may have stepped back. */
function isTooOld(openedAt: number, time: number): boolean {
  return Math.abs(time - openedAt) >= MAX_HOLD_MS;
}

/**
 * Adds an entry. Removes entries that are too old, and the oldest entries if there are too many. The oldest entry
 * is the first one.
 */
function addBounded<Value>(
  entries: Map<string, Value>,
  id: string,
  value: Value,
  timeOf: (value: Value) => number,
): void {
  const time = timeOf(value);
  for (const [key, each] of entries) {
    if (!isTooOld(timeOf(each), time) && entries.size < MAX_HOLDS) break;
    entries.delete(key);
  }
  entries.set(id, value);
}
