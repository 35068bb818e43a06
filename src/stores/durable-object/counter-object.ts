import { DurableObject } from "cloudflare:workers";
import { banKey } from "../../engine/bans.ts";
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
  resetGroup,
  returnUnused,
} from "../../engine/fixed-window.ts";
import { countsSlots, hasSlot, type SlotCounter } from "../../engine/slots.ts";
import type { Entry, Part } from "../batch.ts";
import { type HeldCharge, heldChargesOf, isRefund, OpenHolds, type Shortfall } from "./holds.ts";

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
    const slots: Slot[] = JSON.parse(count);
    return { window, count: slots.length, expiresAt, slots };
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
    const [{ earliest, latest }] = this.#query(
      "SELECT min(expires_at) AS earliest, max(expires_at) AS latest FROM rows",
    ) as [{ earliest: number | null; latest: number | null }];
    if (earliest !== null && latest !== null) {
      return this.#setAlarm(Math.min(Math.max(earliest, now + HOUR_MS), latest), now);
    }
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
    const { window, slots, expiresAt } = row;
    // SQLite stores a text in any column, so tables of earlier versions need no new column for slots.
    const count = slots ? JSON.stringify(slots) : row.count;
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
   * forward. An alarm costs a call and a written row. A busy object needs no alarm, because it removes expired rows
   * anyway. So an existing alarm is moved only if it is later than the row's expiry and more than an hour ahead.
   */
  #ensureAlarm(expiresAt: number, now: number): void {
    const isSet = this.#alarmAt !== undefined;
    const latestAlarm = isSet ? Math.max(expiresAt, now + HOUR_MS) : expiresAt;
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

/** A group's verdict, and the time at which the object decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
  /** Whether caches must ignore the denial, because an open hold may still release quota. */
  readonly skipCache?: boolean;
}

/** The verdict of the method `hold`. If the group is admitted, it contains the hold's id. */
export interface HoldVerdict extends TimedVerdict {
  readonly hold?: string;
}

/** A part of a group. The answer is undefined if the part lacks quota that an open hold may release. */
type DecidedPart = Part<TimedVerdict | undefined>;

/** Stores the hold of an admitted group. Must run in the same turn of the event loop as the group's charges. */
type AddHold = (charges: readonly HeldCharge[], now: number) => void;

/**
 * The Durable Object that counts if there is no Redis. Export it from your Worker, and bind it as
 * `COUNTERS` in wrangler.toml. Only Weir calls its methods.
 *
 * @example export { CounterObject } from "edge-weir";
 */
// A row is one counter in one window. During a deploy, the versions of caller and object may differ.
export class CounterObject extends DurableObject<unknown> {
  readonly #holds = new OpenHolds();
  #rows = new CounterTable(this.ctx.storage, undefined);

  constructor(ctx: DurableObjectState, env: unknown) {
    super(ctx, env);
    ctx.blockConcurrencyWhile(async () => {
      this.#rows = new CounterTable(ctx.storage, (await ctx.storage.getAlarm()) ?? undefined);
    });
  }

  /**
   * Decides groups whose counters are all stored in this object.
   *
   * @param now the time that determines the windows; undefined for the time of this object's clock
   * @param maxWaitMs the maximum total wait for holds to release quota, in milliseconds
   * @param unused quota to return before the decision
   * @param holdId the id of a final hold, by which `endHold` can release the charge. Passed if other objects have
   * already charged their parts of the group
   */
  async decide(
    groups: readonly (readonly Demand[])[],
    now: number | undefined,
    maxWaitMs: number,
    unused: readonly UnusedQuota[] = [],
    holdId?: string,
  ): Promise<TimedVerdict[]> {
    if (unused.length > 0) this.returnUnused(unused, now);
    const waitEndsAt = Date.now() + maxWaitMs;
    const verdicts: TimedVerdict[] = [];
    for (const counters of groups) {
      const waitMs = verdicts.length === 0 ? maxWaitMs : waitEndsAt - Date.now();
      const addHold = this.#finalHoldOf(holdId);
      const verdict = await this.#decideGroup(counters, now, waitMs, holdId, addHold);
      verdicts.push(verdict);
    }
    return verdicts;
  }

