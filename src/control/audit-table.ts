import type { AuditEntry } from "./protocol.ts";

/** The newest entries are kept. At ten changes an hour, this many take more than ten years. */
export const MAX_AUDIT_ENTRIES = 1_000_000;

/** The maximum number of entries that one call returns. */
const MAX_PAGE = 1000;

/** The list of changes that operators have made. */
export class AuditTable {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS audit (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, entry TEXT NOT NULL)",
    );
  }

  add(entry: Omit<AuditEntry, "id" | "at">, now: number): void {
    // SQLite gives a new row the largest id plus 1, and the newest rows are never removed.
    const { id } = this.#sql
      .exec<{ id: number }>(
        "INSERT INTO audit (at, entry) VALUES (?, ?) RETURNING id",
        now,
        JSON.stringify(entry),
      )
      .one();
    this.#sql.exec("DELETE FROM audit WHERE id <= ?", id - MAX_AUDIT_ENTRIES);
  }

  /** @param before only entries with a smaller id */
  read(limit: number, before = Number.MAX_SAFE_INTEGER): AuditEntry[] {
    const rows = this.#sql.exec<{ id: number; at: number; entry: string }>(
      "SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?",
      before,
      Math.min(Math.max(Math.floor(limit), 0), MAX_PAGE),
    );
    return rows.toArray().map(({ id, at, entry }) => ({
      ...(JSON.parse(entry) as Omit<AuditEntry, "id" | "at">),
      id,
      at,
    }));
  }
}
