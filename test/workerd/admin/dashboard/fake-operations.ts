import {
  type AdminOperations,
  type ClientReport,
  type ClientSelector,
  OperationError,
  type RuleView,
} from "../../../../src/admin/operations.ts";
import type {
  AuditEntry,
  Bucket,
  StatisticsQuery,
  StatisticsReport,
  StoredDenials,
  Totals,
} from "../../../../src/control/protocol.ts";
import { type Override, overrideId } from "../../../../src/overrides/override.ts";
import { IDENTITY_FORM, isIdentity } from "../../../../src/request/identity.ts";
import {
  addRequests,
  addRuleSums,
  addStoreSums,
  LATENCY_BOUNDS_MS,
  type LimitedClient,
  noRequests,
  noRuleSums,
  noStoreSums,
  type RuleSums,
} from "../../../../src/statistics/sums.ts";
import { fakeExplanation } from "./fake-explanation.ts";

const STEP_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

export interface FakeOptions {
  /** The number of rules. */
  readonly rules: number;
  /** Returns the time in milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/** Operations with made-up rules and traffic that is the same in each run, for tests and measurements of pages. */
export class FakeOperations implements AdminOperations {
  readonly views: RuleView[];
  readonly setOverrides = new Map<string, Override>();
  readonly entries: AuditEntry[] = [];
  readonly #clock: () => number;

  constructor({ rules, clock }: FakeOptions) {
    this.#clock = clock;
    this.views = Array.from({ length: rules }, (_, index) => viewOf(index));
  }

  async rules() {
    return this.views.map((view) => {
      const override = this.setOverrides.get(view.name);
      return override ? { ...view, override } : view;
    });
  }

  async statistics(query: StatisticsQuery): Promise<StatisticsReport> {
    const step = STEP_MS[query.resolution];
    const buckets: Bucket[] = [];
    const ruleBuckets: RuleSums[] = [];
    const rules: Record<string, RuleSums> = {};
    for (let at = query.from; at < query.until && at <= this.#clock(); at += step) {
      buckets.push(bucketAt(at, step));
    }
    for (const [index, { name, mode }] of this.views.entries()) {
      if (query.rule !== undefined && query.rule !== name) continue;
      const total = noRuleSums();
      for (const { at } of buckets) {
        const sums = ruleSumsAt(index, mode, at, step);
        addRuleSums(total, sums);
        if (query.rule === name) ruleBuckets.push(sums);
      }
      rules[name] = total;
    }
    const clients = this.#clients().filter(({ rule }) => rule === (query.rule ?? rule));
    return {
      resolution: query.resolution,
      buckets,
      rules,
      ...(query.rule !== undefined && { ruleBuckets }),
      clients,
      isolates: 37,
      openBreakers: 0,
    };
  }

  async totals(): Promise<Totals> {
    const since = this.#clock() - 40 * STEP_MS.day;
    const requests = noRequests();
    const store = noStoreSums();
    for (let at = since; at < this.#clock(); at += STEP_MS.day) {
      const bucket = bucketAt(at, STEP_MS.day);
      addRequests(requests, bucket.requests);
      addStoreSums(store, bucket.store);
    }
    const overrides = this.setOverrides.size;
    return { since, requests, store, rules: {}, isolates: 37, openBreakers: 0, overrides };
  }

