import { DurableObject } from "cloudflare:workers";
import {
  type Adjustment,
  type Demand,
  type GroupVerdict,
  type ReadRow,
  type Removal,
  type Row,
  type Slot,
  storedKey,
  type Tally,
  type UnusedQuota,
  type Writes,
  withCost,
} from "../../engine/counter.ts";
import {
  adjustGroup,
  countFitting,
  decideGroup,
  hasQuota,
  resetGroup,
  returnUnused,
} from "../../engine/fixed-window.ts";
import { countsSlots, hasSlot, type SlotCounter } from "../../engine/slots.ts";
import { totalOf } from "../../engine/sub-windows.ts";
import type { Entry, Part } from "../batch.ts";
import { Holds, returnsOf } from "./holds.ts";

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/**
 * The rows of one Durable Object, in its SQLite database. The table is created with its first row. So an object
 * that was never charged, or that was emptied, stores nothing.
 */
export class CounterTable {
  readonly #storage: DurableObjectStorage;
  /** Whether the table exists; undefined if this is unknown. */
  #hasTable: boolean | undefined;
  /** The time of the alarm; undefined while none is set. */
  #alarmAt: number | undefined;

  constructor(storage: DurableObjectStorage, alarmAt: number | undefined) {
    this.#storage = storage;
    this.#alarmAt = alarmAt;
  }

  read(key: string, now: number): Row | undefined {
    if (!this.#exists()) return undefined;
    const [row] = this.#query(
      "SELECT window, count, expires_at FROM rows WHERE key = ? AND expires_at > ?",
      key,
      now,
    ) as { window: number; count: number | string; expires_at: number }[];
    if (!row) return undefined;
    const { window, count, expires_at: expiresAt } = row;
    if (typeof count === "number") return { window, count, expiresAt };
    const parts: readonly Slot[] | readonly number[] = JSON.parse(count);
    return isCounts(parts)
      ? { window, count: totalOf({ window, counts: parts }), expiresAt, counts: parts }
      : { window, count: parts.length, expiresAt, slots: parts };
  }

  write(writes: Writes, now: number): void {
    let firstExpiry = Number.POSITIVE_INFINITY;
    for (const [key, row] of writes) {
      if (row) {
        this.#put(key, row, now);
        firstExpiry = Math.min(firstExpiry, row.expiresAt);
      } else if (this.#exists()) this.#query("DELETE FROM rows WHERE key = ?", key);
    }
    if (firstExpiry < Number.POSITIVE_INFINITY) this.#ensureAlarm(firstExpiry, now);
  }

  /** Removes expired rows, and all storage if no row is left. The alarm must call this method. */
  async clean(now: number): Promise<void> {
    this.#alarmAt = undefined;
    if (!this.#exists()) return;
    this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    const [{ earliest }] = this.#query("SELECT min(expires_at) AS earliest FROM rows") as [
      { earliest: number | null },
    ];
    if (earliest !== null) return this.#setAlarm(Math.max(earliest, now + HOUR_MS), now);
    await this.#empty();
  }

  /** Removes all storage and the alarm if no row is left. */
  async emptyIfUnused(): Promise<void> {
    if (!this.#exists() || this.#query("SELECT 1 FROM rows LIMIT 1").length > 0) return;
    this.#alarmAt = undefined;
    await Promise.all([this.#storage.deleteAlarm(), this.#empty()]);
  }

  /** Removes all storage at once. The promise resolves when the removal is confirmed. */
  #empty(): Promise<void> {
    this.#hasTable = undefined;
    return this.#storage.deleteAll();
  }

  /** Inserts or updates a row. */
  #put(key: string, row: Row, now: number): void {
    const { window, slots, counts, expiresAt } = row;
    // SQLite stores a text in any column, so tables of earlier versions need no new column for slots and sub-windows.
    const parts = slots ?? counts;
    const count = parts ? JSON.stringify(parts) : row.count;
    if (this.#exists()) {
      const [updated] = this.#query(
        "UPDATE rows SET window = ?, count = ?, expires_at = ? WHERE key = ? RETURNING key",
        window,
        count,
        expiresAt,
        key,
      );
      if (updated) return;
      // The first charge of a window removes the rows of earlier windows.
      this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    } else {
      this.#query(
        "CREATE TABLE rows (key TEXT PRIMARY KEY, window INTEGER, count INTEGER, expires_at INTEGER) WITHOUT ROWID",
      );
      this.#hasTable = true;
    }
    this.#query("INSERT INTO rows VALUES (?, ?, ?, ?)", key, window, count, expiresAt);
  }

