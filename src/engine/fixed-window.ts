import { banKey, banKeys, inBothModes, startBan } from "./bans.ts";
import {
  type Adjustment,
  type Counter,
  type Demand,
  type GroupVerdict,
  MAX_COUNT,
  type ReadRow,
  type Removal,
  type Ring,
  type Row,
  storedKey,
  type Tally,
  type UnusedQuota,
  type Writes,
  windowAt,
  windowEndingNear,
  windowStart,
} from "./counter.ts";
import { countsSlots, freeSlot, openSlots, renewSlot, SLOT_RETRY_MS, takeSlot } from "./slots.ts";
import { countedIn, countsSubWindows, freeAt, ringAt, withCharge } from "./sub-windows.ts";

/** The state of a counter at the time `now`. */
interface CounterState {
  /** The quota used in this window, and quota of earlier windows that is not repaid yet. */
  readonly count: number;
  /** The window of `count`; never earlier than the window of the last charge. */
  readonly window: number;
  /** Milliseconds until `window` ends. */
  readonly resetMs: number;
  readonly banMs: number;
  /** The counts of which `count` is the sum, if the counter has sub-windows. */
  readonly ring?: Ring;
  /** The stored row; undefined if there is none. */
  readonly row: Row | undefined;
}

function stateOf(counter: Counter, now: number, read: ReadRow): CounterState {
  if (countsSlots(counter)) {
    const row = read(counter.key);
    // A slot that the request has taken already does not count against it.
    const count = openSlots(row, now).filter(([id]) => id !== counter.slot).length;
    return { count, window: 0, resetMs: SLOT_RETRY_MS, banMs: 0, row };
  }
  const { index, endsAt } = windowAt(now, counter);
  const ban = counter.ban ? read(banKey(counter)) : undefined;
  const banMs = ban ? ban.expiresAt - now : 0;
  const row = read(storedKey(counter, now));
  if (countsSubWindows(counter)) {
    const ring = ringAt(counter, row, now);
    return { ...countedIn(counter, ring, now), window: ring.window, banMs, row };
  }
  if (!row) return { count: 0, window: index, resetMs: endsAt - now, banMs, row };
  // The window never goes back. Otherwise a clock that is set back would grant a window's quota twice.
  const window = Math.max(index, row.window);
  const granted = counter.rollsOver ? (window - row.window) * counter.limit : 0;
  const windowEndsAt = window === index ? endsAt : windowStart(counter, window + 1);
  const resetMs = Math.min(MAX_COUNT, windowEndsAt - now);
  return { count: Math.max(0, row.count - granted), window, resetMs, banMs, row };
}

/** Returns the state after a charge: see {@link Adjustment}. */
function chargedBy(
  cost: number,
  counter: Counter,
  state: CounterState,
  now: number,
  chargedIn?: number,
): CounterState {
  const { ring, count, window } = state;
  if (ring && countsSubWindows(counter)) {
    return { ...state, ...countedIn(counter, withCharge(ring, cost, chargedIn), now) };
  }
  if ((chargedIn ?? window) !== window) return state;
  return { ...state, count: Math.min(MAX_COUNT, Math.max(0, count + cost)) };
}

function talliedIn({ count, ring, resetMs, banMs }: CounterState): Tally {
  return { count, ...(ring && { ring }), resetMs, banMs };
}

// The fixed-window algorithm, as pure functions without a clock, I/O or `this`. Callers pass in `now` and the stored
// rows. The Lua script in stores/upstash/ has the same algorithm, and test/suite/ compares both.
//
// Policy: a request is admitted if and only if every counter of its group has quota for its cost, and the client is
// not banned. All counters are then charged. A denied request charges no counter.

/** The time in milliseconds for which rows are kept after their window, because clocks differ slightly. */
export const EXPIRY_GRACE_MS = 1000;

/**
 * A block is at most the quota left divided by this number. So blocks shrink as quota runs out, and the last requests
 * are charged one at a time.
 */
