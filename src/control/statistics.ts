import { ClientSketch } from "../statistics/client-sketch.ts";
import {
  addRequests,
  addStoreSums,
  type LimitedClient,
  MINUTE_MS,
  noRequests,
  noRuleSums,
  noStoreSums,
  type RequestSums,
  type RuleSums,
  type StoreSums,
} from "../statistics/sums.ts";
import { DenialTable } from "./denial-table.ts";
import type {
  Bucket,
  DenialsQuery,
  Resolution,
  StatisticsQuery,
  StatisticsReport,
  StatisticsUpload,
  StoredDenials,
  Totals,
} from "./protocol.ts";
import { GatheredSums, Sources, type StoredSource } from "./uploads.ts";

// A row of the statistics has the sums of requests and of the store as JSON, and the sums of all rules as 64-bit
// numbers. With rules as JSON, reading and adding up a year of 200 rules took too long. Only the numbers of open
// requests and of requests that passed ahead are JSON too, because few rules have these numbers.

/** Numbers by the rules' slots. JSON has null for the slots of rules without a number. */
type BySlot = (number | null)[];

/** The `openPeak`, the `ahead` and the `over` of each rule. */
type FewNumbers = Record<"openPeaks" | "aheads" | "overs", BySlot>;

/** The sums of one bucket of time. */
interface SumsRow extends Readonly<FewNumbers> {
  readonly requests: RequestSums;
  readonly store: StoreSums;
  readonly rules: RuleArray;
}

/** The column `head` of a row. Rows of earlier versions lack some of the numbers by slots. */
type Head = Pick<SumsRow, "requests" | "store"> & Partial<FewNumbers>;

/** The columns of a row. `rules` is empty if no rule applied in the bucket. */
type StoredSums = { readonly head: string; readonly rules: ArrayBuffer };

/** The order of the numbers of a rule. If the order or the number of fields changes, new tables are needed. */
const RULE_FIELDS = [
  "requests",
  "allowed",
  "limited",
  "marked",
  "undecided",
  "shadowLimited",
  "peak",
] as const satisfies readonly (keyof RuleSums)[];

const FIELDS = RULE_FIELDS.length;
const PEAK = RULE_FIELDS.indexOf("peak");

/** The number of bytes of one rule in the column `rules`. */
const RULE_BYTES = FIELDS * Float64Array.BYTES_PER_ELEMENT;

/** The sums of rules, by the rules' slots. */
class RuleArray {
  #numbers: Float64Array;

  /** @param stored the column `rules`, or a part of it; null for no rule, as substr() returns for an empty blob */
  constructor(stored: ArrayBuffer | null = null) {
    // The last rule is omitted if some of its numbers are missing.
    const count = Math.floor((stored?.byteLength ?? 0) / RULE_BYTES);
    this.#numbers = stored ? new Float64Array(stored, 0, count * FIELDS) : new Float64Array(0);
  }

  /** Adds the sums of a rule. */
  add(slot: number, sums: RuleSums): void {
    this.#addAt(
      slot * FIELDS,
      RULE_FIELDS.map((field) => sums[field]),
    );
  }

  /** Adds the sums of all rules of another array. */
  addAll(other: RuleArray): void {
    this.#addAt(0, other.#numbers);
  }

  #addAt(start: number, added: ArrayLike<number>): void {
    const end = start + added.length;
    if (this.#numbers.length < end) {
      const larger = new Float64Array(end);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    const numbers = this.#numbers;
    for (let i = 0; i < added.length; i++) {
      const [sum, more] = [numbers[start + i] as number, added[i] as number];
      numbers[start + i] = i % FIELDS === PEAK ? Math.max(sum, more) : sum + more;
    }
  }

  /** Returns the sums of a rule; undefined if the rule has none. */
  read(slot: number): RuleSums | undefined {
    const numbers = this.#numbers.subarray(slot * FIELDS, (slot + 1) * FIELDS);
    if (!numbers.some((number) => number !== 0)) return undefined;
    const fields = RULE_FIELDS.map((field, index) => [field, numbers[index]]);
    return { ...noRuleSums(), ...Object.fromEntries(fields) };
  }

  /** Returns the column that stores these sums. */
  toStored(): ArrayBuffer {
    return this.#numbers.slice().buffer;
  }
}