  /**
   * Makes sure that an alarm removes a written row, at most an hour after its expiry, which a refund may have brought
   * forward. An alarm costs a call and a written row, so it rings at most once an hour.
   */
  #ensureAlarm(expiresAt: number, now: number): void {
    const latestAlarm = Math.max(expiresAt, now + HOUR_MS);
    if (this.#alarmAt === undefined || this.#alarmAt > latestAlarm)
      this.#setAlarm(latestAlarm, now);
  }

  /** Sets an alarm, at most a year ahead, because a row may expire only after centuries. */
  #setAlarm(time: number, now: number): void {
    this.#alarmAt = Math.min(time, now + YEAR_MS);
    this.#storage.setAlarm(this.#alarmAt);
  }

  #exists(): boolean {
    this.#hasTable ??= this.#query("SELECT 1 FROM sqlite_master WHERE name = 'rows'").length > 0;
    return this.#hasTable;
  }

  #query(sql: string, ...bindings: SqlStorageValue[]): Record<string, SqlStorageValue>[] {
    return this.#storage.sql.exec(sql, ...bindings).toArray();
  }
}

/** Whether these are the counts of sub-windows. A client without slots has no row. */
function isCounts(parts: readonly Slot[] | readonly number[]): parts is readonly number[] {
  return typeof parts[0] === "number";
}

/** A group's verdict, and the time at which the object decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
}

/** The results of an entry. */
export interface EntryResult {
  /** The parts of the answer for the entry's group. */
  readonly parts: readonly Part<TimedVerdict>[];
  /** The new states of the adjusted counters. */
  readonly tallies: readonly Tally[];
}

/**
 * The time in milliseconds after which a request should be repeated that lacks only quota held by others. Usually they
 * keep or release it much earlier.
 */
const HELD_RETRY_MS = 1000;

/**
 * The Durable Object that counts if there is no Redis. Export it from your Worker, and bind it as
 * `COUNTERS` in wrangler.toml. Only Weir calls its methods.
 *
 * @example export { CounterObject } from "edge-weir";
 */
