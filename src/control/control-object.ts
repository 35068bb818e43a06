import { DurableObject } from "cloudflare:workers";
import { CONTROL_BINDING, type Env } from "../config/bindings.ts";
import type { Override } from "../overrides/override.ts";
import { IDENTITY_FORM, isIdentity } from "../request/identity.ts";
import { AuditTable } from "./audit-table.ts";
import { Collector, parentOf } from "./fan-in.ts";
import { OverrideTable } from "./override-table.ts";
import type {
  Actor,
  AuditEntry,
  ChangeResult,
  ControlApi,
  HandOver,
  HandOverAnswer,
  OverrideChange,
  StatisticsQuery,
  StatisticsReport,
  Totals,
} from "./protocol.ts";
import { Statistics } from "./statistics.ts";
import { validHandOver } from "./valid-hand-over.ts";

/**
 * The Durable Object with the statistics, the overrides and the audit list. Export it from your Worker,
 * and bind it as `WEIR_CONTROL` in wrangler.toml. Without this binding, Weir has no statistics, no
 * overrides and no dashboard. Only Weir calls its methods.
 *
 * @example export { ControlObject } from "edge-weir";
 */
// The object "global" has all data. The other objects collect sums for it: see fan-in.ts. During a
// deploy, caller and object may differ in version.
export class ControlObject extends DurableObject<Env> implements ControlApi {
  readonly #collector = this.#createCollector();
  #global: Global | undefined;

  async handOver(handOver: HandOver): Promise<HandOverAnswer> {
    const valid = validHandOver(handOver);
    if (this.#collector) return await this.#collector.handOver(valid);
    const { statistics, overrides } = this.#load();
    await statistics.add(valid, Date.now());
    const update = overrides.since(valid.overridesVersion, Date.now());
    return { collectors: statistics.collectors, ...(update && { overrides: update }) };
  }

  async statistics(query: StatisticsQuery): Promise<StatisticsReport> {
    return this.#load().statistics.read(query, Date.now());
  }

  async totals(): Promise<Totals> {
    const { statistics, overrides } = this.#load();
    const now = Date.now();
    return { ...statistics.totals(now), overrides: overrides.size(now) };
  }

  async overrides(): Promise<readonly Override[]> {
    return this.#load().overrides.all(Date.now());
  }

  async setOverride(change: OverrideChange, by: Actor): Promise<ChangeResult> {
    checkClient(change.client);
    const { overrides, audit } = this.#load();
    const now = Date.now();
    const result = overrides.set(change, by, now);
    if (!result) return { ok: false, fault: "full" };
    const { before, after } = result;
    const { rule, client, reason } = after;
    audit.add({ by, action: "override", rule, client, before, after, why: reason }, now);
    return { ok: true, override: after };
  }

  async removeOverride(id: string, by: Actor, why: string): Promise<Override | undefined> {
    const { overrides, audit } = this.#load();
    const now = Date.now();
    const before = overrides.remove(id, now);
    if (!before) return undefined;
    const { rule, client } = before;
    audit.add({ by, action: "remove-override", rule, client, before, why }, now);
    return before;
  }

  async addAuditEntry(entry: Omit<AuditEntry, "id" | "at">): Promise<void> {
    checkClient(entry.client);
    this.#load().audit.add(entry, Date.now());
  }

  async audit(limit: number, before?: number): Promise<readonly AuditEntry[]> {
    return this.#load().audit.read(limit, before);
  }

  /** Returns the tables of the global object, and creates them when they are used first. */
  #load(): Global {
    const { storage } = this.ctx;
    this.#global ??= {
      statistics: new Statistics(storage, Date.now()),
      overrides: new OverrideTable(storage.sql, Date.now()),
      audit: new AuditTable(storage.sql),
    };
    return this.#global;
  }

  /** @returns undefined for the global object */
  #createCollector(): Collector | undefined {
    const { name } = this.ctx.id;
    const parent = parentOf(name);
    if (name === undefined || parent === undefined) return undefined;
    const callParent = async (handOver: HandOver) => {
      const namespace = this.env[CONTROL_BINDING] as DurableObjectNamespace<ControlObject>;
      const stub = namespace.getByName(parent) as unknown as ControlApi;
      return await stub.handOver(handOver);
    };
    return new Collector(name, callParent);
  }
}

/** Whatever the caller has checked, no address and no key of a client is stored. */
function checkClient(client: unknown): void {
  if (client !== undefined && !isIdentity(client)) {
    throw new TypeError(`client must be ${IDENTITY_FORM}.`);
  }
}

interface Global {
  readonly statistics: Statistics;
  readonly overrides: OverrideTable;
  readonly audit: AuditTable;
}
