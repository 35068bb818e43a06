import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { explain } from "../../../src/explain/explain.ts";
import type { ExplainedRule } from "../../../src/explain/explanation.ts";
import { readClients } from "../../../src/limiter/clients.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { Override } from "../../../src/overrides/override.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { explaining } from "./explaining.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.UTC(2026, 10, 25, 8, 0, 30);

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const DESCRIBED = {
  method: "GET",
  url: "https://api.example.com/",
  headers: { "cf-connecting-ip": "203.0.113.7" },
};

/** Explains a request by one rule after a number of requests, and returns the explanation of the rule. */
async function explainAfter(
  requests: number,
  fields: Partial<RuleInput>,
  overrides: Override[] = [],
) {
  const limits = "limits" in fields ? {} : { limit: 3, window: "1m" as const };
  const rule = { name: "api", ...limits, ...fields } as RuleInput;
  const config = defineConfig({ store: "memory", prefix: "p", rules: [rule] });
  const limiter = new Limiter(config, createMemoryStore());
  const live = new LiveOverrides();
  live.update({ version: 1, all: overrides });
  const context = {
    config,
    bindings: resolveBindings(config, {}),
    read: vi.fn((applied) => limiter.clients.read(applied)),
    custom: { env: {} as never, ctx: { waitUntil() {} } },
  };
  const byId = new Map(overrides.map((each) => [each.rule, each] as const));
  const run = () => explain(DESCRIBED, context, { live, byId });
  await run();
  const applied = context.read.mock.calls[0]?.[0] ?? [];
  for (let index = 0; index < requests; index++) await limiter.decide(applied);
  const explanation = await run();
  return { explanation, rule: explanation.rules[0], client: explanation.rules[0]?.client };
}

describe("a counter", () => {
  it("shows its window, its stored key, and what the request would store", async () => {
    const { rule, client } = await explainAfter(1, { cost: 2 });
    const start = NOW - (NOW % MINUTE);
    expect(rule?.counters).toEqual([
      {
        policy: "api",
        limit: 3,
        capacity: 3,
        count: 2,
        cost: 2,
        windowStart: start,
        windowEnd: start + MINUTE,
        storedKey: `p:api:1m:${client}:${start / MINUTE}`,
      },
    ]);
    expect(rule).toMatchObject({ applies: true, exceeds: true });
    const { rule: before } = await explainAfter(0, { cost: 2 });
    expect(before?.counters).toMatchObject([
      { count: 0, countAfter: 2, expiresAt: start + MINUTE + 1000 },
    ]);
  });

  it("of a sliding window shows since when it counts, and when there is more", async () => {
    const { rule, client } = await explainAfter(2, { sliding: true });
    const current = NOW - (NOW % 6000);
    expect(rule?.counters).toEqual([
      {
        policy: "api",
        limit: 3,
        capacity: 3,
        count: 2,
        cost: 1,
        windowStart: current - MINUTE,
        windowEnd: current + MINUTE + 6000,
        storedKey: `p:api:1m/10:${client}`,
        countAfter: 3,
        expiresAt: current + MINUTE + 7000,
      },
    ]);
  });

  it("of a calendar month shows the month", async () => {
    const { rule, client } = await explainAfter(0, { window: "month", timeZone: "Europe/Berlin" });
    expect(rule?.counters).toMatchObject([
      {
        windowStart: Date.UTC(2026, 9, 31, 23),
        windowEnd: Date.UTC(2026, 10, 30, 23),
        storedKey: `p:api:month:${client}:${(2026 - 1970) * 12 + 10}`,
      },
    ]);
  });

  it("whose quota rolls over has one key for all windows", async () => {
    const { rule, client } = await explainAfter(4, { capacity: 6 });
    expect(rule?.counters).toMatchObject([
      { count: 4, capacity: 6, limit: 3, countAfter: 5, storedKey: `p:api:1m:${client}` },
    ]);
  });

  it("of a rule with shards is shown for the shard that the request may use", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const { rule, client } = await explainAfter(0, { limit: 40, shards: 4 });
    expect(rule?.quotas).toMatchObject([{ limit: 40, remaining: 40 }]);
    expect(rule?.counters).toMatchObject([
      { shard: 2, limit: 10, storedKey: expect.stringContaining(`${client}#2:`), countAfter: 1 },
    ]);
  });

  it("of a rule with shards is shown for the first one if another rule denies without the store", async () => {
    const limits = { limit: 40, window: "1m", shards: 4 } as const;
    const rules = [{ name: "closed", limit: 0, window: "1m" } as const, { name: "api", ...limits }];
    const { rules: explained } = await explaining({ rules })();
    expect(explained[1]?.counters).toMatchObject([{ shard: 0, limit: 10 }]);
  });

  it("of a rule that only the response charges would store nothing yet", async () => {
    const { rule } = await explainAfter(0, { cost: "header:x-cost" });
    expect(rule?.counters).toMatchObject([{ count: 0, cost: 1 }]);
    expect(rule?.counters?.[0]).not.toHaveProperty("countAfter");
  });

  it("of each tier has the tier's limit", async () => {
    const tiers = { by: "method", limits: { GET: { limit: 9, window: "1h" } } } as const;
    const { rule } = await explainAfter(1, { tiers });
    expect(rule).toMatchObject({ tier: "GET", counters: [{ limit: 9, count: 1, countAfter: 2 }] });
  });
});