export function emptyRow(): SumsRow {
  const few = { openPeaks: [], aheads: [], overs: [] };
  return { requests: noRequests(), store: noStoreSums(), ...few, rules: new RuleArray() };
}

function readRow({ head, rules }: StoredSums): SumsRow {
  const row = { ...emptyRow(), rules: new RuleArray(rules) };
  addHead(row, JSON.parse(head) as Head);
  return row;
}

function headOf({ rules: _, ...head }: SumsRow): string {
  return JSON.stringify(head);
}

/** Adds the sums of a row, or of a minute, without the sums of rules. */
function addHead(to: SumsRow, { requests, store, openPeaks, aheads, overs }: Head): void {
  addRequests(to.requests, requests);
  addStoreSums(to.store, store);
  raiseOpenPeaks(to.openPeaks, openPeaks);
  addBySlot(to.aheads, aheads);
  addBySlot(to.overs, overs);
}

function addBySlot(to: BySlot, added: BySlot = []): void {
  for (const [slot, number] of added.entries()) if (number) to[slot] = (to[slot] ?? 0) + number;
}

function raiseOpenPeaks(to: BySlot, added: BySlot = []): void {
  for (const [slot, open] of added.entries()) {
    if (typeof open === "number") to[slot] = Math.max(to[slot] ?? 0, open);
  }
}

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The length of each bucket. */
export const BUCKET_MS: Readonly<Record<Resolution, number>> = {
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
};

/** The time for which buckets are kept. Minutes are kept longer than a day, the longest query, for late sums. */
export const RETENTION_MS: Readonly<Record<Resolution, number>> = {
  minute: 25 * HOUR_MS,
  hour: 31 * DAY_MS,
  day: 366 * DAY_MS,
};

const RESOLUTIONS = ["minute", "hour", "day"] as const satisfies readonly Resolution[];

/**
 * The statistics in SQLite, in three tables: for minutes, hours and days. Each bucket with sums has a row. The sums
 * of a day are the sums of its hours. The sums of an hour are the sums of its minutes. Rows of hours and days also
 * have the most limited clients.
 */
