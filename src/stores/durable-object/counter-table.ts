import type { Row, Writes } from "../../engine/counter.ts";

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/**
 * The rows of one Durable Object, in its SQLite database. The table is created together with its
 * first row. So an object that was never charged, or has been emptied, stores nothing, even if it
 * is read often.
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

  /** Returns the row stored under a key, unless it has expired. */
  read(key: string, now: number): Row | undefined {
    if (!this.#exists()) return undefined;
    const [row] = this.#query(
      "SELECT window, count, expires_at FROM rows WHERE key = ? AND expires_at > ?",
      key,
      now,
    ) as { window: number; count: number; expires_at: number }[];
    return row && { window: row.window, count: row.count, expiresAt: row.expires_at };
  }

  write(writes: Writes, now: number): void {
    let firstExpiry = Number.POSITIVE_INFINITY;
    for (const [key, row] of writes) {
      if (!row) {
        if (this.#exists()) this.#query("DELETE FROM rows WHERE key = ?", key);
      } else if (this.#put(key, row, now)) {
        firstExpiry = Math.min(firstExpiry, row.expiresAt);
      }
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

  /** Inserts or updates a row. @returns whether the key is new */
  #put(key: string, { window, count, expiresAt }: Row, now: number): boolean {
    if (this.#exists()) {
      const [updated] = this.#query(
        "UPDATE rows SET window = ?, count = ?, expires_at = ? WHERE key = ? RETURNING key",
        window,
        count,
        expiresAt,
        key,
      );
      if (updated) return false;
      // The first charge of a window removes the rows of earlier windows.
      this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    } else {
      this.#query(
        "CREATE TABLE rows (key TEXT PRIMARY KEY, window INTEGER, count INTEGER, expires_at INTEGER) WITHOUT ROWID",
      );
      this.#hasTable = true;
    }
    this.#query("INSERT INTO rows VALUES (?, ?, ?, ?)", key, window, count, expiresAt);
    return true;
  }

  /**
   * Makes sure that an alarm removes a new row. If no alarm is set, this method sets an alarm for
   * the row's expiry. An alarm that is set already is moved only if it is later than the row's
   * expiry and more than an hour ahead. So a row is kept at most an hour too long. An alarm costs
   * a call and a written row, and a busy object removes the rows of ended windows anyway. So the
   * alarm wakes a busy object at most once in its longest window or, if that is longer than an
   * hour, once an hour.
   */
  #ensureAlarm(expiresAt: number, now: number): void {
    const isSet = this.#alarmAt !== undefined;
    const latestAlarm = isSet ? Math.max(expiresAt, now + HOUR_MS) : expiresAt;
    if (this.#alarmAt === undefined || this.#alarmAt > latestAlarm)
      this.#setAlarm(latestAlarm, now);
  }

  /**
   * Sets an alarm, at most a year ahead. A reservation can last for centuries, but an alarm cannot
   * be set so late.
   */
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
