import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import type { DecideOptions } from "../../../src/limiter/counters.ts";
import type { Allowed, Decision } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { PATIENCE } from "../../patience.ts";
import { shadowResultsOf } from "../../verdicts.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute, but not of an hour. */
const NOW = 1_700_000_100_000;
const HOUR_ENDS_IN = 2_700_000;
const SOMEONE = "d".repeat(22);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

/**
 * Decides requests of a client that is blocked under the rules with these names, and counts the calls to
 * the store.
 */
function setUp(
  rules: ConfigInput["rules"],
  { blocked = ["api"], blockedMs = 86_400_000, store = createMemoryStore() as Store } = {},
) {
  const calls = { decide: vi.spyOn(store, "decide"), adjust: vi.spyOn(store, "adjust") };
  const config = defineConfig({ rules });
  const limiter = new Limiter(config, store);
  const overrides = new LiveOverrides();
  const set = blocked.map((rule) => ({
    rule,
    client: SOMEONE,
    effect: { kind: "blocked" } as const,
    expiresAt: NOW + blockedMs,
    reason: "Abuse",
    by: "token",
    setAt: NOW,
  }));
  overrides.update({ version: 1, all: set });
  const applied = (change?: (rule: Rule) => AppliedRule): AppliedRule[] =>
    config.rules.map(change ?? ((rule) => ({ rule, windows: rule.windows, identity: SOMEONE })));
  return {
    calls,
    decide: (options?: DecideOptions, change?: (rule: Rule) => AppliedRule) =>
      limiter.decide(overrides.clientsOf(applied(change)), options),
    unblocked: (options?: DecideOptions) => limiter.decide(applied(), options),
    /** Charges a request that cost 9. */
    charge: (decision: Decision) => limiter.chargeResponse(decision as Allowed, () => 9),
  };
}

const API = { name: "api", limit: 5, window: "1h" } as const;

