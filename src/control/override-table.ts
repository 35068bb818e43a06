import {
  MAX_OVERRIDES,
  type Override,
  type OverrideUpdate,
  overrideId,
} from "../overrides/override.ts";
import { OverrideChanges } from "./override-changes.ts";
import type { Actor, OverrideChange } from "./protocol.ts";

/**
 * The overrides of the global object in SQLite. An override that was removed or has ended leaves a
 * row without a value. All rows are also in memory, because every hand-over asks for changes.
 */
export class OverrideTable {
  readonly #sql: SqlStorage;
  readonly #changes: OverrideChanges;

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS overrides (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT)",
    );
    sql.exec(
      "CREATE TABLE IF NOT EXISTS override_versions (id INTEGER PRIMARY KEY CHECK (id = 0), oldest INTEGER NOT NULL, version INTEGER NOT NULL)",
    );
    const [stored] = sql.exec<{ oldest: number; version: number }>(
      "SELECT oldest, version FROM override_versions",
    );
    // Versions begin at the time of creation. So the versions of an object whose storage was deleted
    // are smaller than all versions of its successor, unless there was more than one change in each
    // millisecond.
    this.#changes = new OverrideChanges(stored?.version ?? now, stored?.oldest ?? now);
    if (!stored) this.#storeVersions();
    const rows = sql.exec<{ id: string; version: number; value: string | null }>(
      "SELECT id, version, value FROM overrides ORDER BY version",
    );
    for (const { id, version, value } of rows) {
      this.#changes.put(id, value === null ? undefined : (JSON.parse(value) as Override), version);
    }
  }

  /** The number of overrides that have not ended. */
  size(now: number): number {
    this.#removeEnded(now);
    return this.#changes.size;
  }

  /** Returns all overrides that have not ended, the newest first. */
  all(now: number): Override[] {
    this.#removeEnded(now);
    return [...this.#changes.values()].reverse();
  }

  /** @returns the override before and after the change; undefined if there are too many overrides */
  set(
    change: OverrideChange,
    by: Actor,
    now: number,
  ): { readonly before: Override | undefined; readonly after: Override } | undefined {
    this.#removeEnded(now);
    const id = overrideId(change);
    const before = this.#changes.get(id);
    if (!before && this.#changes.size >= MAX_OVERRIDES) return undefined;
    const after = { ...change, by, setAt: now } as Override;
    this.#write(id, after);
    return { before, after };
  }

  /** @returns the removed override; undefined if there was none */
  remove(id: string, now: number): Override | undefined {
    this.#removeEnded(now);
    const before = this.#changes.get(id);
    if (before) this.#write(id, undefined);
    return before;
  }

  /** Returns the changes since a version; undefined if there are none. */
  since(version: number, now: number): OverrideUpdate | undefined {
    this.#removeEnded(now);
    if (version === this.#changes.version) return undefined;
    // A version from the future is from another life of the object, so it says nothing.
    return this.#changes.since(version > this.#changes.version ? 0 : version);
  }

  #write(id: string, override: Override | undefined): void {
    const version = this.#changes.version + 1;
    this.#sql.exec(
      "INSERT OR REPLACE INTO overrides VALUES (?, ?, ?)",
      id,
      version,
      override ? JSON.stringify(override) : null,
    );
    this.#changes.put(id, override, version);
    this.#changes.version = version;
    this.#forgetRemoved();
    this.#storeVersions();
  }

  #removeEnded(now: number): void {
    const ended = this.#changes.removeEnded(now);
    if (ended.length === 0) return;
    for (const id of ended) this.#sql.exec("UPDATE overrides SET value = NULL WHERE id = ?", id);
    if (this.#forgetRemoved()) this.#storeVersions();
  }

  /** @returns whether rows were deleted, so that `oldest` may have changed */
  #forgetRemoved(): boolean {
    const forgotten = this.#changes.forgetRemoved();
    for (const id of forgotten) this.#sql.exec("DELETE FROM overrides WHERE id = ?", id);
    return forgotten.length > 0;
  }

  #storeVersions(): void {
    const { oldest, version } = this.#changes;
    this.#sql.exec("INSERT OR REPLACE INTO override_versions VALUES (0, ?, ?)", oldest, version);
  }
}
