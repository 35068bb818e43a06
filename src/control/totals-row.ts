import type { StoredSource } from "./sources.ts";
import {
  addPeaksColumn,
  emptyRow,
  headOf,
  readRow,
  type StoredSums,
  type SumsRow,
} from "./sums-row.ts";

/** What the global object must still know after it was evicted from memory. */
export interface ObjectState {
  readonly sources: readonly StoredSource[];
  /** The number of collectors of each location. */
  readonly collectors: number;
}

/** The sums since the object exists, in a table with one row, and the state of the object. */
export class TotalsRow {
  readonly #sql: SqlStorage;
  /** When the object was created, in milliseconds since the Unix epoch. */
  readonly since: number;
  readonly sums: SumsRow;
  readonly state: ObjectState;

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
    this.state = stored
      ? (JSON.parse(stored.state) as ObjectState)
      : { sources: [], collectors: 0 };
  }

  write(state: ObjectState): void {
    const { rules, peaks } = this.sums.rules.toStored();
    this.#sql.exec(
      "INSERT OR REPLACE INTO totals (since, head, rules, peaks, state) VALUES (?, ?, ?, ?, ?)",
      this.since,
      headOf(this.sums),
      rules,
      peaks,
      JSON.stringify(state),
    );
  }
}
