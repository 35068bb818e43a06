import { describe, expect, it, vi } from "vitest";
import { type Config, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import { costOfHead } from "../../../src/limiter/cost.ts";
import { type DecideOptions, shardQuota } from "../../../src/limiter/counters.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { verdictOn } from "../../verdicts.ts";

type Pair = [Demand, Demand];

/** 2023-11-14T22:15:00Z, the beginning of a minute, but not of an hour. */
const NOW = 1_700_000_100_000;

function appliedRulesOf({ rules }: Config, identity: string): AppliedRule[] {
  return rules.map((rule) => ({ rule, windows: rule.windows, identity }));
}

describe("a limiter of one rule", () => {
  /** Creates a limiter with one rule, one client, and a clock that the test sets. */
  function limiterFor(rule: Omit<RuleInput, "name">, identity = "A".repeat(22)) {
    const config = defineConfig({ rules: [{ name: "api", ...rule }] });
    const clock = { now: NOW };
    const memory = createMemoryStore();
    const limiter = new Limiter(config, {
      decide: (groups) => memory.decide(groups, clock.now),
      adjust: (counters) => memory.adjust(counters, clock.now),
      reset: (counters) => memory.reset(counters, clock.now),
    });
    const appliedRules = appliedRulesOf(config, identity);
    const admitted = async (attempts: number, options?: DecideOptions) => {
      let count = 0;
      for (let attempt = 0; attempt < attempts; attempt++) {
        if ((await limiter.decide(appliedRules, options)).outcome === "allowed") count++;
      }
      return count;
    };
    const remaining = async () => {
      const decision = await limiter.decide(appliedRules, { cost: 0, checkOnly: true });
      return decision.outcome === "undecided" ? undefined : decision.quotas[0]?.remaining;
    };
    const appliedRule = appliedRules[0] as AppliedRule;
    const admission = { verdicts: [verdictOn(appliedRule, "admitted")] };
    return { limiter, appliedRule, appliedRules, admission, clock, admitted, remaining };
  }

  const response = (status: number, headers: Record<string, string> = {}) => {
    return { status, headers: new Headers(headers) };
  };

  it("takes the rule's cost, or the cost in the options", async () => {
    const { admitted, remaining } = limiterFor({ limit: 10, window: "1m", cost: 3 });
    expect(await admitted(1)).toBe(1);
    expect(await remaining()).toBe(7);
    expect(await admitted(1, { cost: 8 })).toBe(0);
    expect(await admitted(1, { cost: 7 })).toBe(1);
    expect(await remaining()).toBe(0);
  });

  it("adds a window's grant to the quota left, up to the capacity", async () => {
    const { admitted, remaining, clock } = limiterFor({ limit: 100, window: "1m", capacity: 150 });
    expect(await remaining()).toBe(150);
    await admitted(1, { cost: 80 });
    expect(await remaining()).toBe(70);
    clock.now += 60_000;
    expect(await remaining()).toBe(150);
  });

  it("returns the time until later windows have granted a reservation, and the time to retry", async () => {
    const { limiter, appliedRules } = limiterFor({ limit: 10, window: "1m", maxReserved: 25 });
    const options = { cost: 15, reserve: true };
    expect(await limiter.decide(appliedRules, options)).toMatchObject({
      outcome: "allowed",
      reservationDelayMs: 60_000,
      quotas: [{ remaining: 0 }],
    });
    expect(await limiter.decide(appliedRules, options)).toMatchObject({
      outcome: "allowed",
      reservationDelayMs: 120_000,
    });
    expect(await limiter.decide(appliedRules, options)).toMatchObject({ outcome: "limited" });
    expect(await limiter.decide(appliedRules)).toMatchObject({
      outcome: "limited",
      retryAfterMs: 180_000,
    });
  });

  it("distributes a limit over its shards without loss", async () => {
    const { admitted } = limiterFor({ limit: 103, window: "1m", shards: 10 });
    const count = await admitted(2000);
    expect(count).toBe(103);
    for (const [quota, shards] of [
      [103, 10],
      [7, 7],
      [999_999_999_999_999, 100],
    ] as const) {
      const shares = Array.from({ length: shards }, (_, shard) => shardQuota(quota, shards, shard));
      expect(shares.reduce((sum, share) => sum + share)).toBe(quota);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    }
  });

  it("counts a request in one shard", async () => {
    const store = createMemoryStore();
    const decide = vi.spyOn(store, "decide");
    const config = defineConfig({
      rules: [{ name: "llm", limit: 1000, window: "1m", shards: 10 }],
    });
    await new Limiter(config, store).decide(appliedRulesOf(config, "all"));
    const groups = decide.mock.calls.flatMap(([each]) => each.flat());
    expect(groups).toHaveLength(1);
    expect(groups[0]?.key).toMatch(/^weir:llm:1m:all#\d$/);
  });

  it.each([
    ["a count of statuses", { count: { status: [200] } }],
    ["a cost from a header", { cost: "header:x-cost" }],
  ])("never exceeds the limit with %s and shards if requests do not overlap", async (_, fields) => {
    const rule = { limit: 100, window: "1m", shards: 10, ...fields };
    const { limiter, appliedRule } = limiterFor(rule);
    let passed = 0;
    for (let request = 0; request < 400; request++) {
      const decision = await limiter.decide([appliedRule]);
      if (decision.outcome !== "allowed") continue;
      passed++;
      await limiter.chargeResponse(decision, (each) => costOfHead(each, response(200)));
    }
    expect(passed).toBeLessThanOrEqual(100);
    expect(passed).toBeGreaterThan(90);
  });

  it("counts every window of a request in the same shard", async () => {
    const store = createMemoryStore();
    const decide = vi.spyOn(store, "decide");
    const limits = [
      { limit: 100, window: "1m" },
      { limit: 1000, window: "1h" },
    ];
    const config = defineConfig({ rules: [{ name: "llm", limits, shards: 50 }] });
    await new Limiter(config, store).decide(appliedRulesOf(config, "all"));
    const [minute, hour] = decide.mock.calls.flatMap(([groups]) => groups.flat()) as Pair;
    expect(hour.identity).toBe(minute.identity);
  });

  it("returns a retry time at which a shard that rolls over has enough quota", async () => {
    const rule = { limit: 7, window: "1m", capacity: 14, maxReserved: 21, shards: 2 };
    const { limiter, appliedRules, admitted, clock } = limiterFor(rule);
    // Shard 0 grants 4 per minute, and shard 1 grants 3. The reservations leave a debt of 11 in
    // shard 0, and a debt of 10 in shard 1.
    expect(await admitted(99, { reserve: true })).toBe(35);
    const costs = [1, 2, 3, 4, 5, 6];
    for (const [cost, drawn] of [0, 0.5].flatMap((each) =>
      costs.map((cost) => [cost, each] as const),
    )) {
      clock.now = NOW;
      const random = () => drawn;
      const denied = await limiter.decide(appliedRules, { cost, random });
      if (denied.outcome !== "limited") throw new Error("The request should be denied.");
      clock.now = NOW + (denied.retryAfterMs ?? 0);
      const then = await limiter.decide(appliedRules, { cost, checkOnly: true, random });
      expect(then.outcome, `a cost of ${cost}`).toBe("allowed");
    }
  });

  it('begins the windows of each client at a different time with start: "spread"', async () => {
    const rule = { limit: 1, window: "1h", start: "spread" } as const;
    const resetOf = async (identity: string) => {
      const { limiter, appliedRules } = limiterFor(rule, identity);
      const decision = await limiter.decide(appliedRules);
      return decision.outcome === "allowed" ? decision.quotas[0]?.resetMs : undefined;
    };
    const identities = Array.from({ length: 50 }, (_, index) => `${index}AbCdEfGhIjKl`);
    const resets = await Promise.all(identities.map(resetOf));
    expect(new Set(resets).size).toBeGreaterThan(45);
    expect(await Promise.all(identities.map(resetOf))).toEqual(resets);
  });

  it("denies a client that exceeded the limit until the ban ends", async () => {
    const { limiter, appliedRules, clock, admitted } = limiterFor({
      limit: 2,
      window: "1m",
      ban: "10m",
    });
    expect(await admitted(3)).toBe(2);
    clock.now += 599_999;
    expect(await limiter.decide(appliedRules)).toMatchObject({
      outcome: "limited",
      retryAfterMs: 1,
    });
    clock.now += 1;
    expect(await admitted(3)).toBe(2);
  });

  it("charges only responses with one of the statuses in count", async () => {
    const rule = { limit: 2, window: "1m", count: { status: [401, 403] } };
    const { limiter, admission, admitted, remaining } = limiterFor(rule);
    expect(await admitted(9)).toBe(9);
    expect(
      await limiter.chargeResponse(admission, (each) => costOfHead(each, response(200))),
    ).toEqual([]);
    expect(await remaining()).toBe(2);
    expect(
      await limiter.chargeResponse(admission, (each) => costOfHead(each, response(401))),
    ).toMatchObject([{ remaining: 1 }]);
    await limiter.chargeResponse(admission, (each) => costOfHead(each, response(403)));
    expect(await admitted(1)).toBe(0);
  });

  it.each([
    [{ "x-cost": "7" }, 3],
    [{ "x-cost": "0" }, 10],
    [{ "x-cost": "99" }, 0],
    [{}, 9],
    [{ "x-cost": "-5" }, 9],
    [{ "x-cost": "1.5" }, 9],
    [{ "x-cost": "lots" }, 9],
  ])("charges the cost in the response: %j leaves %i of 10", async (headers, left) => {
    const rule = { limit: 10, window: "1m", cost: "header:x-cost" };
    const { limiter, admission, admitted, remaining } = limiterFor(rule);
    expect(await admitted(1)).toBe(1);
    await limiter.chargeResponse(admission, (each) => costOfHead(each, response(200, headers)));
    expect(await remaining()).toBe(left);
  });

  it("refunds up to the limit, and resets every shard", async () => {
    const { limiter, appliedRule, admitted, remaining } = limiterFor({ limit: 10, window: "1m" });
    await admitted(4);
    await limiter.refund(appliedRule, 3);
    expect(await remaining()).toBe(9);
    await limiter.refund(appliedRule, 30);
    expect(await remaining()).toBe(10);

    const sharded = limiterFor({ limit: 10, window: "1m", shards: 5 });
    expect(await sharded.admitted(200)).toBe(10);
    await sharded.limiter.clients.reset(sharded.appliedRule);
    expect(await sharded.admitted(200)).toBe(10);
  });
});
