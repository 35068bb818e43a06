import { afterEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import type { DecideOptions } from "../../../src/limiter/counters.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { limitedWindows } from "../../../src/overrides/override.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../src/stores/store.ts";
import { verdictOf } from "../../suite/verdict.ts";
import { shadowResultsOf } from "../../verdicts.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute, but not of an hour. */
const NOW = 1_700_000_100_000;

afterEach(() => {
  vi.useRealTimers();
});

type Rules = ConfigInput["rules"];

/** Decides one request by all of these rules, and counts the calls of the store. */
function deciding(rules: Rules, store: Store = createMemoryStore(), tier?: string) {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  const calls = {
    decide: vi.spyOn(store, "decide"),
    adjust: vi.spyOn(store, "adjust"),
  };
  const config = defineConfig({ rules });
  const limiter = new Limiter(config, store);
  const appliedRules = config.rules.map((rule) => ({
    rule,
    windows: rule.tiers?.windows.get(tier ?? "") ?? rule.windows,
    identity: "someone",
  }));
  return { calls, decide: (options?: DecideOptions) => limiter.decide(appliedRules, options) };
}

const DENY = { name: "deny", limit: 0, window: "1h", response: { status: 403 } } as const;
const WINDOWS = [
  { limit: 0, window: "1h" },
  { limit: 9, window: "1d" },
];
const API = { name: "api", limit: 5, window: "1m" } as const;

function away(): Store {
  const fail = () => Promise.reject(new StoreError("timeout", "no answer"));
  return { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };
}

describe("a rule with a limit of 0", () => {
  it("denies without a call to the store and without a time, because no retry can pass", async () => {
    const { decide, calls } = deciding([DENY]);
    expect(await decide()).toEqual({
      outcome: "limited",
      fromMemory: true,
      deniedBy: expect.objectContaining({
        cost: 1,
        appliedRule: expect.objectContaining({
          rule: expect.objectContaining({ name: "deny", response: { status: 403 } }),
        }),
      }),
      verdicts: [
        expect.objectContaining({
          says: "denied",
          misfits: [{ window: expect.objectContaining({ policy: "deny" }), cost: 1, maxCost: 0 }],
        }),
      ],
      quotas: [
        {
          policy: "deny",
          limit: 0,
          windowMs: 3_600_000,
          remaining: 0,
          resetMs: 2_700_000,
          resetAt: NOW + 2_700_000,
          violated: true,
          reservationDelayMs: 0,
        },
      ],
    });
    expect(calls.decide).not.toHaveBeenCalled();
  });

  it.each<[string, Rules]>([
    ["before other rules", [DENY, API]],
    ["after other rules", [API, DENY]],
    ["with a ban", [{ ...DENY, ban: "1d" }, API]],
    ["with several windows", [{ name: "deny", limits: WINDOWS }, API]],
    ["that counts by status", [{ ...DENY, count: { status: [401] } }]],
    ["whose origin sends the cost", [{ ...DENY, cost: "header:x-cost" }]],
    ["and another one", [DENY, { ...DENY, name: "deny-too" }]],
  ])("denies %s, and charges no rule", async (_, rules) => {
    const { decide, calls } = deciding(rules as Rules);
    const decision = await decide();
    expect(decision).toMatchObject({
      outcome: "limited",
      deniedBy: { appliedRule: { rule: { name: "deny" } } },
    });
    expect("quotas" in decision && decision.quotas.every(({ limit }) => limit === 0)).toBe(true);
    expect(calls.decide).not.toHaveBeenCalled();
    expect(calls.adjust).not.toHaveBeenCalled();
  });

  it.each(["open", "closed", "local"] as const)(
    "denies while the store fails, with onError: %s",
    async (onError) => {
      const { decide } = deciding(
        [
          { ...DENY, onError },
          { ...API, onError },
        ],
        away(),
      );
      expect(await decide()).toMatchObject({
        outcome: "limited",
        deniedBy: { appliedRule: { rule: { name: "deny" } } },
      });
    },
  );

  it("denies the clients of a tier with a limit of 0 only", async () => {
    const blocked = { limit: 0, window: "1m" };
    const rule = { ...API, tiers: { by: "header:plan", limits: { blocked } } };
    const denied = deciding([rule], undefined, "blocked");
    expect(await denied.decide()).toMatchObject({ outcome: "limited" });
    expect(denied.calls.decide).not.toHaveBeenCalled();
    const other = deciding([rule], undefined, "other");
    expect(await other.decide()).toMatchObject({ outcome: "allowed" });
    expect(other.calls.decide).toHaveBeenCalledTimes(1);
  });

  it("denies a program's call, and a call that only checks", async () => {
    const { decide, calls } = deciding([{ ...DENY, response: undefined }]);
    expect(await decide({ cost: 3 })).toMatchObject({ outcome: "limited" });
    expect(await decide({ checkOnly: true })).toMatchObject({ outcome: "limited" });
    expect(calls.decide).not.toHaveBeenCalled();
  });

  it("admits a cost of 0, as the store does", async () => {
    const { decide, calls } = deciding([{ ...DENY, cost: 0 }]);
    expect(await decide()).toMatchObject({ outcome: "allowed" });
    expect(calls.decide).toHaveBeenCalledTimes(1);
  });
});

describe("rules in shadow mode", () => {
  it("deny no request with a limit of 0, and call the store", async () => {
    const { decide, calls } = deciding([{ ...DENY, mode: "shadow" }, API]);
    const decision = (await decide()) as Allowed;
    expect(decision.outcome).toBe("allowed");
    expect(await shadowResultsOf(decision)).toMatchObject([{ policy: "deny", violated: true }]);
    expect(calls.decide).toHaveBeenCalledTimes(1);
  });

  it("are still counted if another rule denies without the store, and do not delay the denial", async () => {
    const store = createMemoryStore();
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow: Store = {
      ...store,
      decide: (groups, now) =>
        groups.map(async (group) => {
          await promise;
          return (await verdictOf(store.decide([group], now ?? NOW))).groups[0] as Answer;
        }),
    };
    const rules = [DENY, { ...API, limit: 1, mode: "shadow" as const }];
    const { decide, calls } = deciding(rules, slow);
    const decisions = [await decide(), await decide()];
    resolve();
    const results = decisions.map((decision) => {
      expect(decision.outcome).toBe("limited");
      return shadowResultsOf(decision);
    });
    expect((await Promise.all(results)).flat()).toMatchObject([{ policy: "api", violated: true }]);
    expect(calls.decide).toHaveBeenCalledTimes(2);
  });

  it("are reported as undecided if the store fails", async () => {
    const { decide } = deciding([DENY, { ...API, mode: "shadow" }], away());
    const decision = await decide();
    expect(decision.outcome).toBe("limited");
    expect(await shadowResultsOf(decision)).toEqual([
      { policy: "api", cause: "timeout", detail: "no answer" },
    ]);
  });
});

it("an override with a limit of 0 for open requests denies without a call to the store", async () => {
  const [rule] = defineConfig({ rules: [{ ...API, concurrent: 2 }] }).rules as [Rule];
  const windows = limitedWindows(rule.windows, { "api/concurrent": 0 });
  const limiter = new Limiter({ prefix: "weir", timeoutMs: 1000, clock: "edge" }, away());
  const applied = { rule, windows, identity: "someone" };
  expect(await limiter.decide([applied])).toMatchObject({
    outcome: "limited",
    quotas: [{ policy: "api/concurrent", concurrent: true, limit: 0, violated: true }],
  });
  expect(await limiter.decide([applied], { cost: 0 })).not.toMatchObject({ outcome: "limited" });
});