export class BucketTables {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const resolution of RESOLUTIONS) {
      // SQLite reads a large row only up to the last selected column, so `clients` is last.
      sql.exec(
        `CREATE TABLE IF NOT EXISTS ${resolution}_sums (at INTEGER PRIMARY KEY, head TEXT NOT NULL, rules BLOB NOT NULL, clients TEXT)`,
      );
    }
  }

  /**
   * Adds the sums of minutes to their minutes, hours and days, and clients to the hours and days in which they were
   * last limited. Writes each bucket once, because every written row is billed.
   */
  add(
    minutes: readonly { readonly at: number; readonly sums: SumsRow }[],
    clients: readonly LimitedClient[],
  ): void {
    for (const resolution of RESOLUTIONS) {
      const named = resolution === "minute" ? [] : clients;
      const sums = Map.groupBy(minutes, ({ at }) => bucketAt(resolution, at));
      const limited = Map.groupBy(named, ({ lastAt }) => bucketAt(resolution, lastAt));
      for (const at of new Set([...sums.keys(), ...limited.keys()])) {
        const added = sums.get(at) ?? [];
        this.addTo(
          resolution,
          at,
          added.map((each) => each.sums),
          limited.get(at),
        );
      }
    }
  }

  /** Returns the highest number of open requests since a time, by the slots of rules. */
  openPeaksSince(time: number): BySlot {
    const openPeaks: BySlot = [];
    const rows = this.#sql.exec<{ head: string }>(
      "SELECT head FROM minute_sums WHERE at >= ?",
      bucketAt("minute", time),
    );
    for (const { head } of rows) raiseOpenPeaks(openPeaks, (JSON.parse(head) as Head).openPeaks);
    return openPeaks;
  }

  /** Removes the buckets that ended too long ago. */
  prune(now: number): void {
    for (const resolution of RESOLUTIONS) {
      this.#sql.exec(`DELETE FROM ${resolution}_sums WHERE at < ?`, now - RETENTION_MS[resolution]);
    }
  }

  /** Adds sums and clients to the bucket that contains a time, in one table. */
  addTo(
    resolution: Resolution,
    time: number,
    added: readonly SumsRow[],
    limited: readonly LimitedClient[] = [],
  ): void {
    const at = bucketAt(resolution, time);
    const [stored] = this.#sql.exec<StoredSums & { readonly clients: string | null }>(
      `SELECT head, rules, clients FROM ${resolution}_sums WHERE at = ?`,
      at,
    );
    const row = stored ? readRow(stored) : emptyRow();
    for (const sums of added) {
      addHead(row, sums);
      row.rules.addAll(sums.rules);
    }
    let clients = stored?.clients ?? null;
    if (limited.length > 0) {
      const sketch = new ClientSketch(readClients(clients));
      for (const client of limited) sketch.add(client);
      clients = JSON.stringify(sketch.top());
    }
    this.#sql.exec(
      `INSERT OR REPLACE INTO ${resolution}_sums VALUES (?, ?, ?, ?)`,
      at,
      headOf(row),
      row.rules.toStored(),
      clients,
    );
  }
}

/** Reads the column `clients`, which is NULL if no client was limited. */
function readClients(stored: string | null): LimitedClient[] {
  return stored === null ? [] : (JSON.parse(stored) as LimitedClient[]);
}

/** Returns the start of the bucket that contains a time. */
export function bucketAt(resolution: Resolution, time: number): number {
  return Math.floor(time / BUCKET_MS[resolution]) * BUCKET_MS[resolution];
}

/** The sums since the object was created, and the state of the object, in a table with one row. */
class TotalsRow {
  readonly #sql: SqlStorage;
  /** When the object was created, in milliseconds since the Unix epoch. */
  readonly since: number;
  readonly sums: SumsRow;
  /** The sources whose last upload must not be added again after the object was removed from memory. */
  readonly sources: readonly StoredSource[];

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS total_sums (since INTEGER PRIMARY KEY, head TEXT NOT NULL, rules BLOB NOT NULL, state TEXT NOT NULL)",
    );
    const [stored] = sql.exec<StoredSums & { since: number; state: string }>(
      "SELECT * FROM total_sums",
    );
    this.since = stored?.since ?? now;
    this.sums = stored ? readRow(stored) : emptyRow();
    this.sources = stored ? (JSON.parse(stored.state) as Pick<this, "sources">).sources : [];
  }

  write(sources: readonly StoredSource[]): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO total_sums VALUES (?, ?, ?, ?)",
      this.since,
      headOf(this.sums),
      this.sums.rules.toStored(),
      JSON.stringify({ sources }),
    );
  }
}

/** The name for the sums of the rules that have no slot, because all slots are taken. */
const OTHER_RULES = "(other)";

/** The maximum number of rules with separate sums. */
const MAX_RULES = 999;