// A row is one counter in one window. During a deploy, the versions of caller and object may differ.
export class CounterObject extends DurableObject<unknown> {
  readonly #holds = new Holds();
  #rows = new CounterTable(this.ctx.storage, undefined);

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.#rows = new CounterTable(ctx.storage, (await ctx.storage.getAlarm()) ?? undefined);
    });
  }

  /** Carries out entries of several requests, one after the other. Nothing in them waits. */
  async run(entries: readonly Entry[]): Promise<EntryResult[]> {
    return entries.map(({ now: given, unused, adjusted, removed, group, times, hold }) => {
      const now = given ?? Date.now();
      if (unused.length > 0) this.#returnUnused(unused, now);
      const tallies = adjusted.length > 0 ? this.#adjust(adjusted, now) : [];
      if (removed.length > 0) this.#reset(removed, now);
      return { parts: group ? this.#decideTimes(group, times, now, hold) : [], tallies };
    });
  }

  /**
   * Ends a hold: keeps its charge or releases it. A second call for the same hold does nothing. If the release
   * arrives before the charge, nothing is charged. If the released charge was the only row, the object's storage is
   * emptied.
   *
   * @returns false if the object knows no such hold: it has restarted since the charge, which stays
   */
  async endHold(id: string, keep: boolean): Promise<boolean> {
    const hold = this.#holds.take(id);
    if (!hold) {
      if (!keep) this.#holds.releaseEarly(id);
      return false;
    }
    if (keep) return true;
    const { now } = hold;
    const read = this.#rowReader(now);
    const { writes } = adjustGroup(returnsOf(hold, read), now, read);
    this.#rows.write(
      new Map([...writes].map(([key, row]) => [key, row?.count ? row : undefined])),
      now,
    );
    await this.#rows.emptyIfUnused();
    return true;
  }

  override alarm(): Promise<void> {
    return this.#rows.clean(Date.now());
  }

  /** Returns unused quota to the counters whose window has not ended. */
  #returnUnused(unused: readonly UnusedQuota[], now: number): void {
    const read = this.#rowReader(now);
    // A return may arrive before the call that takes the slot. The slot must then not be taken.
    for (const { counter } of unused) {
      if (!countsSlots(counter)) continue;
      if (!hasSlot(counter, read(counter.key))) this.#holds.releaseEarly(slotId(counter));
    }
    this.#rows.write(returnUnused(unused, now, read), now);
  }

  /** Adds costs even if no quota is left. A negative cost lowers the count. */
  #adjust(counters: readonly Adjustment[], now: number): readonly Tally[] {
    const { tallies, writes } = adjustGroup(counters, now, this.#rowReader(now));
    this.#rows.write(writes, now);
    return tallies;
  }

  /**
   * Removes the counts of these counters in the current window, their bans and their holds. If a counter
   * keeps its count, it keeps its holds too.
   */
  #reset(counters: readonly Removal[], now: number): void {
    this.#rows.write(resetGroup(counters, now), now);
    this.#holds.drop(
      counters.filter((counter) => !counter.keepsCount),
      now,
    );
  }

  /** Decides equal requests. Unless all of them are admitted, the last part is a denial. */
  #decideTimes(
    counters: readonly Demand[],
    times: number,
    now: number,
    hold: Entry["hold"],
  ): Part<TimedVerdict>[] {
    const fitting = times > 1 ? countFitting(counters, times, now, this.#rowReader(now)) : 1;
    const requests = Math.max(1, fitting);
    const together = requests > 1 ? counters.map((each) => costing(each, requests)) : counters;
    const answer = this.#decideGroup(together, now, hold);
    if (!answer.admitted) return [{ requests: times, answer }];
    const part = { requests, answer };
    if (requests === times) return [part];
    return [part, ...this.#decideTimes(counters, times - requests, now, hold)];
  }

  /** If a counter lacks only quota that open holds may release, the client is not banned for it. */
  #decideGroup(counters: readonly Demand[], now: number, hold: Entry["hold"]): TimedVerdict {
    const read = this.#rowReader(now);
    const known = decideGroup(counters, now, read);
    const isReleased = (counter: Demand) =>
      countsSlots(counter) && this.#holds.isReleasedEarly(slotId(counter));
    if (this.#holds.isReleasedEarly(hold?.id) || counters.some(isReleased)) {
      return { ...known.verdict, admitted: false, now };
    }
    const held = this.#heldQuotas(counters, known.verdict, now);
    const cautious = (counter: Demand, index: number) =>
      held[index]?.isMissing ? { ...counter, neverBans: true } : counter;
    const isHeld = held.some(({ isMissing }) => isMissing);
    const { verdict, writes } = isHeld ? decideGroup(counters.map(cautious), now, read) : known;
    this.#rows.write(writes, now);
    if (verdict.admitted && hold) this.#holds.add(hold, counters, verdict, now);
    const { admitted, tallies } = verdict;
    return { admitted, tallies: tallies.map((each, index) => withHeld(each, held[index])), now };
  }

  /** Returns the quota of each counter that open holds may release. */
  #heldQuotas(
    counters: readonly Demand[],
    { admitted, tallies }: GroupVerdict,
    now: number,
  ): HeldQuota[] {
    return counters.map((counter, index) => {
      const { count, ring } = tallies[index] as Tally;
      const oldest = ring && ring.window - ring.counts.length + 1;
      const quota = this.#holds.openQuota(storedKey(counter, now), oldest);
      const isMissing = !admitted && !hasQuota(counter, count) && hasQuota(counter, count - quota);
      return { quota, isMissing };
    });
  }

  #rowReader(now: number): ReadRow {
    return (key) => this.#rows.read(key, now);
  }
}

/** The quota of a counter that open holds may release. */
interface HeldQuota {
  readonly quota: number;
  /** Whether a denied request lacks this quota and no more. */
  readonly isMissing: boolean;
}

/** Returns a tally whose count caches must not store if it includes held quota. */
function withHeld(tally: Tally, held: HeldQuota | undefined): Tally {
  // A caller relies on a count that includes a block.
  if (!held || held.quota === 0 || tally.charged) return tally;
  // Released quota does not lift a ban.
  const retry = held.isMissing && tally.banMs === 0 ? { retryMs: HELD_RETRY_MS } : {};
  return { ...tally, ...retry, isUncertain: true };
}

/** Returns a counter with the cost of several equal requests. A check always has the cost of one request. */
function costing(counter: Demand, requests: number): Demand {
  return counter.checkOnly ? counter : withCost(counter, requests * counter.cost);
}

/** Returns the id under which an object remembers that a slot was returned before it was taken. */
function slotId({ slot }: SlotCounter): string {
  return `slot ${slot}`;
}
