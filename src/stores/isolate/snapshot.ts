import type { Counter, Tally } from "../../engine/counter.ts";

/** What a store has told of a counter, and between which times of this isolate's clock it holds. */
export interface CounterSnapshot {
  readonly count: number;
  /** When the store decided, by its clock. */
  readonly decidedAt: number;
  /** The window's number. */
  readonly window: number;
  /** Its end, by the store's clock: every answer about one window gives one and the same. */
  readonly endsAt: number;
  /** When a ban ends, by the store's clock; 0 when there is none. */
  readonly bannedUntil: number;
  /** Not before this, by this isolate's clock. */
  readonly validFrom: number;
  /** Before this, by this isolate's clock: no later than the window's true end. */
  readonly validUntil: number;
  /** What is added to this isolate's clock for that of the store: rather too little than too much. */
  readonly clockOffsetMs: number;
}

/** When a call was sent and answered, by this isolate's clock, and the clock that it was decided by. */
export interface StoreCall {
  readonly sentAt: number;
  readonly answeredAt: number;
  /** When the store decided, by its own clock; or the time that it was given to decide by. */
  readonly decidedAt: number;
  readonly isGiven: boolean;
}

/**
 * What a tally says for the time to come.
 *
 * The store decided somewhere between the call and its answer. So a window ends no earlier than
 * `resetMs` after the call, until when the count is about the current window for sure; and no later
 * than `resetMs` after the answer, which is what a client is told.
 */
export function snapshotOf(counter: Counter, tally: Tally, call: StoreCall): CounterSnapshot {
  const { sentAt, answeredAt, decidedAt, isGiven } = call;
  const { count, resetMs, banMs } = tally;
  const { windowMs, offsetMs } = counter;
  // Where counters live in several places, the time is that of one and the rest that of another,
  // which may be on the other side of a window's edge.
  const window = Math.round((decidedAt + resetMs - offsetMs) / windowMs) - 1;
  const endsAt = (window + 1) * windowMs + offsetMs;
  const bannedUntil = banMs > 0 ? decidedAt + banMs : 0;
  // Whose clock is ours holds for the whole of its window, and to the millisecond.
  const [from, until] = isGiven ? [endsAt - windowMs, endsAt] : [sentAt, sentAt + resetMs];
  const ahead = isGiven ? 0 : decidedAt - answeredAt;
  return {
    count,
    decidedAt,
    window,
    endsAt,
    bannedUntil,
    validFrom: from,
    validUntil: until,
    clockOffsetMs: ahead,
  };
}

export function isValidAt(
  { validFrom: from, validUntil: until }: CounterSnapshot,
  now: number,
): boolean {
  return from <= now && now < until;
}

/** @param storeNow by the clock that placed the window */
export function tallyOf(known: CounterSnapshot, storeNow: number): Tally {
  return {
    count: known.count,
    resetMs: Math.max(1, known.endsAt - storeNow),
    banMs: Math.max(0, known.bannedUntil - storeNow),
  };
}