/** The slot of each rule: the position of its sums in a row of the statistics. */
export class RuleSlots {
  readonly #sql: SqlStorage;
  readonly #byName = new Map<string, number>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS rule_slots (slot INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    );
    const rows = sql.exec<{ slot: number; name: string }>("SELECT slot, name FROM rule_slots");
    for (const { slot, name } of rows) this.#byName.set(name, slot);
  }

  /** Returns the slot of a rule; undefined if the rule has no sums. */
  find(name: string): number | undefined {
    return this.#byName.get(name);
  }

  /** Returns the slots of all rules by their names. */
  all(): Iterable<readonly [name: string, slot: number]> {
    return this.#byName;
  }

  /** Returns the slot of a rule, and assigns a slot to a new rule. */
  slotFor(name: string): number {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const slot = this.#byName.size;
    if (slot >= MAX_RULES && name !== OTHER_RULES) return this.slotFor(OTHER_RULES);
    this.#sql.exec("INSERT INTO rule_slots VALUES (?, ?)", slot, name);
    this.#byName.set(name, slot);
    return slot;
  }
}

/** The maximum number of clients of a report. */
const MAX_CLIENTS = 100;

/** The rows of one table in a range of time. */
interface Range {
  readonly resolution: Resolution;
  readonly from: number;
  readonly until: number;
}

/** Reads and adds up the rows for a query. */
export function readReport(
  sql: SqlStorage,
  slots: RuleSlots,
  { resolution, from, until, rule }: StatisticsQuery,
  now: number,
): Omit<StatisticsReport, "isolates" | "openBreakers"> {
  const range = {
    resolution,
    // Older rows of this table may be removed while the rows of hours or days still have their sums.
    from: bucketAt(resolution, Math.max(from, now - RETENTION_MS[resolution])),
    until: bucketAt(resolution, until - 1) + BUCKET_MS[resolution],
  };
  const rows = sql.exec<{ at: number; head: string }>(
    `SELECT at, head FROM ${resolution}_sums WHERE at >= ? AND at < ? ORDER BY at`,
    range.from,
    range.until,
  );
  const total = emptyRow();
  const heads = rows.toArray().map(({ at, head }) => ({ at, ...(JSON.parse(head) as Head) }));
  const buckets = heads.map((head): Bucket => {
    addHead(total, head);
    return { at: head.at, requests: head.requests, store: head.store };
  });
  for (const { resolution: part, from: start, until: end } of coarsest(range)) {
    const stored = sql.exec<{ rules: ArrayBuffer }>(
      `SELECT rules FROM ${part}_sums WHERE at >= ? AND at < ?`,
      start,
      end,
    );
    for (const each of stored) total.rules.addAll(new RuleArray(each.rules));
  }
  const rules = Object.entries(readRules(total, slots));
  const clientRange = clientRangeOf(range);
  return {
    resolution,
    buckets,
    rules: Object.fromEntries(rules.filter(([name]) => rule === undefined || name === rule)),
    ...(rule !== undefined && {
      ruleBuckets: readRuleBuckets(sql, range, slots.find(rule), heads),
    }),
    clients: readTopClients(sql, clientRange, rule),
    clientsFrom: clientRange.from,
  };
}

/**
 * Returns the sums of one rule in each bucket. Reads only the rule's part of each row.
 *
 * @param heads the heads of the same rows
 */
function readRuleBuckets(
  sql: SqlStorage,
  { resolution, from, until }: Range,
  slot: number | undefined,
  heads: readonly Head[],
): RuleSums[] {
  const rows = sql.exec<{ rules: ArrayBuffer | null }>(
    `SELECT substr(rules, ?, ?) AS rules FROM ${resolution}_sums WHERE at >= ? AND at < ? ORDER BY at`,
    slot === undefined ? 1 : slot * RULE_BYTES + 1,
    slot === undefined ? 0 : RULE_BYTES,
    from,
    until,
  );
  return rows.toArray().map(({ rules }, row) => ({
    ...(new RuleArray(rules).read(0) ?? noRuleSums()),
    ...aheadOf(heads[row], slot),
  }));
}

/**
 * Returns the rows with the clients of a range. Rows of minutes have no clients, so the rows of their hours are read.
 */
