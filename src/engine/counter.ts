// What stores count, and where each count is stored. Pure: `now` is passed in.

/** One quota of one client, as a request asks a store for it. */
export interface Counter {
  /** Names the counter without its window: `prefix:rule:window:identity`. */
  readonly key: string;
  /** The part of the key that identifies the client. */
  readonly identity: string;
  /** Quota that every window grants. */
  readonly limit: number;
  readonly windowMs: number;
  /** Windows begin at whole multiples of `windowMs` since the Unix epoch, plus this offset. */
  readonly offsetMs: number;
  /** Quota that this request takes. */
  readonly cost: number;
  /**
   * The largest count that this request may lead to. Usually the limit; higher where unused quota
   * rolls over, and higher again where this request may reserve quota of later windows.
   */
  readonly ceiling: number;
  /** Whether used quota stays used until the grants of later windows have repaid it. */
  readonly rollsOver?: boolean;
  /** Whether the store only checks that quota is left, and never charges the counter. */
  readonly checkOnly?: boolean;
  /**
   * Quota that may be charged instead of the cost when plenty is left. The caller can then admit
   * later requests from memory. See `chargeOf` in fixed-window.ts.
   */
  readonly block?: number;
  /** Whether the caller may take blocks of this quota. Stores ignore it. */
  readonly leasable?: boolean;
  /** Whether the rule is in shadow mode: no enforced rule may fail with it or wait for it. */
  readonly shadow?: boolean;
  /** How long a client is banned after exceeding the limit, in milliseconds. */
  readonly banMs?: number;
  /** Whether this request respects bans but never starts one. */
  readonly neverBans?: boolean;
  /**
   * A second counter of the same quota, with a ceiling that is not higher. The store decides on the
   * one with more quota left and charges it. It reports that one's count under this counter's
   * ceiling, so that `ceiling - count` is its quota left.
   */
  readonly alternative?: Counter;
}

/** A counter's state after a decision. */
export interface Tally {
  /** Quota used in the current window, including this request's cost if it was charged. */
  readonly count: number;
  /** Milliseconds until the current window ends, always more than 0. */
  readonly resetMs: number;
  /** Milliseconds until the client's ban ends; 0 without a ban. */
  readonly banMs: number;
  /** Quota charged, present if the request named a `block`: at least the cost, or 0 when denied. */
  readonly charged?: number;
}

/** Quota that was charged in a window and will not be used. */
export interface UnusedQuota {
  readonly counter: Counter;
  readonly quota: number;
  /** The number of that window. After its end the quota cannot be returned. */
  readonly window: number;
}

/** The decision on a group: counters that are charged all together or not at all. */
export interface GroupVerdict {
  readonly admitted: boolean;
  /** One for each counter, in the group's order. */
  readonly tallies: readonly Tally[];
}

/** The value stored under a key until it expires. */
export interface Row {
  /** The number of the window in which the row was written. */
  readonly window: number;
  readonly count: number;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number;
}

/** Returns the row stored under a key, unless it has expired. */
export type ReadRow = (key: string) => Row | undefined;

/** Rows to store, by key. A key with the value `undefined` is to be removed. */
export type Writes = ReadonlyMap<string, Row | undefined>;

/** The largest count: 2^53 - 1, up to which both JavaScript and Lua represent every integer. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/**
 * The window that contains a moment: W = ⌊(now − offset) / length⌋, which ends at
 * (W + 1) · length + offset.
 */
export function windowAt(
  now: number,
  { windowMs, offsetMs }: Pick<Counter, "windowMs" | "offsetMs">,
): { index: number; endsAt: number } {
  const index = Math.floor((now - offsetMs) / windowMs);
  return { index, endsAt: (index + 1) * windowMs + offsetMs };
}

/** The key of a counter's row: `prefix:rule:window:identity:W`, without W if it rolls over. */
export function storedKey(counter: Counter, now: number): string {
  return counter.rollsOver ? counter.key : `${counter.key}:${windowAt(now, counter).index}`;
}

/** The key of the row that stores a counter's ban. */
export function banKey({ key }: Counter): string {
  return `${key}:ban`;
}
