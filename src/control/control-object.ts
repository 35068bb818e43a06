import { DurableObject } from "cloudflare:workers";
import type { Env } from "../config/bindings.ts";
import {
  MAX_OVERRIDES,
  type Override,
  type OverrideUpdate,
  overrideId,
} from "../overrides/override.ts";
import { IDENTITY_FORM, isIdentity } from "../request/identity.ts";
import type {
  Actor,
  AuditEntry,
  ChangeResult,
  ControlApi,
  DenialsQuery,
  OverrideChange,
  StatisticsQuery,
  StatisticsReport,
  StatisticsUpload,
  StoredDenials,
  Totals,
  UploadAnswer,
} from "./protocol.ts";
import { Statistics } from "./statistics.ts";
import { CallSlots } from "./uploads.ts";

/**
 * The overrides in SQLite. All of them are also in memory, because every upload asks for them. The newest override is
 * the last one.
 */
class OverrideTable {
  readonly #sql: SqlStorage;
  readonly #overrides = new Map<string, Override>();
  /**
   * The number of the newest change. It begins with the time when the object started. So after a restart of the object,
   * the version of every isolate is different, and the isolate loads the overrides again.
   */
  #version: number;

  constructor(sql: SqlStorage, now: number) {
    this.#sql = sql;
    this.#version = now;
    sql.exec(
      "CREATE TABLE IF NOT EXISTS overrides (id TEXT PRIMARY KEY, version INTEGER NOT NULL, value TEXT NOT NULL)",
    );
    const rows = sql.exec<{ id: string; value: string }>(
      "SELECT id, value FROM overrides WHERE value IS NOT NULL ORDER BY version",
    );
    for (const { id, value } of rows) this.#overrides.set(id, JSON.parse(value) as Override);
  }

  /** Returns all overrides that have not ended, the newest first. */
  all(now: number): Override[] {
    for (const [id, { expiresAt }] of this.#overrides) if (expiresAt <= now) this.#delete(id);
    return [...this.#overrides.values()].reverse();
  }

  /** @returns the override before and after the change; undefined if there are too many overrides */
  set(
    change: OverrideChange,
    by: Actor,
    now: number,
  ): { readonly before: Override | undefined; readonly after: Override } | undefined {
    const { length } = this.all(now);
    const id = overrideId(change);
    const before = this.#overrides.get(id);
    if (!before && length >= MAX_OVERRIDES) return undefined;
    const after = { ...change, by, setAt: now } as Override;
    this.#version += 1;
    this.#sql.exec(
      "INSERT OR REPLACE INTO overrides VALUES (?, ?, ?)",
      id,
      this.#version,
      JSON.stringify(after),
    );
    this.#overrides.delete(id);
    this.#overrides.set(id, after);
    return { before, after };
  }

  /** @returns the removed override; undefined if there was none */
  remove(id: string, now: number): Override | undefined {
    const before = this.all(now).find((each) => overrideId(each) === id);
    if (!before) return undefined;
    this.#version += 1;
    this.#delete(id);
    return before;
  }

  /**
   * Returns all overrides, unless an isolate with this version already has them. The isolate ends them by its own
   * clock.
   */
  since(version: number, now: number): OverrideUpdate | undefined {
    return version === this.#version ? undefined : { version: this.#version, all: this.all(now) };
  }

  #delete(id: string): void {
    this.#sql.exec("DELETE FROM overrides WHERE id = ?", id);
    this.#overrides.delete(id);
  }
}

/** How many of the newest entries are kept. At ten changes an hour, they cover more than ten years. */
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
    // SQLite gives a new row the largest id plus 1. The newest rows are never removed, so no id occurs twice.
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

/**
 * The Durable Object with the statistics, the overrides and the audit list. Export it from your Worker,
 * and bind it as `WEIR_CONTROL` in wrangler.toml. Without this binding, Weir has no statistics, no
 * overrides and no dashboard. Only Weir calls its methods.
 *
 * @example export { ControlObject } from "edge-weir";
 */
// All calls go to the object with the name "global". During a deploy, the versions of caller and object may differ.
export class ControlObject extends DurableObject<Env> implements ControlApi {
  readonly #slots = new CallSlots();
  readonly #statistics = new Statistics(this.ctx.storage, Date.now());
  readonly #overrides = new OverrideTable(this.ctx.storage.sql, Date.now());
  readonly #audit = new AuditTable(this.ctx.storage.sql);

  async upload(upload: StatisticsUpload): Promise<UploadAnswer> {
    const callAgainMs = this.#slots.take(Date.now());
    await this.#statistics.add(upload, Date.now());
    const overrides = this.#overrides.since(upload.overridesVersion, Date.now());
    return { callAgainMs, ...(overrides && { overrides }) };
  }

  async statistics(query: StatisticsQuery): Promise<StatisticsReport> {
    return this.#statistics.read(query, Date.now());
  }

  async totals(): Promise<Totals> {
    const now = Date.now();
    return { ...this.#statistics.totals(now), overrides: this.#overrides.all(now).length };
  }

  async denials(query: DenialsQuery): Promise<readonly StoredDenials[]> {
    return this.#statistics.denials(query, Date.now());
  }

  async overrides(): Promise<readonly Override[]> {
    return this.#overrides.all(Date.now());
  }

  async setOverride(change: OverrideChange, by: Actor): Promise<ChangeResult> {
    checkClient(change.client);
    const now = Date.now();
    const result = this.#overrides.set(change, by, now);
    if (!result) return { ok: false, fault: "full" };
    const { before, after } = result;
    const { rule, client, reason } = after;
    this.#audit.add({ by, action: "override", rule, client, before, after, why: reason }, now);
    return { ok: true, override: after };
  }

  async removeOverride(id: string, by: Actor, why: string): Promise<Override | undefined> {
    const now = Date.now();
    const before = this.#overrides.remove(id, now);
    if (!before) return undefined;
    const { rule, client } = before;
    this.#audit.add({ by, action: "remove-override", rule, client, before, why }, now);
    return before;
  }

  async addAuditEntry(entry: Omit<AuditEntry, "id" | "at">): Promise<void> {
    checkClient(entry.client);
    this.#audit.add(entry, Date.now());
  }

  async audit(limit: number, before?: number): Promise<readonly AuditEntry[]> {
    return this.#audit.read(limit, before);
  }
}

/** Makes sure that no address and no key of a client is stored, even if a caller has not checked this. */
function checkClient(client: unknown): void {
  if (client !== undefined && !isIdentity(client)) {
    throw new TypeError(`client must be ${IDENTITY_FORM}.`);
  }
}