function clientRangeOf(range: Range): Range {
  if (range.resolution !== "minute") return range;
  return { ...range, resolution: "hour", from: bucketAt("hour", range.from) };
}

function readTopClients(sql: SqlStorage, range: Range, rule: string | undefined) {
  const sums = new ClientSketch([], Number.POSITIVE_INFINITY);
  for (const { resolution, from, until } of coarsest(range)) {
    const rows = sql.exec<{ clients: string | null }>(
      `SELECT clients FROM ${resolution}_sums WHERE at >= ? AND at < ?`,
      from,
      until,
    );
    for (const { clients } of rows) {
      for (const client of readClients(clients)) {
        if (rule === undefined || client.rule === rule) sums.add(client);
      }
    }
  }
  return sums.top(MAX_CLIENTS);
}

const COARSER = { minute: "hour", hour: "day", day: undefined } as const;

/**
 * Covers a range with as few rows as possible: the row of a day instead of its hours, and of an hour instead of its
 * minutes.
 */
function coarsest({ resolution, from, until }: Range): Range[] {
  const coarser = COARSER[resolution];
  if (from >= until) return [];
  if (!coarser) return [{ resolution, from, until }];
  const start = bucketAt(coarser, from + BUCKET_MS[coarser] - 1);
  const end = bucketAt(coarser, until);
  if (start >= end) return [{ resolution, from, until }];
  return [
    ...coarsest({ resolution, from, until: start }),
    ...coarsest({ resolution: coarser, from: start, until: end }),
    ...coarsest({ resolution, from: end, until }),
  ];
}

function aheadOf({ aheads, overs }: Partial<FewNumbers> = {}, slot = -1) {
  return { ahead: aheads?.[slot] ?? 0, over: overs?.[slot] ?? 0 };
}

/** Returns the sums of all rules with sums, by their names. */
function readRules(row: Omit<SumsRow, "requests" | "store">, slots: RuleSlots) {
  const rules = [...slots.all()].flatMap(([name, slot]): [string, RuleSums][] => {
    const ruleSums = row.rules.read(slot);
    const openPeak = row.openPeaks[slot];
    const few = { ...aheadOf(row, slot), ...(openPeak && { openPeak }) };
    return ruleSums ? [[name, { ...ruleSums, ...few }]] : [];
  });
  // Unlike an assignment, fromEntries also creates a field for the name __proto__.
  return Object.fromEntries(rules);
}

/** The time in which the totals show the highest number of open requests. Metrics must decrease with the traffic. */
const RECENT_MS = 5 * MINUTE_MS;
/** The minimum time between two writes, in milliseconds, because every written row is billed. */
const WRITE_INTERVAL_MS = 1000;
/** The interval at which too old rows are removed, in milliseconds. */
const PRUNE_INTERVAL_MS = 60 * MINUTE_MS;

/** The statistics of the global object: tables, and sums in memory that are written once a second. */
export class Statistics {
  readonly #storage: DurableObjectStorage;
  readonly #buckets: BucketTables;
  #slots: RuleSlots;
  readonly #sources: Sources;
  #totals: TotalsRow;
  #denials: DenialTable;
  readonly #gathered = new GatheredSums();
  #writtenAt = Number.NEGATIVE_INFINITY;
  #prunedAt = Number.NEGATIVE_INFINITY;
  /** The next write, which calls await; undefined without sums to write. */
  #nextWrite: Promise<void> | undefined;

  constructor(storage: DurableObjectStorage, now: number) {
    this.#storage = storage;
    this.#buckets = new BucketTables(storage.sql);
    this.#slots = new RuleSlots(storage.sql);
    this.#totals = new TotalsRow(storage.sql, now);
    this.#denials = new DenialTable(storage.sql);
    this.#sources = new Sources(this.#totals.sources);
  }

