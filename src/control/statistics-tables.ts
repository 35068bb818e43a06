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
import { readClients, storeClients } from "./limited-clients.ts";
import type { Resolution } from "./protocol.ts";
import { MAX_RULES, type StoredSource } from "./uploads.ts";

// A row of the statistics: JSON with the sums of requests and of the store, and the sums and peaks of all
// rules as 64-bit numbers. With the rules as JSON, it took too long to read and add up a year of 200 rules.

/** The sums of one bucket of time. */
export interface SumsRow {
  readonly requests: RequestSums;
  readonly store: StoreSums;
  readonly rules: RuleArray;
}

/** The columns of a row. */
type StoredSums = StoredRules & { readonly head: string };

/**
 * The columns with rules, or parts of them. `peaks` is NULL in rows that an older version has written.
 * In a bucket in which no rule applied, `rules` is empty, and substr() of an empty blob is NULL.
 */
export type StoredRules = {
  readonly rules: ArrayBuffer | null;
  readonly peaks: ArrayBuffer | null;
};

/** Adds the column `peaks` to a table that an older version has created. */
function addPeaksColumn(sql: SqlStorage, table: string): void {
  if (sql.exec(`SELECT * FROM ${table} LIMIT 0`).columnNames.includes("peaks")) return;
  sql.exec(`ALTER TABLE ${table} ADD COLUMN peaks BLOB`);
}

/** The order of the counts of a rule. A changed order or number of fields needs new tables. */
const RULE_COUNTS = [
  "requests",
  "allowed",
  "limited",
  "marked",
  "undecided",
  "shadowLimited",
] as const satisfies readonly (keyof RuleSums)[];

const COUNTS = RULE_COUNTS.length;

/** The number of bytes of one rule in the column `peaks`. */
export const PEAK_BYTES = Float64Array.BYTES_PER_ELEMENT;

/** The number of bytes of one rule in the column `rules`. */
export const RULE_BYTES = COUNTS * PEAK_BYTES;

const NO_RULES: StoredRules = { rules: null, peaks: null };

/** The sums of rules by slot, as an array of counts and an array of peaks. */
export class RuleArray {
  #counts: Float64Array;
  #peaks: Float64Array;

  constructor({ rules, peaks }: StoredRules = NO_RULES) {
    this.#counts = numbersOf(rules, COUNTS);
    this.#peaks = numbersOf(peaks, 1);
  }

  /** Adds the sums of a rule. */
  add(slot: number, sums: RuleSums): void {
    const start = slot * COUNTS;
    this.#counts = grown(this.#counts, start + COUNTS);
    for (const [i, field] of RULE_COUNTS.entries()) {
      this.#counts[start + i] = (this.#counts[start + i] as number) + sums[field];
    }
    this.#peaks = grown(this.#peaks, slot + 1);
    this.#peaks[slot] = Math.max(this.#peaks[slot] as number, sums.peak);
  }

