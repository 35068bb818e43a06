import { type Counter, type Tally, windowEndingNear } from "../../engine/counter.ts";

/** A counter's state in the store's last answer, and how long this isolate may rely on it. */
export interface CounterSnapshot {
  readonly count: number;
  /** When the store decided, by the store's clock. */
  readonly decidedAt: number;
  /** The number of the window that `count` belongs to. */
  readonly window: number;
  /** The window's end by the store's clock. All answers for this window have the same end. */
  readonly endsAt: number;
  /** The end of a ban by the store's clock; 0 if there is no ban. */
  readonly bannedUntil: number;
  /** Whether the counter's rule is in shadow mode. Such a rule has its own bans. */
  readonly shadow: boolean | undefined;
  /** The time from which the snapshot is valid, by this isolate's clock. */
  readonly validFrom: number;
  /**
   * The time until which the snapshot is valid, by this isolate's clock. It is never later than the
   * window's true end.
   */
  readonly validUntil: number;
  /**
   * The store's clock minus this isolate's, in milliseconds. The true difference is higher, by the
   * milliseconds that the answer took to arrive. The value is 0 if the caller passed the time.
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
 * Creates the snapshot of a counter from its tally.
 *
 * The store decided at some moment between `sentAt` and `answeredAt`. The window therefore ends no
 * earlier than `resetMs` after `sentAt`. Until then, the count certainly belongs to the current
 * window. The window ends no later than `resetMs` after `answeredAt`. The waiting time that clients
 * get also ends at that time.
 */
export function snapshotOf(counter: Counter, tally: Tally, call: StoreCall): CounterSnapshot {
  const { sentAt, answeredAt, decidedAt, isGiven } = call;
  const { count, resetMs, banMs } = tally;
  // The nearest end is chosen, because `decidedAt` and `resetMs` may come from the clocks of two
  // objects, and one of these clocks may already be in the next window. This can happen if a
  // group's counters are in several objects.
  const { index, startsAt, endsAt } = windowEndingNear(decidedAt + resetMs, counter);
  return {
    count,
    decidedAt,
    window: index,
    endsAt,
    bannedUntil: banMs > 0 ? decidedAt + banMs : 0,
    shadow: counter.shadow,
    // If the caller passed the time, the window's start and end are exact to the millisecond. If
    // quota rolls over, the window can begin after the time that was passed.
    validFrom: isGiven ? Math.min(startsAt, decidedAt) : sentAt,
    validUntil: isGiven ? endsAt : sentAt + resetMs,
    clockOffsetMs: isGiven ? 0 : decidedAt - answeredAt,
  };
}

/** @param now the time by this isolate's clock, or the time that the caller passed */
export function isValidAt({ validFrom, validUntil }: CounterSnapshot, now: number): boolean {
  return validFrom <= now && now < validUntil;
}

/** @param storeNow the time of the clock that determines the windows */
export function tallyOf(snapshot: CounterSnapshot, storeNow: number): Tally {
  return {
    count: snapshot.count,
    resetMs: Math.max(1, snapshot.endsAt - storeNow),
    banMs: Math.max(0, snapshot.bannedUntil - storeNow),
  };
}