  /**
   * Adds the sums of an upload, unless the upload is a repetition.
   *
   * @returns a promise that resolves when the sums are written. If the object is lost before that, the source gets no
   * answer, and repeats the upload
   */
  async add(upload: StatisticsUpload, now: number): Promise<void> {
    const isNew = this.#sources.see(upload, now);
    if (isNew) this.#gathered.add(upload, now);
    // A call without sums only loads the overrides for a request, so it must not wait for the next write.
    const hasSums = upload.minutes.length > 0 || upload.clients.length > 0;
    if (hasSums && !this.#gathered.isEmpty) await this.#writeSoon(now);
  }

  read(query: StatisticsQuery, now: number): StatisticsReport {
    this.#write(now);
    const report = readReport(this.#storage.sql, this.#slots, query, now);
    return { ...report, ...this.#sources.running(now) };
  }

  denials(query: DenialsQuery, now: number): StoredDenials[] {
    this.#write(now);
    return this.#denials.read(query, now);
  }

  totals(now: number): Omit<Totals, "overrides"> {
    // The sums are written first, because a sum that was read must not decrease if the object is lost.
    this.#write(now);
    const { since, sums } = this.#totals;
    const openPeaks = this.#buckets.openPeaksSince(now - RECENT_MS);
    return {
      since,
      requests: { ...sums.requests },
      store: { ...sums.store, latency: [...sums.store.latency] },
      rules: readRules({ ...sums, openPeaks }, this.#slots),
      ...this.#sources.running(now),
    };
  }

  #writeSoon(now: number): Promise<void> {
    if (this.#nextWrite) return this.#nextWrite;
    const waitMs = this.#writtenAt + WRITE_INTERVAL_MS - now;
    // If the clock was set back, the wait must not be longer than the interval.
    if (waitMs <= 0 || waitMs > WRITE_INTERVAL_MS) {
      this.#write(now);
      return Promise.resolve();
    }
    this.#nextWrite = scheduler.wait(waitMs).then(() => {
      this.#nextWrite = undefined;
      this.#write(Date.now());
    });
    return this.#nextWrite;
  }

  #write(now: number): void {
    if (this.#gathered.isEmpty) return;
    this.#writtenAt = now;
    const sums = this.#gathered.take();
    const { minutes, clients, denials } = sums;
    try {
      this.#storage.transactionSync(() => {
        const rows: { readonly at: number; readonly sums: SumsRow }[] = [];
        for (const { minute, rules, ...head } of minutes) {
          const row = emptyRow();
          addHead(row, head);
          for (const [name, ruleSums] of Object.entries(rules)) {
            const slot = this.#slots.slotFor(name);
            row.rules.add(slot, ruleSums);
            const { openPeak, ahead, over } = ruleSums;
            if (openPeak) row.openPeaks[slot] = Math.max(row.openPeaks[slot] ?? 0, openPeak);
            if (ahead) row.aheads[slot] = (row.aheads[slot] ?? 0) + ahead;
            if (over) row.overs[slot] = (row.overs[slot] ?? 0) + over;
          }
          this.#addToTotals(row);
          rows.push({ at: minute * MINUTE_MS, sums: row });
        }
        this.#buckets.add(rows, clients);
        this.#denials.add(denials, now);
        this.#totals.write(this.#sources.toStored());
      });
    } catch (error) {
      // The transaction has changed nothing, so the sums wait for the next write.
      this.#totals = new TotalsRow(this.#storage.sql, now);
      this.#slots = new RuleSlots(this.#storage.sql);
      this.#denials = new DenialTable(this.#storage.sql);
      this.#gathered.add(sums, now);
      throw error;
    }
    if (now - this.#prunedAt > PRUNE_INTERVAL_MS) {
      this.#prunedAt = now;
      this.#buckets.prune(now);
      this.#denials.prune(now);
    }
  }

  #addToTotals(sums: SumsRow): void {
    addHead(this.#totals.sums, sums);
    this.#totals.sums.rules.addAll(sums.rules);
  }
}
