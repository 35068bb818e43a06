import {
  MAX_OVERRIDES,
  type Override,
  type OverrideUpdate,
  overrideId,
} from "../overrides/override.ts";
import type { Actor, OverrideChange } from "./protocol.ts";

/** The maximum number of overrides that are remembered after they were removed or have ended. */
const MAX_REMOVED = 10_000;

/**
 * The overrides in the memory of an object, with the version in which each was changed. The id of an
 * override that was removed or has ended stays for some time, because isolates may have an older version
 * of it that ends later.
 */
class OverrideChanges {
  /** By id, in the order of their changes. */
  readonly #overrides = new Map<string, Override>();
  /** By id, in the same order: the version of the last change of each override, also of removed ones. */
  readonly #versions = new Map<string, number>();
  /** All changes after this version are known. */
  oldest: number;
  /** The version of the newest change. */
  version: number;
  /** The first time at which an override ends; may be too early. */
  #nextEnd = Number.POSITIVE_INFINITY;

  constructor(version: number, oldest = version) {
    this.version = version;
    this.oldest = oldest;
  }

  get size(): number {
    return this.#overrides.size;
  }

  get(id: string): Override | undefined {
    return this.#overrides.get(id);
  }

  values(): Iterable<Override> {
    return this.#overrides.values();
  }

  /** @param override undefined if the override was removed */
  put(id: string, override: Override | undefined, version: number): void {
    // Deleted first, so that the entries stay in the order of changes.
    this.#versions.delete(id);
    this.#overrides.delete(id);
    this.#versions.set(id, version);
    if (!override) return;
    this.#overrides.set(id, override);
    this.#nextEnd = Math.min(this.#nextEnd, override.expiresAt);
  }

  /**
   * Returns the changes since a version.
   *
   * @param version the version that the receiver has, at most that of the newest change
   */
  since(version: number): OverrideUpdate {
    if (version < this.oldest) {
      return { version: this.version, isComplete: true, set: [...this.values()], removed: [] };
    }
    const set: Override[] = [];
    const removed: string[] = [];
    for (const [id, changedIn] of this.#versions) {
      if (changedIn <= version) continue;
      const override = this.#overrides.get(id);
      if (override) set.push(override);
      else removed.push(id);
    }
    return { version: this.version, isComplete: false, set, removed };
  }

  /**
   * Removes the overrides that have ended. They keep their versions: an isolate that has this version
   * knows the end, and an isolate with an older version learns that the override is gone.
   *
   * @returns the ids of the removed overrides
   */
  removeEnded(now: number): string[] {
    if (now < this.#nextEnd) return [];
    this.#nextEnd = Number.POSITIVE_INFINITY;
    const ended: string[] = [];
    for (const [id, { expiresAt }] of this.#overrides) {
      if (expiresAt > now) {
        this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
        continue;
      }
      this.#overrides.delete(id);
      ended.push(id);
    }
    return ended;
  }

  /**
   * Forgets the oldest of the overrides that were removed or have ended, if there are too many.
   *
   * @returns the forgotten ids
   */
  forgetRemoved(): string[] {
    const forgotten: string[] = [];
    const excess = this.#versions.size - this.#overrides.size - MAX_REMOVED;
    if (excess <= 0) return forgotten;
    for (const [id, version] of this.#versions) {
      if (forgotten.length === excess) break;
      if (this.#overrides.has(id)) continue;
      this.#versions.delete(id);
      this.oldest = Math.max(this.oldest, version);
      forgotten.push(id);
    }
    return forgotten;
  }
}

/**
 * The overrides of the global object in SQLite. An override that was removed or has ended leaves a
 * row without a value. All rows are also in memory, because every upload asks for changes.
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
