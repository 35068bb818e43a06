import { type LimitedClient, MINUTE_MS } from "../statistics/sums.ts";
import { ClientSketch } from "./client-sketch.ts";
import type { Resolution } from "./protocol.ts";
import { readClients, storeClients } from "./stored-clients.ts";
import {
  addHead,
  addPeaksColumn,
  emptyRow,
  headOf,
  readRow,
  type StoredSums,
  type SumsRow,
} from "./sums-row.ts";

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

export const RESOLUTIONS = ["minute", "hour", "day"] as const satisfies readonly Resolution[];

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
