import { expect, it } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { ruleCountersOf } from "../../../src/limiter/counters.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { HOUR, MINUTE, NOW } from "../../suite/driver.ts";

function isolateOf(fields: Partial<RuleInput>) {
  const clock = { now: NOW };
  const rules = [{ name: "api", limit: 5, window: "1m", sliding: true, ...fields } as RuleInput];
  const config = defineConfig({ clock: "edge", rules });
  const [rule] = config.rules as [(typeof config.rules)[number]];
  const applied = { rule, windows: rule.windows, identity: "someone" };
  const limiter = new Limiter(config, createMemoryStore(), { time: () => clock.now });
  const counters = ruleCountersOf(applied, "weir").map(({ counter }) => counter);
  const usedNow = async () => {
    const decision = await limiter.decide([applied], { cost: 0, checkOnly: true });
    return decision.outcome === "allowed" && 5 - (decision.quotas[0]?.remaining ?? Number.NaN);
  };
  return { clock, applied, limiter, counters, usedNow };
}

it("a sliding window is counted in sub-windows, under a key of their number", () => {
  const start = "1970-01-01T00:00:07Z";
  expect(isolateOf({ start }).counters).toMatchObject([
    { key: "weir:api:1m/10:someone", subWindows: 10, windowMs: 6000, offsetMs: 1000, ceiling: 5 },
  ]);
  const limits: RuleInput["limits"] = [
    { limit: 5, window: "1h", sliding: 4 },
    { limit: 9, window: "1d" },
  ];
  const { counters } = isolateOf({
    limit: undefined,
    window: undefined,
    sliding: undefined,
    limits,
  });
  expect(counters).toMatchObject([
    { key: "weir:api:1h/4:someone", subWindows: 4, windowMs: 15 * MINUTE },
    { key: "weir:api:1d:someone", windowMs: 24 * HOUR },
  ]);
  expect(counters[1]).not.toHaveProperty("subWindows");
});

it("a reserve is given back in the sub-window that was charged, although a clock shows an earlier one", async () => {
  const { clock, applied, limiter, usedNow } = isolateOf({
    cost: { reserve: 2, settle: "header:x-cost" },
  });
  clock.now = NOW + 6000;
  await limiter.decide([applied]);
  clock.now = NOW;
  const decision = await limiter.decide([applied]);
  const reserve = decision.outcome === "allowed" ? decision.verdicts[0]?.reserve : undefined;
  if (!reserve) throw new Error("no reserve");
  expect(reserve).toEqual({ cost: 2, windows: [NOW / 6000 + 1] });
  clock.now = NOW + 54_000;
  await limiter.settle(applied, reserve, -2);
  expect(await usedNow()).toBe(2);
  // Of a sub-window that does not count any more, nothing is given back.
  await limiter.decide([applied]);
  clock.now = NOW + 72_000;
  await limiter.settle(applied, reserve, -2);
  expect(await usedNow()).toBe(2);
});