  async denials(
    {
      rule,
      before = Number.POSITIVE_INFINITY,
      limit = 2000,
    }: Parameters<AdminOperations["denials"]>[0],
    selector?: ClientSelector,
  ) {
    return Array.from({ length: 2000 }, (_, index) => this.#denials(index))
      .filter((each) => each.id < before && each.rule === (rule ?? each.rule))
      .filter(({ client }) => !selector || client === identity(4))
      .slice(0, limit);
  }

  async identify(selector: ClientSelector): Promise<readonly { readonly client: string }[]> {
    if (!("client" in selector)) return [{ client: identity(4) }];
    if (isIdentity(selector.client)) return [{ client: selector.client }];
    throw new OperationError("invalid", `client must be ${IDENTITY_FORM}.`);
  }

  async peek(_selector: unknown, rule?: string): Promise<readonly ClientReport[]> {
    const names = rule === undefined ? ["login", "search"] : [rule];
    return names.map((name) => this.#report(name, identity(4)));
  }

  async reset(_selector: unknown, rule: string, by: string, why: string) {
    this.#enter({ by, why, action: "reset", rule, client: identity(4) });
    return [this.#report(rule, identity(4))];
  }

  async liftBan(_selector: unknown, rule: string, by: string, why: string) {
    this.#enter({ by, why, action: "lift-ban", rule, client: identity(4) });
    return [this.#report(rule, identity(4))];
  }

  async overrides() {
    return [...this.setOverrides.values()].reverse();
  }

  async setOverride(change: Parameters<AdminOperations["setOverride"]>[0], by: string) {
    const override: Override = { ...change, by, setAt: this.#clock() };
    const before = this.setOverrides.get(overrideId(override));
    this.setOverrides.set(overrideId(override), override);
    const { rule, client, reason: why } = override;
    this.#enter({ by, why, action: "override", rule, client, before, after: override });
    return { ok: true, override } as const;
  }

  async removeOverride(id: string, by: string, why: string) {
    const before = this.setOverrides.get(id);
    this.setOverrides.delete(id);
    if (before) this.#enter({ by, why, action: "remove-override", rule: before.rule, before });
    return before;
  }

  async audit(limit: number, before = Number.POSITIVE_INFINITY) {
    return this.entries.filter(({ id }) => id < before).slice(0, limit);
  }

  async explain() {
    return fakeExplanation(this.#clock());
  }

  #enter(entry: Omit<AuditEntry, "id" | "at">): void {
    this.entries.unshift({ ...entry, id: this.entries.length + 1, at: this.#clock() });
  }

  #clients(): LimitedClient[] {
    return this.views.slice(0, 12).map(({ name, mode }, index) => ({
      rule: name,
      client: identity(index),
      count: Math.round(4200 / (index + 1)),
      error: index > 6 ? 12 : 0,
      lastAt: this.#clock() - index * 41_000 - 3000,
      shadow: mode === "shadow",
    }));
  }

  /** @param index 0 for the newest entry */
  #denials(index: number): StoredDenials {
    const { name: rule, limits, mode } = this.views[index % this.views.length] as RuleView;
    const lastAt = this.#clock() - 4000 - index * 150_000;
    return {
      id: 10_000 - index,
      rule,
      policy: limits[0]?.policy ?? rule,
      client: identity(index % 7),
      mode: mode === "shadow" ? "shadow" : "enforce",
      count: 1 + ((index * 37) % 900),
      firstAt: lastAt - 3000,
      lastAt,
      retryAfterMs: 34_000,
      colo: index % 5 === 0 ? "SIN" : "FRA",
    };
  }

  #report(rule: string, client: string): ClientReport {
    const limits = this.views.find(({ name }) => name === rule)?.limits ?? [];
    const override = this.setOverrides.get(`${rule}:${client}`);
    const ruleOverride = this.setOverrides.get(rule);
    const quotas = limits.map(({ policy, limit }, index) => ({
      policy,
      limit,
      windowMs: 60_000,
      remaining: index === 0 ? 0 : Math.floor(limit / 3),
      resetMs: 34_000,
      resetAt: this.#clock() + 34_000,
      violated: index === 0,
      retryAfterMs: 34_000,
      reservationDelayMs: 0,
    }));
    const banMs = rule === "login" ? 840_000 : 0;
    return { rule, client, countedBy: "ip", quotas, banMs, override, ruleOverride };
  }
}

const NAMED: readonly Partial<RuleView>[] = [
  { name: "login", match: "POST /login, /password-reset", onError: "closed", hasBan: true },
  { name: "search", match: "/search", key: "header:x-api-key | ip", hasTiers: true },
  { name: "uploads", match: "PUT /files/*", key: "jwt:sub" },
  { name: "search-strict", match: "/search", mode: "shadow", configuredMode: "shadow" },
  { name: "api", match: "/v1/*", key: "header:x-api-key | ip" },
  { name: "scrapers", match: "/*", mode: "mark", configuredMode: "mark" },
];

function viewOf(index: number): RuleView {
  const named = NAMED[index];
  const name = named?.name ?? `partner-${index}`;
  const limits =
    index === 1
      ? [
          { policy: `${name}/1m`, limit: 33, window: "1m" },
          { policy: `${name}/1h`, limit: 2000, window: "1h" },
        ]
      : [{ policy: name, limit: 5 + 10 * index, window: "1m" }];
  return {
    name,
    key: "ip",
    mode: "enforce",
    configuredMode: "enforce",
    onError: "open",
    limits,
    hasTiers: false,
    hasBan: false,
    match: `api.partner-${index}.example.com /v1/*`,
    ...named,
  };
}

/** Returns a number from 0 to 1 that depends only on the arguments. */
function noise(...seeds: number[]): number {
  let state = 2_166_136_261;
  for (const seed of seeds) {
    state = Math.imul(state ^ seed, 2_654_435_761);
    state = Math.imul(state ^ (state >>> 15), 2_246_822_519);
    state ^= state >>> 13;
  }
  return (state >>> 0) / 2 ** 32;
}

/** Returns the traffic of a step, in usual minutes, and the strength of an attack, which is mostly 0. */
function loadAt(at: number, step: number): { usual: number; attack: number } {
  const hour = (at / 3_600_000) % 24;
  const daily = step >= STEP_MS.day ? 1 : 1 + 0.5 * Math.sin(((hour - 8) / 12) * Math.PI);
  const slot = Math.floor(at / step);
  const attack =
    Math.max(0, 5 * noise(Math.floor(slot / 4), 3) - 3.6) * (2 - Math.abs((slot % 4) - 1));
  return { usual: (daily * (0.85 + 0.3 * noise(slot)) * step) / 60_000, attack };
}

function bucketAt(at: number, step: number): Bucket {
  const { usual, attack } = loadAt(at, step);
  const allowed = Math.round(1180 * usual);
  const limited = Math.round((38 + 110 * attack) * usual);
  const unmatched = Math.round(210 * usual);
  const undecidedPassed = attack > 2 ? Math.round(12 * usual) : 0;
  const requests = {
    ...noRequests(),
    requests: allowed + limited + unmatched + undecidedPassed,
    allowed,
    limited,
    unmatched,
    undecidedPassed,
    fromMemory: Math.round((allowed + limited) * 0.71),
  };
  const calls = Math.round((allowed + limited) * 0.29);
  const shares = [0, 0.04, 0.22, 0.41, 0.22, 0.07, 0.025 + 0.01 * attack, 0.01, 0.003, 0.001];
  const latency = LATENCY_BOUNDS_MS.map((_, index) => Math.round(calls * (shares[index] ?? 0)));
  const store = { calls, failures: undecidedPassed, commands: calls * 3, latency: [...latency, 0] };
  return { at, requests, store: { ...store, latencyMs: calls * 9 } };
}

function ruleSumsAt(index: number, mode: string, at: number, step: number): RuleSums {
  const { usual, attack } = loadAt(at, step);
  const requests = Math.round((usual * 420) / (index + 1));
  const over = Math.round(requests * noise(index, 7) * (0.08 + 0.09 * attack));
  const shadowLimited = mode === "shadow" ? over : 0;
  const marked = mode === "mark" ? over : 0;
  const limited = mode === "enforce" ? over : 0;
  const allowed = mode === "shadow" ? 0 : requests - over;
  const nearest = mode === "shadow" || requests === 0 ? 0 : 0.3 + 0.65 * noise(index, 11);
  const peak = over > 0 ? 1 : nearest;
  const ahead = { ahead: 0, over: 0 };
  return { requests, allowed, limited, marked, ...ahead, undecided: 0, shadowLimited, peak };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

function identity(index: number): string {
  return Array.from({ length: 22 }, (_, at) => LETTERS[Math.floor(noise(index, at) * 64)]).join("");
}
