import { DenialList, type Denials, minuteOf } from "../statistics/denials.ts";
import { MINUTE_MS } from "../statistics/sums.ts";
import type { DenialsQuery, StoredDenials } from "./protocol.ts";
import { MAX_KEPT_DENIALS } from "./uploads.ts";

/** The time for which denials are kept, in milliseconds. */
const RETENTION_MS = 7 * 24 * 60 * MINUTE_MS;

/** The minimum number of entries that are removed at once, so that few rows are written to remove them. */
const REMOVED_AT_ONCE = 100;

/** The difference between the ids of the first entries of two minutes. A minute gets fewer entries. */
const IDS_OF_MINUTE = 2 ** 22;

/**
 * The latest denials in SQLite. A row has all entries of a minute as JSON, because every written row is billed: one row
 * for each entry would make an attack by many clients expensive.
 */
export class DenialTable {
  readonly #sql: SqlStorage;
  /** The number of entries of each minute. */
  readonly #counts = new Map<number, number>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS denials (minute INTEGER PRIMARY KEY, count INTEGER NOT NULL, entries TEXT NOT NULL)",
    );
    const rows = sql.exec<{ minute: number; count: number }>("SELECT minute, count FROM denials");
    for (const { minute, count } of rows) this.#counts.set(minute, count);
  }

  /** Adds denials to their minutes. The oldest entries are removed if there are too many. */
  add(denials: readonly Denials[], now: number): void {
    for (const [minute, added] of Map.groupBy(denials, minuteOf)) {
      const stored = this.#entriesOf(minute);
      const list = new DenialList(MAX_KEPT_DENIALS, [...stored, ...added]);
      let id = stored.at(-1)?.id ?? minute * IDS_OF_MINUTE;
      // New entries follow the stored ones, so that readers of pages see each entry once.
      const entries: readonly (Denials & { readonly id?: number })[] = list.take();
      const numbered = entries.map((each) => ({ ...each, id: each.id ?? ++id }));
      this.#write(
        minute,
        numbered.sort((one, other) => one.id - other.id),
      );
    }
    if (denials.length > 0) this.prune(now);
  }

  /** Removes the entries that are too old, and the oldest ones above the maximum number. */
  prune(now: number): void {
    const oldest = Math.floor((now - RETENTION_MS) / MINUTE_MS);
    let all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    for (const [minute, count] of [...this.#counts].sort(([one], [other]) => one - other)) {
      if (minute >= oldest && all <= MAX_KEPT_DENIALS) break;
      const tooMany = Math.max(all - MAX_KEPT_DENIALS, REMOVED_AT_ONCE);
      const removed = minute < oldest ? count : Math.min(count, tooMany);
      this.#write(minute, this.#entriesOf(minute).slice(removed));
      all -= removed;
    }
  }

  read(query: DenialsQuery, now: number): StoredDenials[] {
    const { rule, clients, since = 0, until = now + RETENTION_MS } = query;
    const { before = Number.MAX_SAFE_INTEGER, limit = MAX_KEPT_DENIALS } = query;
    const rows = this.#sql.exec<{ entries: string }>(
      "SELECT entries FROM denials WHERE minute BETWEEN ? AND ? ORDER BY minute DESC",
      Math.floor(Math.max(since, now - RETENTION_MS) / MINUTE_MS),
      Math.floor(Math.min(until / MINUTE_MS, before / IDS_OF_MINUTE)),
    );
    const found: StoredDenials[] = [];
    for (const { entries } of rows) {
      const stored = (JSON.parse(entries) as StoredDenials[]).filter((each) => {
        const isChosen =
          (rule ?? each.rule) === each.rule && clients?.includes(each.client) !== false;
        return isChosen && each.id < before && each.lastAt >= since && each.firstAt <= until;
      });
      found.push(...stored.reverse());
      if (found.length >= limit) break;
    }
    return found.slice(0, limit);
  }

  #entriesOf(minute: number): StoredDenials[] {
    const rows = this.#sql.exec<{ entries: string }>(
      "SELECT entries FROM denials WHERE minute = ?",
      minute,
    );
    return rows.toArray().flatMap(({ entries }) => JSON.parse(entries) as StoredDenials[]);
  }

  #write(minute: number, entries: readonly StoredDenials[]): void {
    const { length } = entries;
    if (length > 0) {
      const text = JSON.stringify(entries);
      this.#sql.exec("INSERT OR REPLACE INTO denials VALUES (?, ?, ?)", minute, length, text);
      this.#counts.set(minute, length);
    } else {
      this.#sql.exec("DELETE FROM denials WHERE minute = ?", minute);
      this.#counts.delete(minute);
    }
  }
}
