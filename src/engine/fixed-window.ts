// The fixed-window counter. No clock, no I/O, no `this`: `now` and the stored state are passed in.
// The Lua script in stores/fixed-window-script.ts is its twin; one suite holds both to one result.
//
// Policy: a request is admitted if and only if every counter has room for its cost. Then every
// counter is charged; otherwise none is, so a denied request never consumes quota.

/** One quota of one client, as a store is asked about it. */
export interface Counter {
  /** Names the counter, but for its window: `prefix:rule:window:identity`. */
  readonly key: string;
  /** The part of the key that says who is counted. */
  readonly identity: string;
  /** Quota that every window grants. */
  readonly limit: number;
  readonly windowMs: number;
  /** Where windows begin: whole windows after this many milliseconds past the Unix epoch. */
  readonly offsetMs: number;
  /** Quota that this request takes. */
  readonly cost: number;
  /**
   * What may be used at most, this request included: the limit; more where unused quota rolls
   * over, and more still where this request may reserve quota of windows to come.
   */
  readonly ceiling: number;
  /** Whether what is used stays used until later windows' grants make up for it. */
  readonly rollsOver?: boolean;
  /** Only room is asked for: admitted or not, this counter is not charged. */
  readonly checkOnly?: boolean;
  /**
   * Quota that may be charged in place of the cost where there is plenty, so that the caller can
   * decide requests to come by itself. See {@link chargeOf}.
   */
  readonly block?: number;
  /** Whether a caller may take blocks of this quota. To a store it means nothing. */
  readonly leasable?: boolean;
  /** Of a rule in shadow mode: no enforced rule may fail with it, nor wait for it. */
  readonly shadow?: boolean;
  /** Who finds no room is denied for this long, in milliseconds. */
  readonly banMs?: number;
  /** Bans hold, but asking brings none about. */
  readonly neverBans?: boolean;
  /**
   * Another counter for the same, with a ceiling no higher: the one of the two with more room is
   * asked. What is said of it is said as if it were this one, with as much room.
   */
  readonly or?: Counter;
}

/** What a decision left of a counter. */
export interface Tally {
  /** Quota used in the current window, this request's cost included if it was charged. */
  readonly count: number;
  /** Milliseconds until the current window ends, more than 0. */
  readonly resetMs: number;
  /** Milliseconds that the client stays banned; 0 when it is not. */
  readonly banMs: number;
  /** What was charged, where a block was asked for: the cost at least; 0 when denied. */
  readonly charged?: number;
}

/** Quota that was charged in a window and is not going to be used. */
export interface UnusedQuota {
  readonly counter: Counter;
  readonly quota: number;
  /** The number of the window: past its end there is nothing to give back to. */
  readonly window: number;
}

/** Counters that are charged all together or not at all, and what became of them. */
export interface GroupVerdict {
  readonly admitted: boolean;
  /** One for each counter, in their order. */
  readonly tallies: readonly Tally[];
}

/** What is stored under a key, until it expires. */
export interface Row {
  /** The number of the window in which it was written. */
  readonly window: number;
  readonly count: number;
  /** Milliseconds since the Unix epoch. */
  readonly expiresAt: number;
}

/** Finds what is stored under a key and has not expired. */
export type Read = (key: string) => Row | undefined;

/** Rows to be stored, by their keys; without a row, what is there is to be removed. */
export type Writes = ReadonlyMap<string, Row | undefined>;

/** How long after its window's end a counter is kept, for clocks that disagree a little. */
export const EXPIRY_GRACE_MS = 1000;

/**
 * A block is at most the room divided by this. So blocks shrink as quota runs out, the last requests
 * are charged one at a time, and no caller can sit on more than an eighth of what is left.
 */
export const BLOCK_SHARE = 8;

/** The largest count: 2^53 - 1, the last integer that neither JavaScript nor Lua rounds. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/** The window that a moment falls into: W = ⌊(now − offset) / length⌋, until (W + 1)·length + offset. */
export function windowAt(
  now: number,
  { windowMs, offsetMs }: Pick<Counter, "windowMs" | "offsetMs">,
): { index: number; endsAt: number } {
  const index = Math.floor((now - offsetMs) / windowMs);
  return { index, endsAt: (index + 1) * windowMs + offsetMs };
}

/** What a counter is stored as: `prefix:rule:window:identity:W`, without W when it rolls over. */
export function storedKey(counter: Counter, now: number): string {
  return counter.rollsOver ? counter.key : `${counter.key}:${windowAt(now, counter).index}`;
}

/** What a counter's ban is stored as. */
export function banKey({ key }: Counter): string {
  return `${key}:ban`;
}

export function hasQuota({ ceiling, cost }: Counter, count: number): boolean {
  return count + cost <= ceiling;
}

/** What an admitted counter is charged: as much of the block as there may be, its cost at least. */
export function chargeOf(counter: Counter, count: number): number {
  const { cost, ceiling, checkOnly, block = 0 } = counter;
  if (checkOnly || cost === 0) return 0;
  return Math.max(cost, Math.min(block, Math.floor((ceiling - count) / BLOCK_SHARE)));
}

/**
 * When there will be room for a cost: at the end of the window, or of as many windows as it takes
 * to make up for what is used.
 *
 * @param capacity what may be used without reserving
 * @returns milliseconds; 0 when there is room now
 */
