import { describe, expect, it, vi } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import {
  allCountersOf,
  type DecideOptions,
  ruleCountersOf,
} from "../../../src/limiter/counters.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";

const minute = { limit: 100, window: "1m" } as const;
const hour = { limit: 2000, window: "1h" } as const;

function countersOf(fields: Partial<RuleInput>, options?: DecideOptions): Demand[] {
  const quota = "limits" in fields ? {} : minute;
  const { rules } = defineConfig({ rules: [{ name: "api", ...quota, ...fields } as RuleInput] });
  return rules.flatMap((rule) => {
    const appliedRule = { rule, windows: rule.windows, identity: "someone" };
    return ruleCountersOf(appliedRule, "weir", options).map(({ counter }) => counter);
  });
}

const leasableOf = (fields: Partial<RuleInput>, options?: DecideOptions) =>
  countersOf(fields, options).map(({ leasable }) => leasable ?? false);

describe("quota can be taken in blocks", () => {
  it.each<[string, Partial<RuleInput>, boolean[]]>([
    ["by default", {}, [true]],
    ['with lease: "auto"', { lease: "auto" }, [true]],
    ["of each window", { limits: [minute, hour] }, [true, true]],
    ["if a request costs more than 1", { cost: 5 }, [true]],
    ["if windows begin at a different time for each client", { start: "spread" }, [true]],
    ["in shadow mode", { mode: "shadow" }, [true]],
    ["if the capacity equals the limit", { capacity: 100, maxReserved: 0 }, [true]],
    [
      "of the window that does not roll over",
      { limits: [{ ...minute, capacity: 200 }, hour] },
      [false, true],
    ],
    [
      "of the window that does not slide",
      { limits: [{ ...minute, sliding: true }, hour] },
      [false, true],
    ],
  ])("%s", (_, fields, expected) => {
    expect(leasableOf(fields)).toEqual(expected);
  });
});

describe("quota is never taken in blocks", () => {
  it.each<[string, Partial<RuleInput>, boolean[]]>([
    ["with lease: false", { lease: false }, [false]],
    ["of any window with lease: false", { lease: false, limits: [minute, hour] }, [false, false]],
    ["if a ban must apply everywhere", { ban: "10m" }, [false]],
    ["if it rolls over", { capacity: 150 }, [false]],
    ["if it can be reserved", { maxReserved: 1 }, [false]],
    ["under a sliding window", { sliding: true }, [false]],
    ["if it is spread over shards", { shards: 2 }, [false]],
    ["if the response determines the cost", { cost: "header:X-Cost" }, [false]],
    ["if only some responses are counted", { count: { status: [401] } }, [false]],
  ])("%s", (_, fields, expected) => {
    expect(leasableOf(fields)).toEqual(expected);
    expect(leasableOf({ ...fields, lease: fields.lease ?? "auto" })).toEqual(expected);
  });
});

describe("for every kind of decision", () => {
  it.each<[string, DecideOptions]>([
    ["another cost", { cost: 7 }],
    ["a cost of 0", { cost: 0, checkOnly: true }],
    ["a check", { checkOnly: true }],
    ["a refund", { cost: -3 }],
    ["a reservation", { reserve: true }],
  ])("the rule alone determines whether quota can be leased: %s", (_, options) => {
    expect(leasableOf({}, options)).toEqual([true]);
    expect(leasableOf({ lease: false }, options)).toEqual([false]);
    expect(leasableOf({ maxReserved: 9 }, options)).toEqual([false]);
  });

  it("a reset uses the same keys, and the counters are leasable too", () => {
    const [rule] = defineConfig({ rules: [{ name: "api", limits: [minute, hour] }] }).rules;
    if (!rule) throw new Error("no rule");
    const appliedRule = { rule, windows: rule.windows, identity: "someone" };
    const decided = ruleCountersOf(appliedRule, "weir").map(({ counter }) => counter);
    const all = allCountersOf(appliedRule, "weir").map(({ counter }) => counter);
    expect(all.map(({ key, leasable }) => [key, leasable])).toEqual(
      decided.map(({ key, leasable }) => [key, leasable]),
    );
  });

  it("the store gets the flag for the counters of each rule", async () => {
    const store = createMemoryStore();
    const decide = vi.spyOn(store, "decide");
    const config = defineConfig({
      rules: [
        { name: "a", ...minute },
        { name: "b", ...minute, lease: false },
        { name: "c", ...minute, mode: "shadow" },
      ],
    });
    const appliedRules = config.rules.map((rule) => {
      return { rule, windows: rule.windows, identity: "someone" };
    });
    await new Limiter(config, store).decide(appliedRules);
    const groups = decide.mock.calls[0]?.[0].map((group) => group.map(({ leasable }) => leasable));
    expect(groups).toEqual([[true, undefined], [true]]);
  });
});
