import type {
  AuditEntry,
  ControlApi,
  DenialsQuery,
  StoredDenials,
} from "../../../src/control/protocol.ts";
import { type Override, overrideId } from "../../../src/overrides/override.ts";

/** A control object in memory. With `isDead`, every call fails. */
export class FakeControl implements ControlApi {
  isDead = false;
  readonly entries: AuditEntry[] = [];
  readonly byId = new Map<string, Override>();
  /** The denials that the object answers with, and the newest query for denials. */
  readonly denied: StoredDenials[] = [];
  asked: DenialsQuery | undefined;

  /** The binding WEIR_CONTROL. */
  get binding() {
    return { getByName: () => this };
  }

  async upload() {
    this.#live();
    return { callAgainMs: 5000 };
  }

  async statistics(query: Parameters<ControlApi["statistics"]>[0]) {
    this.#live();
    const rest = { buckets: [], rules: {}, clients: [], isolates: 0, openBreakers: 0 };
    return { resolution: query.resolution, ...rest, query };
  }

  async totals(): ReturnType<ControlApi["totals"]> {
    this.#live();
    throw new Error("not a part of these tests");
  }

  async denials(query: DenialsQuery): Promise<readonly StoredDenials[]> {
    this.#live();
    this.asked = query;
    return this.denied;
  }

  async overrides() {
    this.#live();
    return [...this.byId.values()];
  }

  async setOverride(...[change, by]: Parameters<ControlApi["setOverride"]>) {
    this.#live();
    const override = { ...change, by, setAt: Date.now() } as Override;
    this.byId.set(overrideId(override), override);
    return { ok: true, override } as const;
  }

  async removeOverride(id: string) {
    this.#live();
    const override = this.byId.get(id);
    this.byId.delete(id);
    return override;
  }

  async addAuditEntry(entry: Omit<AuditEntry, "id" | "at">) {
    this.#live();
    this.entries.unshift({ id: this.entries.length + 1, at: Date.now(), ...entry });
  }

  async audit(limit: number) {
    this.#live();
    return this.entries.slice(0, limit);
  }

  #live(): void {
    if (this.isDead) throw new Error("the object is dead");
  }
}