  /** Adds the sums of all rules of another array. */
  addAll(other: RuleArray): void {
    const from = other.#counts;
    const to = grown(this.#counts, from.length);
    this.#counts = to;
    for (let i = 0; i < from.length; i++) to[i] = (to[i] as number) + (from[i] as number);
    const peaks = other.#peaks;
    const highest = grown(this.#peaks, peaks.length);
    this.#peaks = highest;
    for (let i = 0; i < peaks.length; i++) {
      highest[i] = Math.max(highest[i] as number, peaks[i] as number);
    }
  }

  /** Returns the sums of a rule; undefined if the rule has none. */
  read(slot: number): RuleSums | undefined {
    const start = slot * COUNTS;
    const sums = { ...noRuleSums(), peak: this.#peaks[slot] ?? 0 };
    let hasAny = false;
    for (const [i, field] of RULE_COUNTS.entries()) {
      sums[field] = this.#counts[start + i] ?? 0;
      hasAny ||= sums[field] !== 0;
    }
    return hasAny ? sums : undefined;
  }

  clear(slot: number): void {
    this.#counts.fill(0, slot * COUNTS, (slot + 1) * COUNTS);
    this.#peaks.fill(0, slot, slot + 1);
  }

  /** Returns the columns that store these sums. */
  toStored(): { readonly rules: ArrayBuffer; readonly peaks: ArrayBuffer } {
    return { rules: this.#counts.slice().buffer, peaks: this.#peaks.slice().buffer };
  }
}

/** Returns the numbers in a blob, without a rule at its end that has not all of its `count` numbers. */
function numbersOf(blob: ArrayBuffer | null, count: number): Float64Array {
  if (!blob) return new Float64Array(0);
  const ruleBytes = count * Float64Array.BYTES_PER_ELEMENT;
  return new Float64Array(blob, 0, Math.floor(blob.byteLength / ruleBytes) * count);
}

/** Returns an array with at least a number of elements; the new ones are 0. */
function grown(array: Float64Array, length: number): Float64Array {
  if (array.length >= length) return array;
  const larger = new Float64Array(length);
  larger.set(array);
  return larger;
}

export function emptyRow(): SumsRow {
  return { requests: noRequests(), store: noStoreSums(), rules: new RuleArray() };
}

/** Reads the column `head` of rows. Fields that an older version did not store are 0. */
export function readHeads(heads: readonly string[]): Omit<SumsRow, "rules">[] {
  const all = JSON.parse(`[${heads.join(",")}]`) as Omit<SumsRow, "rules">[];
  for (const { requests, store } of all) {
    addMissing(requests, NO_REQUESTS);
    addMissing(store, NO_STORE_SUMS);
  }
  return all;
}

const NO_REQUESTS = noRequests();
const NO_STORE_SUMS = noStoreSums();

function addMissing<Sums extends object>(to: Sums, zeros: Sums): void {
  for (const field in zeros) to[field] ??= structuredClone(zeros[field]);
}

function readRow({ head, ...rules }: StoredSums): SumsRow {
  const [sums = { requests: noRequests(), store: noStoreSums() }] = readHeads([head]);
  return { ...sums, rules: new RuleArray(rules) };
}

function headOf({ requests, store }: SumsRow): string {
  return JSON.stringify({ requests, store });
}

/** Adds the sums of a row, or of a minute without its rules. */
export function addHead(to: SumsRow, { requests, store }: Omit<SumsRow, "rules">): void {
  addRequests(to.requests, requests);
  addStoreSums(to.store, store);
}

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The length of each bucket. */
export const BUCKET_MS: Readonly<Record<Resolution, number>> = {
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
};

/** How long buckets are kept. Sums that arrive late need the minutes of a day and a little more. */
export const RETENTION_MS: Readonly<Record<Resolution, number>> = {
  minute: 25 * HOUR_MS,
  hour: 31 * DAY_MS,
  day: 366 * DAY_MS,
};

const RESOLUTIONS = ["minute", "hour", "day"] as const satisfies readonly Resolution[];

/**
 * The statistics in SQLite: a table for minutes, one for hours and one for days, each with a row for each
 * bucket that has sums. The sums of a day are the sums of its hours, and those of an hour are the sums
 * of its minutes. Rows of hours and days also have the clients most limited.
 */
export class BucketTables {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    for (const resolution of RESOLUTIONS) {
      // SQLite reads the columns of a large row only as far as they are selected: `clients` is last.
      sql.exec(
        `CREATE TABLE IF NOT EXISTS ${resolution}s (at INTEGER PRIMARY KEY, head TEXT NOT NULL, rules BLOB NOT NULL, peaks BLOB, clients TEXT)`,
      );
      addPeaksColumn(sql, `${resolution}s`);
    }
  }

  /** Adds sums to the buckets of all three tables at a time. */
  add(at: number, sums: SumsRow): void {
    for (const resolution of RESOLUTIONS) this.addTo(resolution, at, sums);
  }

  /** Adds clients to the hours and days in which they were last limited. */
  addClients(clients: readonly LimitedClient[]): void {
    for (const resolution of ["hour", "day"] as const) {
      const groups = Map.groupBy(clients, ({ lastAt }) => bucketAt(resolution, lastAt));
      for (const [at, group] of groups) {
        const [row] = this.#sql.exec<{ clients: string | null }>(
          `SELECT clients FROM ${resolution}s WHERE at = ?`,
          at,
        );
        const sketch = new ClientSketch(readClients(row?.clients ?? ""));
        for (const client of group) sketch.add(client);
        const stored = storeClients(sketch.top());
        if (row) {
          this.#sql.exec(`UPDATE ${resolution}s SET clients = ? WHERE at = ?`, stored, at);
        } else {
          this.#put(resolution, at, emptyRow(), stored);
        }
      }
    }
  }

  /** Removes the buckets that have ended too long ago. */
  prune(now: number): void {
    for (const resolution of RESOLUTIONS) {
      this.#sql.exec(`DELETE FROM ${resolution}s WHERE at < ?`, now - RETENTION_MS[resolution]);
    }
  }

  /** Adds sums to the bucket of one table that contains a time. */
  addTo(resolution: Resolution, time: number, sums: SumsRow): void {
    const at = bucketAt(resolution, time);
    const [stored] = this.#sql.exec<StoredSums>(
      `SELECT head, rules, peaks FROM ${resolution}s WHERE at = ?`,
      at,
    );
    const row = stored ? readRow(stored) : emptyRow();
    addHead(row, sums);
    row.rules.addAll(sums.rules);
    if (!stored) {
      this.#put(resolution, at, row, null);
      return;
    }
    const { rules, peaks } = row.rules.toStored();
    this.#sql.exec(
      `UPDATE ${resolution}s SET head = ?, rules = ?, peaks = ? WHERE at = ?`,
      headOf(row),
      rules,
      peaks,
      at,
    );
  }