describe("a blocked client", () => {
  it.each([
    ["of a rule with a constant cost", API, undefined],
    ["that costs 0", API, { cost: 0 }],
    ["that is only checked", API, { checkOnly: true }],
    ["of a rule that is charged by the response", { ...API, count: { status: [401] } }, undefined],
    ["whose cost the response states", { ...API, cost: "header:x-cost" }, undefined],
    ["of a rule with shards", { ...API, shards: 5 }, undefined],
    ["of a rule with rollover", { ...API, capacity: 10, maxReserved: 5 }, { reserve: true }],
    ["of a rule with spread windows", { ...API, start: "spread" }, undefined],
    ["of a rule with windows of the calendar", { ...API, window: "month" }, undefined],
    ["of a rule with bans", { ...API, ban: ["1m", "1h"] }, undefined],
    ["of a rule for open requests", { name: "api", concurrent: 2 }, undefined],
  ] as const)(
    "is denied each request %s, without a call to the store",
    async (_, rule, options) => {
      const { decide, calls } = setUp([rule] as ConfigInput["rules"]);
      const decision = await decide(options);
      expect(decision).toMatchObject({
        outcome: "limited",
        deniedBy: { appliedRule: { rule: { name: "api" }, identity: SOMEONE } },
        quotas: [{ policy: "api", limit: 0, remaining: 0, violated: true }],
      });
      expect(calls.decide).not.toHaveBeenCalled();
      expect(calls.adjust).not.toHaveBeenCalled();
    },
  );

  it("gets the cost of its request in the denial", async () => {
    const { decide } = setUp([{ ...API, cost: 3 }]);
    expect(await decide()).toMatchObject({ deniedBy: { cost: 3 } });
  });

  it("is told to retry when the window ends, or when the block ends if that is sooner", async () => {
    expect(await setUp([API]).decide()).toMatchObject({ retryAfterMs: HOUR_ENDS_IN });
    for (const cost of [0, 1, 99]) {
      const { decide } = setUp([API], { blockedMs: 5000 });
      expect(await decide({ cost })).toMatchObject({ retryAfterMs: 5000 });
    }
    const month = setUp([{ ...API, window: "month" }], { blockedMs: 5000 });
    expect(await month.decide()).toMatchObject({ retryAfterMs: 5000 });
    const slots = setUp([{ name: "api", concurrent: 2 }], { blockedMs: 600_000 });
    expect(await slots.decide()).toMatchObject({ retryAfterMs: 600_000 });
    const both = setUp([{ ...API, concurrent: 2 }]);
    expect(await both.decide()).toMatchObject({ retryAfterMs: HOUR_ENDS_IN });
  });

  it("is told no time if another rule can never admit the request", async () => {
    const { decide } = setUp([API, { ...API, name: "other", limit: 3 }]);
    expect(await decide({ cost: 3 })).toMatchObject({ retryAfterMs: HOUR_ENDS_IN });
    const decision = await decide({ cost: 4 });
    expect(decision).toMatchObject({ outcome: "limited", quotas: [{ policy: "api" }] });
    expect(decision).not.toHaveProperty("retryAfterMs");
  });

  it("has used nothing and has no ban after the block", async () => {
    const { decide, unblocked } = setUp([{ ...API, ban: "1h" }], { blockedMs: 5000 });
    for (let sent = 0; sent < 9; sent++) await decide();
    vi.setSystemTime(NOW + 5000);
    expect(await decide()).toMatchObject({ outcome: "allowed", quotas: [{ remaining: 4 }] });
    expect(await unblocked()).toMatchObject({ quotas: [{ remaining: 3 }] });
  });

  it("charges no other rule either", async () => {
    const { decide, unblocked } = setUp([API, { ...API, name: "other" }]);
    expect(await decide()).toMatchObject({ outcome: "limited", quotas: [{ policy: "api" }] });
    expect(await unblocked()).toMatchObject({
      quotas: [{ remaining: 4 }, { policy: "other", remaining: 4 }],
    });
  });

  it.each(["open", "closed", "local"] as const)(
    "is denied while the store fails, with onError: %s",
    async (onError) => {
      const fail = () => Promise.reject(new StoreError("timeout", "no answer"));
      const store: Store = { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };
      const { decide } = setUp([{ ...API, onError }], { store });
      expect(await decide()).toMatchObject({ outcome: "limited", retryAfterMs: HOUR_ENDS_IN });
    },
  );
});

describe("a client that is blocked under a rule in shadow mode", () => {
  const SHADOW = { ...API, mode: "shadow" } as const;

  it("passes, and the denial is in the results of the shadow mode", async () => {
    const { decide, calls } = setUp([SHADOW]);
    for (const cost of [0, 1]) {
      const decision = await decide({ cost });
      expect(decision).toMatchObject({ outcome: "allowed", quotas: [] });
      expect(await shadowResultsOf(decision)).toMatchObject([
        { policy: "api", violated: true, identity: SOMEONE, cost },
      ]);
    }
    expect(calls.decide).not.toHaveBeenCalled();
  });

  it("is decided by the other rules", async () => {
    const { decide } = setUp([SHADOW, { ...API, name: "other", limit: 1 }]);
    for (const outcome of ["allowed", "limited"]) {
      const decision = await decide();
      expect(decision).toMatchObject({ outcome });
      expect(await shadowResultsOf(decision)).toMatchObject([{ policy: "api", violated: true }]);
    }
  });

  it("passes if its identity is ready later too", async () => {
    const { decide, calls } = setUp([SHADOW]);
    const decision = await decide(undefined, (rule) => {
      const pendingRules = Promise.resolve([{ rule, windows: rule.windows, identity: SOMEONE }]);
      return { rule, windows: [], identity: "", pendingRules };
    });
    expect(decision.outcome).toBe("allowed");
    expect(await shadowResultsOf(decision)).toMatchObject([{ policy: "api", violated: true }]);
    expect(calls.decide).not.toHaveBeenCalled();
  });
});

