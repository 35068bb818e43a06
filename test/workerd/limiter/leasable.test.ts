import { describe, expect, it, vi } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { Counter } from "../../../src/engine/counter.ts";
import {
  allCountersOf,
  type DecideOptions,
  ruleCountersOf,
} from "../../../src/limiter/counters.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";

type RuleInput = ConfigInput["rules"][number];

const minute = { limit: 100, window: "1m" } as const;
const hour = { limit: 2000, window: "1h" } as const;

function countersOf(fields: Partial<RuleInput>, ask?: DecideOptions): Counter[] {
  const quota = "limits" in fields ? {} : minute;
  const { rules } = defineConfig({ rules: [{ name: "api", ...quota, ...fields } as RuleInput] });
  return rules.flatMap((rule) => {
    const subject = { rule, windows: rule.windows, identity: "someone" };
    return ruleCountersOf(subject, "weir", ask).map(({ counter }) => counter);
  });
}

const leasableOf = (fields: Partial<RuleInput>, ask?: DecideOptions) =>
  countersOf(fields, ask).map(({ leasable }) => leasable ?? false);

describe("quota may be taken in blocks", () => {
  it.each<[string, Partial<RuleInput>, boolean[]]>([
    ["unless a rule says otherwise", {}, [true]],
    ["where a rule says so", { lease: "auto" }, [true]],
    ["of each window", { limits: [minute, hour] }, [true, true]],
    ["where a request costs more than 1", { cost: 5 }, [true]],
    ["where windows begin for each client at another time", { start: "spread" }, [true]],
    ["in shadow mode", { mode: "shadow" }, [true]],
    ["where the capacity is the limit", { capacity: 100, maxReserved: 0 }, [true]],
    [
      "of the windows that do not roll over",
      { limits: [{ ...minute, capacity: 200 }, hour] },
      [false, true],
    ],
  ])("%s", (_, fields, expected) => {
    expect(leasableOf(fields)).toEqual(expected);
  });
});

describe("quota is never taken in blocks", () => {
  it.each<[string, Partial<RuleInput>, boolean[]]>([
    ["where a rule says so", { lease: false }, [false]],
    ["of any of its windows", { lease: false, limits: [minute, hour] }, [false, false]],
    ["where a ban is to hold everywhere", { ban: "10m" }, [false]],
    ["where it rolls over", { capacity: 150 }, [false]],
    ["where it may be reserved", { maxReserved: 1 }, [false]],
    ["where it is spread over shards", { shards: 2 }, [false]],
    ["where the response says what it costs", { cost: "header:X-Cost" }, [false]],
    ["where only some responses count", { count: { status: [401] } }, [false]],
  ])("%s", (_, fields, expected) => {
    expect(leasableOf(fields)).toEqual(expected);
    expect(leasableOf({ ...fields, lease: fields.lease ?? "auto" })).toEqual(expected);
  });

  it("of a shard, nor of the one to choose instead", () => {
    const [{ alternative, leasable }] = countersOf({ shards: 2 }) as [Counter];
    expect([leasable, alternative?.leasable]).toEqual([undefined, undefined]);
    expect(alternative).toBeDefined();
  });
});

describe("whatever is asked of a rule's counters", () => {
  it.each<[string, DecideOptions]>([
    ["another cost", { cost: 7 }],
    ["nothing", { cost: 0, checkOnly: true }],
    ["only whether there is room", { checkOnly: true }],
    ["a refund", { cost: -3 }],
    ["a reservation", { reserve: true }],
  ])("they are leasable or not as ever: %s", (_, ask) => {
    expect(leasableOf({}, ask)).toEqual([true]);
    expect(leasableOf({ lease: false }, ask)).toEqual([false]);
    expect(leasableOf({ maxReserved: 9 }, ask)).toEqual([false]);
  });

  it("they are found again for a reset: by the same keys, and leasable", () => {
    const [rule] = defineConfig({ rules: [{ name: "api", limits: [minute, hour] }] }).rules;
    if (!rule) throw new Error("no rule");
    const subject = { rule, windows: rule.windows, identity: "someone" };
    const asked = ruleCountersOf(subject, "weir").map(({ counter }) => counter);
    const all = allCountersOf(subject, "weir").map(({ counter }) => counter);
    expect(all.map(({ key, leasable }) => [key, leasable])).toEqual(
      asked.map(({ key, leasable }) => [key, leasable]),
    );
  });

  it("a store is told of each, rule by rule", async () => {
    const store = createMemoryStore();
    const asked = vi.spyOn(store, "decide");
    const config = defineConfig({
      rules: [
        { name: "a", ...minute },
        { name: "b", ...minute, lease: false },
        { name: "c", ...minute, mode: "shadow" },
      ],
    });
    const subjects = config.rules.map((rule) => {
      return { rule, windows: rule.windows, identity: "someone" };
    });
    await new Limiter(config, store).decide(subjects);
    const groups = asked.mock.calls[0]?.[0].map((group) => group.map(({ leasable }) => leasable));
    expect(groups).toEqual([[true, undefined], [true]]);
  });
});