  #put(resolution: Resolution, at: number, row: SumsRow, clients: string | null): void {
    const { rules, peaks } = row.rules.toStored();
    this.#sql.exec(
      `INSERT INTO ${resolution}s (at, head, rules, peaks, clients) VALUES (?, ?, ?, ?, ?)`,
      at,
      headOf(row),
      rules,
      peaks,
      clients,
    );
  }
}

/** Returns the start of the bucket that contains a time. */
export function bucketAt(resolution: Resolution, time: number): number {
  return Math.floor(time / BUCKET_MS[resolution]) * BUCKET_MS[resolution];
}

/** The sums since the object exists, in a table with one row, and the state of the object. */
export class TotalsRow {
  readonly #sql: SqlStorage;
  /** When the object was created, in milliseconds since the Unix epoch. */
  readonly since: number;
  readonly sums: SumsRow;
  /** The sources whose last upload must not be added again after the object was evicted from memory. */
  readonly sources: readonly StoredSource[];

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS totals (since INTEGER PRIMARY KEY, head TEXT NOT NULL, rules BLOB NOT NULL, peaks BLOB, state TEXT NOT NULL)",
    );
    addPeaksColumn(sql, "totals");
    const [stored] = sql.exec<StoredSums & { since: number; state: string }>(
      "SELECT * FROM totals",
    );
    this.since = stored?.since ?? now;
    this.sums = stored ? readRow(stored) : emptyRow();
    this.sources = stored ? (JSON.parse(stored.state) as Pick<this, "sources">).sources : [];
  }

  write(sources: readonly StoredSource[]): void {
    const { rules, peaks } = this.sums.rules.toStored();
    this.#sql.exec(
      "INSERT OR REPLACE INTO totals (since, head, rules, peaks, state) VALUES (?, ?, ?, ?, ?)",
      this.since,
      headOf(this.sums),
      rules,
      peaks,
      JSON.stringify({ sources }),
    );
  }
}

/** The name under which the sums of rules appear for which there was no slot left. */
const OTHER_RULES = "(other)";

/** Rows of the statistics are kept for a shorter time, so no row has sums in a slot that is free again. */
const SLOT_MS = 400 * DAY_MS;

interface Slot {
  readonly slot: number;
  readonly name: string;
  seenAt: number;
}

/** The number of each rule, under which a row of the statistics has the rule's sums. */
export class RuleSlots {
  readonly #sql: SqlStorage;
  readonly #byName = new Map<string, Slot>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS rules (slot INTEGER PRIMARY KEY, name TEXT NOT NULL, seen_at INTEGER NOT NULL)",
    );
    const rows = sql.exec<{ slot: number; name: string; seen_at: number }>("SELECT * FROM rules");
    for (const { slot, name, seen_at } of rows) {
      this.#byName.set(name, { slot, name, seenAt: seen_at });
    }
  }

  /** Returns the slot of a rule; undefined if the rule has no sums. */
  find(name: string): number | undefined {
    return this.#byName.get(name)?.slot;
  }

  /** Returns the names of all rules with their slots. */
  all(): Iterable<Pick<Slot, "slot" | "name">> {
    return this.#byName.values();
  }

  /**
   * Returns the slot of a rule, and assigns a slot to a new rule.
   *
   * @param clear called with a slot that belonged to a rule that has not been seen for a year
   */
  slotFor(name: string, now: number, clear: (slot: number) => void): number {
    const known = this.#byName.get(name);
    if (known) {
      if (now - known.seenAt > DAY_MS) this.#put({ ...known, seenAt: now });
      return known.slot;
    }
    let slot = this.#byName.size;
    // The last slot is for the sums of all rules for which there is no slot.
    if (slot >= MAX_RULES - 1 && name !== OTHER_RULES) {
      const oldest = this.#oldest();
      if (now - oldest.seenAt < SLOT_MS) return this.slotFor(OTHER_RULES, now, clear);
      slot = oldest.slot;
      this.#byName.delete(oldest.name);
      clear(slot);
    }
    this.#put({ slot, name, seenAt: now });
    return slot;
  }

  #put(slot: Slot): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO rules VALUES (?, ?, ?)",
      slot.slot,
      slot.name,
      slot.seenAt,
    );
    this.#byName.set(slot.name, slot);
  }

  #oldest(): Slot {
    return [...this.#byName.values()].reduce((one, other) =>
      other.seenAt < one.seenAt && other.name !== OTHER_RULES ? other : one,
    );
  }
}