export const BLOCK_SHARE = 8;

/** Whether a counter at this count has quota for its cost. */
export function hasQuota({ ceiling, cost }: Demand, count: number): boolean {
  return count + cost <= ceiling;
}

/**
 * Returns the quota to charge for an admitted counter: its block, but at most the part that `BLOCK_SHARE` allows, and
 * at least its cost.
 */
export function chargeOf(counter: Demand, count: number): number {
  const { cost, ceiling, checkOnly, block = 0 } = counter;
  if (checkOnly || cost === 0) return 0;
  return Math.max(cost, Math.min(block, Math.floor((ceiling - count) / BLOCK_SHARE)));
}

/**
 * Returns the time until a counter has quota for its cost. Usually the window's end is enough. If the counter rolls
 * over, several windows may be needed to repay the used quota.
 *
 * @param capacity the maximum count without a reservation
 * @param now the time to which `resetMs` is relative
 * @returns milliseconds; 0 if the quota is available now
 */
export function quotaAfterMs(
  counter: Demand,
  { count, resetMs, ring }: Tally,
  capacity: number,
  now: number,
): number {
  const missing = count + counter.cost - capacity;
  if (missing <= 0) return 0;
  if (ring && countsSubWindows(counter)) {
    // `now` may be the time of another clock, so the times of two sub-windows are compared.
    return resetMs + freeAt(counter, ring, missing) - freeAt(counter, ring, 1);
  }
  const { limit, rollsOver } = counter;
  const windows = rollsOver && limit > 0 ? Math.ceil(missing / limit) : 1;
  if (!counter.calendar) return resetMs + Math.max(0, windows - 1) * counter.windowMs;
  const { index } = windowEndingNear(now + resetMs, counter);
  return Math.max(resetMs, windowStart(counter, index + windows) - now);
}

/**
 * Decides a group of counters.
 *
 * @param now milliseconds since the Unix epoch
 * @returns the verdict, and the rows to store for it
 */
export function decideGroup(
  counters: readonly Demand[],
  now: number,
  read: ReadRow,
): { verdict: GroupVerdict; writes: Writes } {
  const states = counters.map((counter) => ({ counter, state: stateOf(counter, now, read) }));
  const admitted = states.every(
    ({ counter, state: { count, banMs } }) => banMs === 0 && hasQuota(counter, count),
  );
  const writes = new Map<string, Row | undefined>();
  const tallies = states.map(({ counter, state }): Tally => {
    const { count, banMs, row } = state;
    const charge = admitted ? chargeOf(counter, count) : 0;
    const after = chargedBy(charge, counter, state, now);
    if (charge > 0) {
      const charged = countsSlots(counter) ? takeSlot(counter, row, now) : rowOf(counter, after);
      writes.set(storedKey(counter, now), charged);
    } else keepDebt(counter, row, writes);
    let remainingBanMs = banMs;
    if (banMs === 0 && counter.ban && !counter.neverBans && !hasQuota(counter, count)) {
      const ban = startBan(counter, counter.ban, now, read);
      remainingBanMs = ban.banMs;
      for (const [key, each] of ban.rows) writes.set(key, each);
    }
    const charged = counter.block === undefined ? {} : { charged: charge };
    return {
      ...talliedIn(after),
      banMs: remainingBanMs,
      ...charged,
      ...(countsSlots(counter) && UNCERTAIN),
    };
  });
  return { verdict: { admitted, tallies }, writes };
}

/** Returns how many of `times` equal requests are admitted if they are decided one after the other. */
export function countFitting(
  counters: readonly Demand[],
  times: number,
  now: number,
  read: ReadRow,
): number {
  let fitting = times;
  for (const counter of counters) {
    const { count, banMs } = stateOf(counter, now, read);
    const { cost, ceiling, checkOnly } = counter;
    if (banMs > 0 || !hasQuota(counter, count)) return 0;
    if (cost > 0 && !checkOnly) fitting = Math.min(fitting, Math.floor((ceiling - count) / cost));
  }
  return fitting;
}