describe("a counter of open requests", () => {
  it("shows the slots that are open, and takes none", async () => {
    const limits = { limit: 9, window: "1h", cost: 5, concurrent: 2, maxDuration: "2h" } as const;
    const { rule, client, explanation } = await explainAfter(1, limits);
    expect(explanation.outcome).toBe("limited");
    expect(rule?.quotas?.[1]).toMatchObject({ concurrent: true, limit: 2, remaining: 1 });
    expect(rule?.counters).toMatchObject([
      { policy: "api/1h", count: 5, cost: 5, windowStart: NOW - (NOW % HOUR) },
      { policy: "api/concurrent", concurrent: true, count: 1, cost: 1, limit: 2 },
    ]);
    const { rule: free } = await explainAfter(1, { ...limits, cost: 1 });
    expect(free?.counters?.[1]).toEqual({
      policy: "api/concurrent",
      concurrent: true,
      limit: 2,
      capacity: 2,
      count: 1,
      cost: 1,
      windowStart: NOW,
      windowEnd: NOW + 1000,
      storedKey: `p:api:concurrent:${client}`,
      countAfter: 2,
      expiresAt: NOW + 2 * HOUR,
    });
  });

  it("denies the request if no slot is free", async () => {
    const { rule, explanation } = await explainAfter(2, { limits: undefined, concurrent: 2 });
    expect(explanation).toMatchObject({ outcome: "limited", response: { status: 429 } });
    expect(rule).toMatchObject({
      exceeds: true,
      counters: [{ policy: "api", count: 2, limit: 2 }],
    });
    const headers = new Headers(explanation.response.headers as [string, string][]);
    expect(headers.get("retry-after")).toBe("1");
  });

  it("of a tier has the tier's maximum", async () => {
    const limits = { GET: { limit: 9, window: "1h", concurrent: 7 } } as const;
    const { rule } = await explainAfter(1, { concurrent: 1, tiers: { by: "method", limits } });
    expect(rule?.counters?.[1]).toMatchObject({ limit: 7, count: 1, countAfter: 2 });
  });
});

describe("a rule with wait", () => {
  const waiting = { limit: 3, window: "1m", wait: "40s" } as const;

  it("says how long a request over the limit waits before its denial", async () => {
    const { rule, explanation } = await explainAfter(3, waiting);
    expect(explanation).toMatchObject({ outcome: "limited", waitMs: 40_000 });
    expect(rule).toMatchObject({ waitMs: 40_000, counters: [{ count: 3 }] });
  });

  it("denies the request at once if it never fits, if the next window begins too late, or in shadow mode", async () => {
    const never = await explainAfter(0, { ...waiting, cost: 6 });
    expect(never.explanation.outcome).toBe("limited");
    expect(never.explanation).not.toHaveProperty("waitMs");
    const late = await explainAfter(3, { ...waiting, wait: "29s" });
    expect(late.explanation.outcome).toBe("limited");
    expect(late.explanation).not.toHaveProperty("waitMs");
    const { rule } = await explainAfter(3, { ...waiting, mode: "shadow" });
    expect(rule).toMatchObject({ exceeds: true });
    expect(rule).not.toHaveProperty("waitMs");
  });

  it("says how long a request that lacks only a slot waits before its denial", async () => {
    const slots = { limits: undefined, concurrent: 2, wait: "30s" } as const;
    const { explanation } = await explainAfter(2, slots);
    expect(explanation).toMatchObject({ outcome: "limited", waitMs: 30_000 });
  });

  it.each<Partial<RuleInput>>([
    { wait: undefined },
    { limits: [{ limit: 2, window: "1m" }], wait: "1s" },
  ])(
    "denies the request at once if it lacks anything else, or without wait: %j",
    async (fields) => {
      const slots = { limits: undefined, concurrent: 2, wait: "30s" } as const;
      const { explanation } = await explainAfter(2, { ...slots, ...fields });
      expect(explanation.outcome).toBe("limited");
      expect(explanation).not.toHaveProperty("waitMs");
    },
  );
});

