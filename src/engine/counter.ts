// Counters, and the keys under which stores keep them. All functions are pure: callers pass in
// `now`.

import type { Ban } from "../config/ban.ts";
import { type Calendar, DAY_MS } from "../config/calendar.ts";
import { calendarWindowAt, calendarWindowStart, type WindowBounds } from "./calendar-window.ts";

/** One quota of one client, as a store keeps it. */
export interface Counter {
  /**
   * The counter's key without the number of the window: `prefix:rule:window:identity`. Two counters can
   * have the same key: see {@link counterId}.
   */
  readonly key: string;
  /** The part of the key that identifies the client, or one of its shards. */
  readonly identity: string;
  /** Present if the counter is one of several shards. Each shard decides alone. */
  readonly shard?: { readonly client: string; readonly number: number };
  /**
   * The number of clients that share the identity, as a rank. A store that cannot decide all counters at once asks
   * for the client's own counters first. Values below `SHARED_REACH` belong to one client: see request/identity.ts.
   * All counters with the same identity have the same reach.
   *
   * @default 0
   */
  readonly reach?: number;
  /** The quota that each window grants. */
  readonly limit: number;
  /**
   * The length of the windows in milliseconds. For calendar windows, the longest possible length without changes of
   * the clocks.
   */
  readonly windowMs: number;
  /**
   * Present if the limit holds for every interval of this number of windows: see sub-windows.ts. Then `windowMs` is the
   * length of a sub-window.
   */
  readonly subWindows?: number;
  /** Windows begin at whole multiples of `windowMs` since the Unix epoch, plus this offset. */
  readonly offsetMs: number;
  /** The calendar of the windows, if they begin with a unit of the calendar. */
  readonly calendar?: Calendar;
  /** Whether unused quota rolls over. Used quota then counts until later windows repay it. */
  readonly rollsOver?: boolean;
  /** Whether isolates may take blocks of this quota. Stores ignore this field. */
  readonly leasable?: boolean;
  /** Whether the rule is in shadow mode. No other rule depends on such a rule. */
  readonly shadow?: boolean;
  /** Whether the rule has the mode `mark`. */
  readonly marks?: boolean;
  /** Present if a client is banned after exceeding the limit. */
  readonly ban?: Ban;
  /** Present if Weir reports when shares of this quota are used. Stores ignore this field: see stores/crossings.ts. */
  readonly notify?: Notify;
  /**
   * Present if the counter counts open requests: see slots.ts. Then `limit` is the maximum number of slots, and
   * `windowMs` is the time after which a slot expires. The cost is 1, or 0 for a read.
   */
  readonly slot?: number;
}

/** The shares of a quota at which its use is reported, in ascending order, and what the events contain. */
export interface Notify {
  readonly rule: string;
  readonly policy: string;
  readonly tier?: string | undefined;
  readonly shares: readonly number[];
  /** The quota that `shares` divide: the maximum count without reservations. */
  readonly capacity: number;
}

/** A counter, and the quota that one request takes. */
export interface Demand extends Counter {
  /** The quota that this request takes. */
  readonly cost: number;
  /**
   * The maximum count after this request. Usually this is the limit. It is higher if unused quota rolls over, and
   * even higher if this request may reserve quota of later windows.
   */
  readonly ceiling: number;
  /** The maximum count without reservations. Present if requests may reserve quota of later windows. */
  readonly capacity?: number;
  /** Whether the store only checks that quota is left, and never charges the counter. */
  readonly checkOnly?: boolean;
  /**
   * Quota for this request and for later requests. If enough quota is left, the store charges up to
   * this amount instead of the cost. The caller can then admit later requests from memory. See
   * `chargeOf` in fixed-window.ts.
   */
  readonly block?: number;
  /** Whether this request obeys existing bans but never starts a ban. */
  readonly neverBans?: boolean;
}

/** Returns the same demand for another quota. */
export function withCost(demand: Demand, cost: number): Demand {
  return { ...demand, cost };
}

/** A counter, and the cost to add to its count even if no quota is left. */
export interface Adjustment extends Counter {
  /** The quota to add; negative for a refund. */
  readonly cost: number;
  /**
   * The number of the window in which the original cost was charged. If the count belongs to another window, the
   * count stays unchanged, because quota of an ended window cannot be given back.
   */
  readonly chargedIn?: number;
}

/** A counter whose count, ban and strikes are removed. */
export interface Removal extends Counter {
  /** Whether the count stays, so that only the ban and the strikes are removed. */
  readonly keepsCount?: boolean;
}

/** The counts of a sub-window and of those before it, the newest first. */
export interface Ring {
  /** The number of the newest sub-window. It is charged. */
  readonly window: number;
  readonly counts: readonly number[];
}

