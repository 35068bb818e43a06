import type { Row, Writes } from "../../engine/counter.ts";

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/**
 * The rows of one Durable Object, in its SQLite. The table is made with the first row, so that an
 * object that was never charged, or has been emptied, stores nothing, however often it is read.
 */
export class CounterTable {
  readonly #storage: DurableObjectStorage;
  /** Undefined until SQLite was asked. */
  #hasTable: boolean | undefined;
  /** When the alarm will ring; undefined when it is not set. */
  #alarmAt: number | undefined;

  constructor(storage: DurableObjectStorage, alarmAt: number | undefined) {
    this.#storage = storage;
    this.#alarmAt = alarmAt;
  }

  /** @returns what is stored under a key, unless it has expired */
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
    if (firstExpiry < Number.POSITIVE_INFINITY) this.#ringFor(firstExpiry, now);
  }

  /** To be called when the alarm rings: removes what has expired, and all when nothing is left. */
  async clean(now: number): Promise<void> {
    this.#alarmAt = undefined;
    if (!this.#exists()) return;
    this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    const [{ earliest, latest }] = this.#query(
      "SELECT min(expires_at) AS earliest, max(expires_at) AS latest FROM rows",
    ) as [{ earliest: number | null; latest: number | null }];
    if (earliest !== null && latest !== null) {
      return this.#ringAt(Math.min(Math.max(earliest, now + HOUR_MS), latest), now);
    }
    this.#hasTable = false;
    await this.#storage.deleteAll();
  }

  /** @returns whether the row is a new one */
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
      // A window's first charge is when its predecessors are cleared away.
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
   * Has the alarm ring for a new row: when it expires, or within an hour of now if it is set for a
   * later time. So a row is kept for no more than an hour too long, and a busy object, which clears
   * ended windows away by itself, is woken no more than once an hour: an alarm costs a call and a row.
   */
  #ringFor(expiresAt: number, now: number): void {
    const isSet = this.#alarmAt !== undefined;
    const ringsBy = isSet ? Math.max(expiresAt, now + HOUR_MS) : expiresAt;
    if (this.#alarmAt === undefined || this.#alarmAt > ringsBy) this.#ringAt(ringsBy, now);
  }

  /** No alarm can be set for centuries ahead, as reservations can be made: that one rings early. */
  #ringAt(time: number, now: number): void {
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