describe("a client that is blocked under a rule with the mode mark", () => {
  const MARK = { ...API, mode: "mark" } as const;

  it("passes with a mark, without a call to the store", async () => {
    const { decide, calls } = setUp([MARK]);
    expect(await decide()).toMatchObject({
      outcome: "allowed",
      quotas: [{ policy: "api", limit: 0, violated: true }],
    });
    expect(calls.decide).not.toHaveBeenCalled();
  });

  it("keeps the quotas of the other rules", async () => {
    const { decide } = setUp([MARK, { ...API, name: "other" }, { ...MARK, name: "plan" }]);
    expect(await decide()).toMatchObject({
      outcome: "allowed",
      quotas: [
        { policy: "other", remaining: 4 },
        { policy: "plan", remaining: 4 },
        { policy: "api", violated: true },
      ],
    });
  });
});

describe("the response to a client that is blocked under a rule", () => {
  const COSTS: Record<string, Partial<RuleInput>> = {
    "by the response": { cost: "header:x-cost" },
    "by the response, with a reserve": { cost: { reserve: 2, settle: "header:x-cost" } },
  };
  const table = Object.entries(COSTS).flatMap(([charged, cost]) =>
    (["shadow", "mark"] as const).map((mode) => [mode, charged, cost] as const),
  );
  const other = { ...API, name: "other", cost: "header:x-cost" } as const;
  const later = (rule: Rule): AppliedRule => ({
    ...{ rule, windows: [], identity: "" },
    pendingRules: Promise.resolve([{ rule, windows: rule.windows, identity: SOMEONE }]),
  });

  it.each(table)(
    "charges other rules and not a rule with the mode %s, %s",
    async (mode, _, cost) => {
      const { decide, charge, calls } = setUp([{ ...API, mode, ...cost }, other]);
      const decision = await decide();
      const said = (decision as Allowed).verdicts.map(({ says }) => says);
      expect(said).toEqual(["admitted", "denied"]);
      await charge(decision);
      const charged = calls.adjust.mock.calls.flatMap(([counters]) => counters);
      expect(charged.map(({ key }) => key.split(":")[1])).toEqual(["other"]);
    },
  );

  it.each(Object.entries(COSTS))(
    "does not charge a rule in shadow mode that identifies the client later: %s",
    async (_, cost) => {
      const { decide, charge, calls } = setUp([{ ...API, mode: "shadow", ...cost }]);
      const decision = (await decide(undefined, later)) as Allowed;
      await charge(decision);
      expect(await decision.verdicts[0]?.pendingVerdict).toMatchObject([{ says: "denied" }]);
      expect(calls.adjust).not.toHaveBeenCalled();
    },
  );

  it.each(["admitted", "denied"] as const)(
    "charges a rule in shadow mode that identifies another client later, if it has %s the request",
    async (says) => {
      const trial = { ...API, limit: 9, mode: "shadow", cost: "header:x-cost" } as const;
      const { decide, charge, calls } = setUp([trial], { blocked: [] });
      if (says === "denied") {
        await charge(await decide());
        await vi.waitFor(() => expect(calls.adjust).toHaveBeenCalled(), PATIENCE);
        calls.adjust.mockClear();
      }
      const decision = (await decide(undefined, later)) as Allowed;
      expect(await decision.verdicts[0]?.pendingVerdict).toMatchObject([{ says }]);
      await charge(decision);
      await vi.waitFor(
        () => expect(calls.adjust).toHaveBeenCalledTimes(says === "denied" ? 0 : 1),
        PATIENCE,
      );
    },
  );

  it.each(table)(
    "is not charged to an undecided rule with the mode %s, %s",
    async (mode, _, cost) => {
      const store = createMemoryStore();
      const failing: Store = {
        ...store,
        decide: ([enforced = []], now) => [
          ...store.decide([enforced], now),
          Promise.reject(new StoreError("timeout", "late")),
        ],
      };
      const rules = [other, { ...API, mode, ...cost }];
      const { decide, charge, calls } = setUp(rules, { blocked: [], store: failing });
      const decision = await decide();
      await charge(decision);
      await Promise.all((decision as Allowed).verdicts.map((each) => each.pendingVerdict));
      const charged = calls.adjust.mock.calls.flatMap(([counters]) => counters);
      expect(charged.map(({ key }) => key.split(":")[1])).toEqual(["other"]);
    },
  );
});