/** A slot may be given back at any moment, so no cache may store the number of open slots. */
const UNCERTAIN = { isUncertain: true } as const;

/**
 * Adds each counter's cost to its count, even if no quota is left, because a response may cost more than
 * the quota left. A negative cost refunds quota. Counts stay from 0 to {@link MAX_COUNT}. Quota of an ended window is not
 * refunded (see {@link Adjustment}). A slot is renewed, or given back if the cost is negative.
 */
export function adjustGroup(
  counters: readonly Adjustment[],
  now: number,
  read: ReadRow,
): { tallies: Tally[]; writes: Writes } {
  const writes = new Map<string, Row | undefined>();
  const tallies = counters.map((counter): Tally => {
    const before = stateOf(counter, now, read);
    const { row } = before;
    if (countsSlots(counter)) {
      const changed = (counter.cost < 0 ? freeSlot : renewSlot)(counter, row, now);
      if (changed !== row) writes.set(counter.key, changed);
      return { ...talliedIn(before), count: openSlots(changed, now).length, ...UNCERTAIN };
    }
    const after = chargedBy(counter.cost, counter, before, now, counter.chargedIn);
    if (after.count !== before.count) writes.set(storedKey(counter, now), rowOf(counter, after));
    return talliedIn(after);
  });
  return { tallies, writes };
}

/**
 * Subtracts unused quota from its counter, if the window of this quota has not ended and the count is at least this
 * quota.
 */
export function returnUnused(unused: readonly UnusedQuota[], now: number, read: ReadRow): Writes {
  const writes = new Map<string, Row | undefined>();
  for (const { counter, quota, window } of unused) {
    const key = storedKey(counter, now);
    // A counter may occur twice, for example if two tiers took blocks.
    const row = writes.has(key) ? writes.get(key) : read(key);
    if (countsSlots(counter)) {
      if (row) writes.set(key, freeSlot(counter, row, now));
      continue;
    }
    if (windowAt(now, counter).index !== window) continue;
    if (!row || row.count < quota) continue;
    writes.set(key, row.count === quota ? undefined : { ...row, count: row.count - quota });
  }
  return writes;
}

/**
 * Removes the rows of counters, and their bans and strikes in every mode. Keeps the row of a counter with
 * `keepsCount`.
 */
export function resetGroup(counters: readonly Removal[], now: number): Writes {
  const keys = counters
    .flatMap(inBothModes)
    .flatMap((counter) => [
      ...(counter.keepsCount ? [] : [storedKey(counter, now)]),
      ...banKeys(counter),
    ]);
  return new Map(keys.map((key) => [key, undefined]));
}

/**
 * Returns the row to store for a state. The row expires after its window, after the window that repays the whole count
 * if the counter rolls over, or when its last sub-window does not count any more.
 */
function rowOf(counter: Counter, { count, window, ring }: Omit<CounterState, "row">): Row {
  const { limit, rollsOver, subWindows = 0 } = counter;
  const windows = rollsOver && limit > 0 ? Math.max(1, Math.ceil(count / limit)) : 1 + subWindows;
  const expiresAt = windowStart(counter, window + windows) + EXPIRY_GRACE_MS;
  const row = { window, count, expiresAt: Math.min(expiresAt, MAX_COUNT) };
  return ring ? { ...row, counts: ring.counts } : row;
}

/**
 * Extends the expiry of a row with rollover, if the limit was lowered since the row was written. Otherwise the row
 * would expire before the lower limit has repaid the debt, and the client would get its whole capacity at once. A
 * cost of 0 writes nothing.
 */
function keepDebt(counter: Demand, row: Row | undefined, writes: Map<string, Row | undefined>) {
  if (!row || !counter.rollsOver || counter.cost === 0) return;
  const needed = rowOf(counter, { ...row, resetMs: 0, banMs: 0 });
  if (needed.expiresAt > row.expiresAt) writes.set(counter.key, needed);
}
