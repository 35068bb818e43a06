import {
  MAX_OVERRIDES,
  type Override,
  type OverrideUpdate,
  overrideId,
} from "../overrides/override.ts";
import type { Actor, OverrideChange } from "./protocol.ts";

/** Removed overrides are remembered for this number of changes, for isolates with an older version. */
const MAX_TOMBSTONES = 10_000;

type Row = { readonly id: string; readonly version: number; readonly value: string | null };

/**
 * The overrides, each with the version of its last change. A removed override leaves a row without a
 * value, so that isolates learn of the removal.
 */
export class OverrideTable {
  readonly #sql: SqlStorage;
  /** All overrides by id, the newest last. They are read in every report, and written rarely. */
  readonly #overrides = new Map<string, Override>();
  readonly #changes = new Map<string, number>();
  /** The version before the oldest change that is still known. */
  #oldest: number;
  #version: number;
  /** The first time at which an override ends; may be too early. */
  #nextEnd = Number.POSITIVE_INFINITY;

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS overrides (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT)",
    );
    // Versions begin at the time of creation. So versions of an object whose storage was deleted are
    // smaller than all versions of its successor.
    sql.exec(
      "CREATE TABLE IF NOT EXISTS override_versions (id INTEGER PRIMARY KEY CHECK (id = 0), oldest INTEGER NOT NULL, version INTEGER NOT NULL)",
    );
    const [versions] = sql.exec<{ oldest: number; version: number }>(
      "SELECT oldest, version FROM override_versions",
    );
    this.#oldest = versions?.oldest ?? now;
    this.#version = versions?.version ?? now;
    if (!versions) sql.exec("INSERT INTO override_versions VALUES (0, ?, ?)", now, now);
    for (const { id, version, value } of sql.exec<Row>(
      "SELECT * FROM overrides ORDER BY version",
    )) {
      this.#changes.set(id, version);
      if (value !== null) this.#keep(id, JSON.parse(value) as Override);
    }
  }

  /** The number of overrides that have not ended. */
  size(now: number): number {
    this.removeEnded(now);
    return this.#overrides.size;
  }

  /** Returns all overrides that have not ended, the newest first. */
  all(now: number): Override[] {
    this.removeEnded(now);
    return [...this.#overrides.values()].reverse();
  }

  /** @returns the override before and after the change; undefined if there are too many overrides */
  set(
    change: OverrideChange,
    by: Actor,
    now: number,
  ): { readonly before: Override | undefined; readonly after: Override } | undefined {
    this.removeEnded(now);
    const id = overrideId(change);
    const before = this.#overrides.get(id);
    if (!before && this.#overrides.size >= MAX_OVERRIDES) return undefined;
    const after = { ...change, by, setAt: now } as Override;
    this.#write(id, after);
    return { before, after };
  }

  remove(id: string, now: number): Override | undefined {
    this.removeEnded(now);
    const before = this.#overrides.get(id);
    if (before) this.#write(id, undefined);
    return before;
  }

  /** Returns the changes since a version; undefined if there are none. */
  since(version: number, now: number): OverrideUpdate | undefined {
    this.removeEnded(now);
    if (version === this.#version) return undefined;
    if (version < this.#oldest || version > this.#version) {
      const set = [...this.#overrides.values()];
      return { version: this.#version, isComplete: true, set, removed: [] };
    }
    const set: Override[] = [];
    const removed: string[] = [];
    for (const [id, changedIn] of this.#changes) {
      if (changedIn <= version) continue;
      const override = this.#overrides.get(id);
      if (override) set.push(override);
      else removed.push(id);
    }
    return { version: this.#version, isComplete: false, set, removed };
  }

  /** Removes the overrides that have ended. Isolates know the end, so this is no change for them. */
  removeEnded(now: number): void {
    if (now < this.#nextEnd) return;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    for (const [id, { expiresAt }] of this.#overrides) {
      if (expiresAt > now) {
        this.#nextEnd = Math.min(this.#nextEnd, expiresAt);
        continue;
      }
      this.#overrides.delete(id);
      this.#changes.delete(id);
      this.#sql.exec("DELETE FROM overrides WHERE id = ?", id);
    }
  }

  #keep(id: string, override: Override): void {
    this.#overrides.set(id, override);
    this.#nextEnd = Math.min(this.#nextEnd, override.expiresAt);
  }

  #write(id: string, override: Override | undefined): void {
    this.#version += 1;
    // Deleted first, so that the maps stay in the order of changes.
    this.#changes.delete(id);
    this.#overrides.delete(id);
    this.#changes.set(id, this.#version);
    if (override) this.#keep(id, override);
    this.#sql.exec(
      "INSERT OR REPLACE INTO overrides VALUES (?, ?, ?)",
      id,
      this.#version,
      override ? JSON.stringify(override) : null,
    );
    this.#forgetTombstones();
    this.#sql.exec(
      "INSERT OR REPLACE INTO override_versions VALUES (0, ?, ?)",
      this.#oldest,
      this.#version,
    );
  }

  #forgetTombstones(): void {
    let excess = this.#changes.size - this.#overrides.size - MAX_TOMBSTONES;
    if (excess <= 0) return;
    for (const [id, version] of this.#changes) {
      if (excess <= 0) break;
      if (this.#overrides.has(id)) continue;
      this.#changes.delete(id);
      this.#sql.exec("DELETE FROM overrides WHERE id = ?", id);
      this.#oldest = version;
      excess -= 1;
    }
  }
}
