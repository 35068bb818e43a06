import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { defineConfig } from "../../../src/config/index.ts";
import { explain } from "../../../src/explain/explain.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { withClock } from "../../suite/every-store.ts";

const NOW = Date.UTC(2026, 10, 25, 8);

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW }));
afterEach(() => void vi.useRealTimers());

/** Explains requests of a client under one rule. @param storeAhead by how much the store's clock is ahead */
async function explaining(cost: number, storeAhead = 0) {
  const config = defineConfig({
    prefix: "p",
    clock: storeAhead === 0 ? "edge" : "store",
    rules: [{ name: "api", limit: 10, window: "1m", sliding: true, cost }],
  });
  const memory = createMemoryStore();
  const store = storeAhead === 0 ? memory : withClock(memory, () => Date.now() + storeAhead);
  const limiter = new Limiter(config, store);
  let applied: readonly AppliedRule[] = [];
  const context = {
    config,
    bindings: resolveBindings(config, {}),
    read: (all: readonly AppliedRule[]) => {
      applied = all;
      return limiter.clients.read(all);
    },
    custom: { env: {} as never, ctx: { waitUntil() {} } },
  };
  const headers = { "cf-connecting-ip": "203.0.113.7" };
  const run = async () => {
    const described = { method: "GET", url: "https://api.example.com/", headers };
    const { outcome, rules, response } = await explain(described, context);
    const field = (name: string) => new Headers(response.headers as [string, string][]).get(name);
    return { outcome, rule: rules[0], field };
  };
  await run();
  const take = (own: number) => limiter.decide(applied.map((each) => ({ ...each, cost: own })));
  return { run, take };
}

it.each([0, 45_000])(
  "a client with counts in several sub-windows has the count, the decision and the times of a request: %i ms",
  async (storeAhead) => {
    const { run, take } = await explaining(3, storeAhead);
    const at = (ms: number) => vi.setSystemTime(NOW + ms - storeAhead);
    for (const [ms, cost] of [
      [1000, 2],
      [13_000, 4],
    ] as const) {
      at(ms);
      await take(cost);
    }
    at(58_000);
    const before = await run();
    expect(before.outcome).toBe("allowed");
    expect(before.rule?.counters).toMatchObject([
      {
        limit: 10,
        count: 6,
        cost: 3,
        countAfter: 9,
        storedKey: expect.stringMatching(/^p:api:1m\/10:[\w-]{22}$/),
        // The charge would count until a window after the end of its sub-window.
        expiresAt: NOW + 120_000 + 1000,
      },
    ]);
    expect(before.field("ratelimit")).toBe('"api";r=1;t=8');
    await take(3);
    at(62_000);
    const after = await run();
    expect([after.outcome, after.field("retry-after"), after.rule?.exceeds]).toEqual([
      "limited",
      "4",
      true,
    ]);
    expect(after.rule?.counters).toMatchObject([{ count: 9, cost: 3 }]);
    expect(after.rule?.counters?.[0]).not.toHaveProperty("countAfter");
    at(66_000);
    const free = await run();
    expect(free.rule?.counters).toMatchObject([{ count: 7, countAfter: 10 }]);
    expect([free.outcome, free.field("ratelimit")]).toEqual(["allowed", '"api";r=0;t=12']);
  },
);