/** A counter's state after a decision. */
export interface Tally {
  /** Quota used in the current window, including this request's cost if it was charged. */
  readonly count: number;
  /** The counts of which `count` is the sum. Present if the counter has sub-windows. */
  readonly ring?: Ring;
  /**
   * Milliseconds until the current window ends, or until the first sub-window with a count does not count any more;
   * always more than 0. A counter with rollover or sub-windows cannot return to a window before its last charge. So if a
   * clock has stepped back, or the start of the windows was changed, its current window can be later than the window at
   * the clock's time.
   */
  readonly resetMs: number;
  /** Milliseconds until the client's ban ends; 0 if there is no ban. */
  readonly banMs: number;
  /**
   * The quota that this decision charged: at least the cost, or 0 after a denial. Present if the
   * request has a `block`.
   */
  readonly charged?: number;
  /**
   * Whether the count comes from a cache, or includes charges that may be returned soon. Caches must not store such a
   * count.
   */
  readonly isUncertain?: true;
  /**
   * The time in milliseconds after which a denied request should be repeated. Present only if another request holds the
   * missing quota, and may give it back at any moment.
   */
  readonly retryMs?: number;
  /**
   * The number of the window that was charged. Present only if this counter and the first counter
   * of the group were decided by two clocks, and the clocks show different windows.
   */
  readonly chargedIn?: number;
}

/** Quota that was charged in a window and will not be used. */
export interface UnusedQuota {
  readonly counter: Counter;
  readonly quota: number;
  /**
   * The number of the window in which the quota was charged. After this window ends, the quota
   * cannot be returned.
   */
  readonly window: number;
}

/** The decision on a group of counters. */
export interface GroupVerdict {
  readonly admitted: boolean;
  /** One tally for each counter, in the group's order. */
  readonly tallies: readonly Tally[];
}

/** An open request of a client: its random id, and its expiry in milliseconds since the Unix epoch. See slots.ts. */
export type Slot = readonly [id: number, expiresAt: number];

/** The value that a store keeps under a key until it expires. */
export interface Row {
  /** The number of the window in which the row was written. */
  readonly window: number;
  readonly count: number;
  /** The time at which the row expires, in milliseconds since the Unix epoch. */
  readonly expiresAt: number;
  /** The counts of `window` and of the sub-windows before it, the newest first. `count` is their sum. */
  readonly counts?: readonly number[];
  /** The open slots, if the counter counts open requests. `count` is their number. */
  readonly slots?: readonly Slot[];
}

/** Returns the row stored under a key, unless it has expired. */
export type ReadRow = (key: string) => Row | undefined;

/** The rows to store, by their keys. The value `undefined` means that the store removes the key. */
export type Writes = ReadonlyMap<string, Row | undefined>;

/** The maximum count, 2^53 - 1. JavaScript and Lua represent all integers up to this number exactly. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/** The fields of a counter that determine its windows. */
export type Windows = Pick<Counter, "windowMs" | "offsetMs" | "calendar">;

/**
 * Returns the window that contains a time. Its number is W = ⌊(now − offset) / length⌋, and it ends
 * at (W + 1) · length + offset. A calendar window is numbered by the days, weeks, months or years
 * since 1970.
 */
export function windowAt(now: number, windows: Windows): { index: number; endsAt: number } {
  if (windows.calendar) return calendarWindowAt(windows.calendar, now);
  const { windowMs, offsetMs } = windows;
  const index = Math.floor((now - offsetMs) / windowMs);
  return { index, endsAt: (index + 1) * windowMs + offsetMs };
}

/** Returns the time at which the window with this number begins and the previous window ends. */
export function windowStart(windows: Windows, index: number): number {
  const { windowMs, offsetMs, calendar } = windows;
  return calendar ? calendarWindowStart(calendar, index) : index * windowMs + offsetMs;
}

/**
 * Returns the window whose end is nearest to a time. A time that was computed from two clocks may differ a little
 * from the exact end.
 */
export function windowEndingNear(time: number, windows: Windows): WindowBounds {
  const { windowMs, offsetMs, calendar } = windows;
  if (!calendar) {
    const index = Math.round((time - offsetMs) / windowMs) - 1;
    return {
      index,
      startsAt: windowStart(windows, index),
      endsAt: windowStart(windows, index + 1),
    };
  }
  const window = calendarWindowAt(calendar, time);
  const isBefore = time - window.startsAt <= window.endsAt - time;
  return isBefore ? calendarWindowAt(calendar, window.startsAt - 1) : window;
}

/** Returns the time until which a charge that is made now counts. */
export function countsUntil(now: number, counter: Counter): number {
  return windowStart(counter, windowAt(now, counter).index + 1 + (counter.subWindows ?? 0));
}

/** Returns the longest length that a counter's windows can have. Clocks are changed by at most a day. */
export function longestWindowMs({ windowMs, calendar }: Windows): number {
  return calendar ? windowMs + DAY_MS : windowMs;
}

/**
 * Returns the key of a counter's row: `prefix:rule:window:identity:W`. W is the number of the
 * window. If quota rolls over, or if the counter has sub-windows or counts open requests, the key has no W.
 */
export function storedKey(counter: Counter, now: number): string {
  return counter.rollsOver || (counter.slot ?? counter.subWindows) !== undefined
    ? counter.key
    : windowKey(counter.key, windowAt(now, counter).index);
}

/**
 * Returns a text that identifies a stored counter in all windows. A counter with rollover and a counter without it
 * are stored separately, although they can have the same `key`: for example if only one of a rule's tiers has a
 * `capacity`. Code that remembers counters must use this text.
 */
export function counterId({ key, rollsOver }: Pick<Counter, "key" | "rollsOver">): string {
  return rollsOver ? `${key}+` : key;
}

/** Returns the key of a row in one window, for counters that do not roll over. */
export function windowKey(key: string, window: number): string {
  return `${key}:${window}`;
}