describe("a rule with async", () => {
  it.each([0, 3])("decides as without it after %i requests, and says so", async (used) => {
    const { rule, explanation } = await explainAfter(used, { async: true });
    const same = await explainAfter(used, {});
    expect(rule).toHaveProperty("async", true);
    expect(same.rule).not.toHaveProperty("async");
    const { async: _, ...others } = rule as ExplainedRule;
    expect({ ...explanation, rules: [others] }).toEqual(same.explanation);
  });

  it.each<Partial<RuleInput>>([{ mode: "shadow" }, { limits: [{ limit: 0, window: "1m" }] }])(
    "says nothing if no request passes ahead: %j",
    async (fields) => {
      const { rule } = await explainAfter(0, { async: true, ...fields });
      expect(rule?.applies).toBe(true);
      expect(rule).not.toHaveProperty("async");
    },
  );
});

describe("a ban", () => {
  it("that the request would begin is shown, and begins with none", async () => {
    const { rule, client, explanation } = await explainAfter(3, { ban: "5m" });
    expect(rule).toMatchObject({
      banMs: 0,
      newBan: { storedKey: `p:api:1m:${client}:ban`, until: NOW + 5 * MINUTE, isAtLeast: false },
    });
    const headers = new Headers(explanation.response.headers as [string, string][]);
    expect(headers.get("retry-after")).toBe("300");
  });

  it("of several lengths lasts at least the first", async () => {
    const { rule } = await explainAfter(3, { ban: ["1m", "5m"] });
    expect(rule?.newBan).toMatchObject({ until: NOW + MINUTE, isAtLeast: true });
  });

  it("of a rule in shadow mode has a key of its own", async () => {
    const { rule, explanation } = await explainAfter(3, { ban: "5m", mode: "shadow" });
    expect(rule).toMatchObject({
      mode: "shadow",
      exceeds: true,
      newBan: { storedKey: expect.stringMatching(/:shadow-ban$/) },
    });
    expect(explanation).toMatchObject({ outcome: "allowed", response: { headers: [] } });
  });

  it("that has begun is shown with its rest", async () => {
    const { rule } = await explainAfter(4, { ban: "5m" });
    expect(rule).toMatchObject({ banMs: 5 * MINUTE, exceeds: true });
    expect(rule).not.toHaveProperty("newBan");
  });
});

describe("an override", () => {
  const fields = { rule: "api", reason: "sale", by: "ops", setAt: NOW, expiresAt: NOW + MINUTE };

  it("that turns the rule off is the condition that fails", async () => {
    const override = { ...fields, effect: { mode: "off" } } as const;
    const { rule, explanation } = await explainAfter(0, {}, [override]);
    expect(explanation.outcome).toBe("unmatched");
    expect(rule).toMatchObject({
      applies: false,
      mode: "off",
      why: "An override has turned the rule off.",
      override,
      conditions: [{ field: "override", result: "fails" }],
    });
  });

  it("that blocks or exempts the client is named", async () => {
    const { client = "" } = await explainAfter(0, {});
    const blocked = { ...fields, client, effect: { kind: "blocked" } } as const;
    const { rule, explanation } = await explainAfter(0, { async: true }, [blocked]);
    expect(explanation.outcome).toBe("limited");
    expect(rule?.why).toBe("It matches. An override blocks the client.");
    const unlimited = { ...fields, client, effect: { kind: "unlimited" } } as const;
    const exempt = await explainAfter(0, {}, [unlimited]);
    expect(exempt.explanation.outcome).toBe("unmatched");
    expect(exempt.rule).toMatchObject({
      applies: false,
      why: "An override exempts the client.",
      client,
    });
  });
});

describe("while the store fails", () => {
  const fail = async () => {
    throw new StoreError("timeout", "no answer after 1000 ms");
  };
  const failing: Store = { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };

  it.each([
    ["open", "undecided", undefined],
    ["closed", "undecided", 503],
    ["local", "allowed", undefined],
  ] as const)("an explanation shows what onError: %s does", async (onError, outcome, status) => {
    const rules = [{ name: "api", limit: 3, window: "1m", onError } as const];
    const config = defineConfig({ store: "memory", rules });
    const limiter = new Limiter(config, failing);
    const context = {
      config,
      bindings: resolveBindings(config, {}),
      read: (applied: Parameters<typeof limiter.clients.read>[0]) =>
        readClients(failing, applied, config.prefix, NOW),
      decide: (applied: Parameters<typeof limiter.decide>[0]) =>
        limiter.decide(applied, { checkOnly: true }),
      custom: { env: {} as never, ctx: { waitUntil() {} } },
    };
    const explanation = await explain(DESCRIBED, context);
    expect(explanation).toMatchObject({
      outcome,
      storeFailure: "timeout, no answer after 1000 ms",
      rules: [{ applies: true, client: expect.any(String), key: [{ isFallback: false }] }],
    });
    expect(explanation.response.status).toBe(status);
    expect(explanation.rules[0]).not.toHaveProperty("counters");
    const { decide: _, ...withoutDecide } = context;
    await expect(explain(DESCRIBED, withoutDecide)).rejects.toThrow(StoreError);
  });
});