  /**
   * Carries out the entries of several requests, one after the other and without waiting. If a group lacks quota
   * that an open hold may release, its last part has no answer, and the caller must call `decide`.
   *
   * @param maxWaitMs the wait of that call, as for `decide`
   * @returns for each entry, the parts of the answer for its group
   */
  async run(entries: readonly Entry[], maxWaitMs: number): Promise<DecidedPart[][]> {
    return entries.map(({ now, unused, group, times, hold }) => {
      if (unused.length > 0) this.returnUnused(unused, now);
      return group ? this.#decideTimes(group, times, now, maxWaitMs, hold) : [];
    });
  }

  /** Decides equal requests. Unless all of them are admitted, the last part is a denial or has no answer. */
  #decideTimes(
    counters: readonly Demand[],
    times: number,
    givenNow: number | undefined,
    maxWaitMs: number,
    holdId: string | undefined,
  ): DecidedPart[] {
    const now = givenNow ?? Date.now();
    const fitting = times > 1 ? countFitting(counters, times, now, this.#rowReader(now)) : 1;
    const requests = Math.max(1, fitting);
    const together = requests > 1 ? counters.map((each) => costing(each, requests)) : counters;
    const addHold = this.#finalHoldOf(holdId);
    const result = this.#tryGroup(together, now, maxWaitMs, maxWaitMs <= 0, holdId, addHold);
    const answer = "admitted" in result ? result : undefined;
    if (!answer?.admitted) return [{ requests: times, answer }];
    const part = { requests, answer };
    if (requests === times) return [part];
    const rest = this.#decideTimes(counters, times - requests, givenNow, maxWaitMs, holdId);
    return [part, ...rest];
  }

  #finalHoldOf(id: string | undefined): AddHold {
    return (charges, now) => {
      if (id !== undefined) this.#holds.addFinal(id, charges, now);
    };
  }

  /**
   * Charges a group and opens a hold. Until `endHold` is called, requests that find no quota left wait, because
   * this charge may be released. If nobody ends the hold, the charge stays. So no limit is exceeded, whatever
   * happens to the Worker.
   *
   * @param id the id of the hold. The caller chooses the id, and so can release the hold even if no answer arrives
   */
  async hold(
    counters: readonly Demand[],
    now: number | undefined,
    maxWaitMs: number,
    id: string = crypto.randomUUID(),
  ): Promise<HoldVerdict> {
    const verdict = await this.#decideGroup(counters, now, maxWaitMs, id, (charges, at) => {
      this.#holds.addOpen(id, charges, at);
    });
    return verdict.admitted ? { ...verdict, hold: id } : verdict;
  }

  /**
   * Ends a hold: keeps its charge or releases it. A second call for the same hold does nothing. If the release
   * arrives before the charge, nothing is charged. If the released charge was the only row, the object's storage is
   * emptied.
   *
   * @returns false if the object knows no such hold: it has restarted since the charge, which stays
   */
  async endHold(id: string, keep: boolean): Promise<boolean> {
    const hold = this.#holds.end(id, keep);
    if (!hold) return keep;
    const { now } = hold;
    const read = this.#rowReader(now);
    let late: string | undefined;
    for (const refund of this.#holds.takeRefunds(hold, read)) {
      // If quota was reserved after this refund, then also after the next ones of the same counter.
      if (refund.key !== late) {
        const { writes } = adjustGroup([refund], now, read);
        const used = [...writes].map(([key, row]) => [key, row?.count ? row : undefined] as const);
        this.#rows.write(new Map(used), now);
        if (writes.size > 0 || !isRefund(refund)) continue;
        late = refund.key;
      }
      if (isRefund(refund)) this.#holds.postpone(refund);
    }
    await this.#rows.emptyIfUnused();
    return true;
  }

  /** Returns unused quota to the counters whose window has not ended. */
  returnUnused(unused: readonly UnusedQuota[], givenNow: number | undefined): void {
    const now = givenNow ?? Date.now();
    const read = this.#rowReader(now);
    // A return may arrive before the call that takes the slot. The slot must then not be taken.
    for (const { counter } of unused) {
      if (!countsSlots(counter)) continue;
      if (!hasSlot(counter, read(counter.key))) this.#holds.end(slotId(counter), false);
    }
    this.#rows.write(returnUnused(unused, now, read), now);
    this.#holds.wake(unused.map(({ counter }) => storedKey(counter, now)));
  }

  /** Returns unused quota, and then adds costs even if no quota is left. A negative cost lowers the count. */
  adjust(
    counters: readonly Adjustment[],
    givenNow: number | undefined,
    unused: readonly UnusedQuota[] = [],
  ): Tally[] {
    const now = givenNow ?? Date.now();
    if (unused.length > 0) this.returnUnused(unused, now);
    const { tallies, writes } = adjustGroup(counters, now, this.#rowReader(now));
    this.#rows.write(writes, now);
    return tallies;
  }

  /**
   * Removes the counts of these counters in the current window, their bans and their holds. If a counter
   * keeps its count, it keeps its holds too.
   */
  reset(counters: readonly Removal[], givenNow: number | undefined): void {
    const now = givenNow ?? Date.now();
    this.#rows.write(resetGroup(counters, now), now);
    this.#holds.drop(
      counters.filter((counter) => !counter.keepsCount),
      now,
    );
  }

  override alarm(): Promise<void> {
    return this.#rows.clean(Date.now());
  }

  /**
   * Decides a group. If open holds may release quota that the group lacks, the group waits for the holds to end.
   */
  async #decideGroup(
    counters: readonly Demand[],
    givenNow: number | undefined,
    maxWaitMs: number,
    holdId: string | undefined,
    addHold: AddHold,
  ): Promise<TimedVerdict> {
    const waiter = this.#holds.createWaiter(maxWaitMs);
    try {
      while (true) {
        const now = givenNow ?? Date.now();
        const { hasTimedOut } = waiter;
        const result = this.#tryGroup(counters, now, maxWaitMs, hasTimedOut, holdId, addHold);
        if ("admitted" in result) return result;
        // If the released quota is too little for this group, it may be enough for the next waiting call.
        if (counters.length > 1 || counters.some(({ cost }) => cost > 1)) waiter.wakeNext();
        await waiter.wait(result);
      }
    } finally {
      waiter.end();
    }
  }

  /**
   * Decides a group and stores the result. The method does not await, so no other call to this object runs in
   * between.
   *
   * @returns the verdict; or else the quota that the group lacks and that open holds may release
   */
  #tryGroup(
    counters: readonly Demand[],
    now: number,
    maxWaitMs: number,
    hasTimedOut: boolean,
    holdId: string | undefined,
    addHold: AddHold,
  ): TimedVerdict | Shortfall {
    const read = this.#rowReader(now);
    const { verdict, writes } = decideGroup(counters, now, read);
    const isReturned = (counter: Demand) =>
      countsSlots(counter) && this.#holds.isReleasedEarly(slotId(counter));
    if (this.#holds.isReleasedEarly(holdId) || counters.some(isReturned)) {
      return { ...verdict, admitted: false, now };
    }
    // Released quota does not lift a ban, so the denial of a banned client is final.
    const isFinal = verdict.admitted || counters.some((counter) => isBanned(counter, read));
    if (!isFinal) {
      const findShortfall = (maxAgeMs: number) =>
        this.#holds.findShortfall(counters, verdict.tallies, now, maxAgeMs);
      const shortfall = hasTimedOut ? undefined : findShortfall(maxWaitMs);
      if (shortfall) return shortfall;
      // While an open hold of any age may still release the quota, the client is not banned.
      if (findShortfall(Number.POSITIVE_INFINITY)) {
        return { ...withoutBans(verdict), now, skipCache: true };
      }
    }
    this.#rows.write(writes, now);
    if (verdict.admitted) addHold(heldChargesOf(counters, verdict), now);
    return { ...verdict, now };
  }

  #rowReader(now: number): ReadRow {
    return (key) => this.#rows.read(key, now);
  }
}

/** Returns a counter with the cost of several equal requests. A check always has the cost of one request. */
function costing(counter: Demand, requests: number): Demand {
  return counter.checkOnly ? counter : withCost(counter, requests * counter.cost);
}

/** Returns the id under which an object remembers that a slot was returned before it was taken. */
function slotId({ slot }: SlotCounter): string {
  return `slot ${slot}`;
}

function withoutBans({ admitted, tallies }: GroupVerdict): GroupVerdict {
  return { admitted, tallies: tallies.map((tally) => ({ ...tally, banMs: 0 })) };
}

function isBanned(counter: Demand, read: ReadRow): boolean {
  return counter.ban !== undefined && read(banKey(counter)) !== undefined;
}
