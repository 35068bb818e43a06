import type { Row, Writes } from "../engine/fixed-window.ts";

const YEAR_MS = 365 * 86_400_000;

/**
 * The rows of one Durable Object, in its SQLite. The table is made when it is first needed, so
 * that an object that was never charged, or has been emptied, stores nothing.
 */
export class Rows {
  readonly #storage: DurableObjectStorage;
  #hasTable = false;
  /** When the alarm will ring; undefined when it is not set. */
  #alarmAt: number | undefined;

  constructor(storage: DurableObjectStorage, alarmAt: number | undefined) {
    this.#storage = storage;
    this.#alarmAt = alarmAt;
  }

  /** @returns what is stored under a key, unless it has expired */
  read(key: string, now: number): Row | undefined {
    const [row] = this.#query(
      "SELECT window, count, expires_at FROM rows WHERE key = ? AND expires_at > ?",
      key,
      now,
    ) as { window: number; count: number; expires_at: number }[];
    return row && { window: row.window, count: row.count, expiresAt: row.expires_at };
  }

  write(writes: Writes, now: number): void {
    for (const [key, row] of writes) {
      if (row) this.#put(key, row, now);
      else this.#query("DELETE FROM rows WHERE key = ?", key);
    }
  }

  /** To be called when the alarm rings: removes what has expired, and all when nothing is left. */
  async clean(now: number): Promise<void> {
    this.#alarmAt = undefined;
    this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    const [{ latest }] = this.#query("SELECT max(expires_at) AS latest FROM rows") as [
      { latest: number | null },
    ];
    if (latest !== null) return this.#ringAt(latest, now);
    this.#hasTable = false;
    await this.#storage.deleteAll();
  }

  #put(key: string, { window, count, expiresAt }: Row, now: number): void {
    const [updated] = this.#query(
      "UPDATE rows SET window = ?, count = ?, expires_at = ? WHERE key = ? RETURNING key",
      window,
      count,
      expiresAt,
      key,
    );
    if (updated) return;
    // A window's first charge is when its predecessors are cleared away.
    this.#query("DELETE FROM rows WHERE expires_at <= ?", now);
    this.#query("INSERT INTO rows VALUES (?, ?, ?, ?)", key, window, count, expiresAt);
    if (this.#alarmAt === undefined) this.#ringAt(expiresAt, now);
  }

  /**
   * Sets the alarm, which looks itself for when to ring next. No alarm can be set for centuries
   * ahead, as reservations can be made: that one rings early, and is set again.
   */
  #ringAt(time: number, now: number): void {
    this.#alarmAt = Math.min(time, now + YEAR_MS);
    this.#storage.setAlarm(this.#alarmAt);
  }

  #query(sql: string, ...bindings: SqlStorageValue[]): Record<string, SqlStorageValue>[] {
    if (!this.#hasTable) {
      this.#storage.sql.exec(
        "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, window INTEGER, count INTEGER, expires_at INTEGER) WITHOUT ROWID",
      );
      this.#hasTable = true;
    }
    return this.#storage.sql.exec(sql, ...bindings).toArray();
  }
}