export function quotaAfterMs(
  counter: Counter,
  { count, resetMs }: Tally,
  capacity: number,
): number {
  const missing = count + counter.cost - capacity;
  if (missing <= 0) return 0;
  // Of two to choose from, the one that is asked then may be the one that is granted less.
  const grant = Math.min(counter.limit, counter.or?.limit ?? counter.limit);
  const windows = counter.rollsOver && grant > 0 ? Math.ceil(missing / grant) : 1;
  return resetMs + Math.max(0, windows - 1) * counter.windowMs;
}

/**
 * Decides a group of counters.
 *
 * @param now milliseconds since the Unix epoch
 * @returns the verdict, and what is to be stored for it
 */
export function decideGroup(
  counters: readonly Counter[],
  now: number,
  read: Read,
): { verdict: GroupVerdict; writes: Writes } {
  const asked = counters.map((counter) => roomier(counter, now, read));
  const admitted = asked.every(
    ({ counter, count, banMs }) => banMs === 0 && hasQuota(counter, count),
  );
  const writes = new Map<string, Row | undefined>();
  const tallies = asked.map(({ counter, count, window, banMs, shift }): Tally => {
    const charge = admitted ? chargeOf(counter, count) : 0;
    if (charge > 0) writes.set(storedKey(counter, now), rowOf(counter, count + charge, window));
    let ban = banMs;
    if (ban === 0 && counter.banMs && !counter.neverBans && !hasQuota(counter, count)) {
      ban = counter.banMs;
      writes.set(banKey(counter), { window: 0, count: 1, expiresAt: now + ban });
    }
    const resetMs = windowAt(now, counter).endsAt - now;
    const charged = counter.block === undefined ? {} : { charged: charge };
    const told = Math.min(MAX_COUNT, count + charge + shift);
    return { count: told, resetMs, banMs: ban, ...charged };
  });
  return { verdict: { admitted, tallies }, writes };
}

/**
 * Adds costs without asking for room, or takes them off when they are negative: what a response
 * turned out to cost, and refunds. A count stays from 0 to {@link MAX_COUNT}. Of two counters to
 * choose from, the one with more room is charged, and the other one is given back to.
 */
export function adjustGroup(
  counters: readonly Counter[],
  now: number,
  read: Read,
): { tallies: Tally[]; writes: Writes } {
  const writes = new Map<string, Row | undefined>();
  const tallies = counters.map((asked): Tally => {
    const { counter, count: before, window, banMs, shift } = roomier(asked, now, read);
    const count = Math.min(MAX_COUNT, Math.max(0, before + counter.cost));
    if (count !== before) writes.set(storedKey(counter, now), rowOf(counter, count, window));
    const told = Math.min(MAX_COUNT, count + shift);
    return { count: told, resetMs: windowAt(now, counter).endsAt - now, banMs };
  });
  return { tallies, writes };
}

/** Takes off what will not be used, where its window lasts and there is as much to take off. */
export function returnUnused(unused: readonly UnusedQuota[], now: number, read: Read): Writes {
  const writes = new Map<string, Row | undefined>();
  for (const { counter, quota, window } of unused) {
    if (windowAt(now, counter).index !== window) continue;
    const key = storedKey(counter, now);
    // One counter may come twice, as when it was bought for two tiers.
    const row = writes.has(key) ? writes.get(key) : read(key);
    if (!row || row.count < quota) continue;
    writes.set(key, row.count === quota ? undefined : { ...row, count: row.count - quota });
  }
  return writes;
}

/** What makes clients new to their counters: nothing used, and no ban. */
export function resetGroup(counters: readonly Counter[], now: number): Writes {
  return new Map(
    counters.flatMap((counter) => [
      [storedKey(counter, now), undefined],
      [banKey(counter), undefined],
    ]),
  );
}

/** Where a counter stands. */
interface State {
  /** The quota used: in this window, or in earlier ones whose successors have not made up for it. */
  readonly count: number;
  /** The window that this is as of: never one before that of the last charge. */
  readonly window: number;
  readonly banMs: number;
}

function stateOf(counter: Counter, now: number, read: Read): State {
  const { index } = windowAt(now, counter);
  const ban = counter.banMs ? read(banKey(counter)) : undefined;
  const banMs = ban ? ban.expiresAt - now : 0;
  const row = read(storedKey(counter, now));
  if (!row) return { count: 0, window: index, banMs };
  // A clock that goes back must not let a window grant its quota twice.
  const window = Math.max(index, row.window);
  const granted = counter.rollsOver ? (window - row.window) * counter.limit : 0;
  return { count: Math.max(0, row.count - granted), window, banMs };
}

interface Chosen extends State {
  readonly counter: Counter;
  /** What its count is to be raised by, to be that of the counter that was asked. */
  readonly shift: number;
}

function roomier(counter: Counter, now: number, read: Read): Chosen {
  const state = stateOf(counter, now, read);
  const { or } = counter;
  if (or) {
    const other = stateOf(or, now, read);
    const hasMore = or.ceiling - other.count > counter.ceiling - state.count;
    if (hasMore === counter.cost >= 0) {
      return { ...other, counter: or, shift: counter.ceiling - or.ceiling };
    }
  }
  return { ...state, counter, shift: 0 };
}

/**
 * Kept until its window has ended; one that rolls over until later windows have made up for all of
 * it, from when on it is as good as new.
 */
function rowOf(counter: Counter, count: number, window: number): Row {
  const { limit, windowMs, offsetMs, rollsOver } = counter;
  const windows = rollsOver && limit > 0 ? Math.max(1, Math.ceil(count / limit)) : 1;
  const expiresAt = (window + windows) * windowMs + offsetMs + EXPIRY_GRACE_MS;
  return { window, count, expiresAt: Math.min(expiresAt, MAX_COUNT) };
}
