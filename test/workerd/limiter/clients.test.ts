import { expect, it, vi } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { allWindowsOf } from "../../../src/limiter/counters.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";

const identity = "someone";

/** A client in the tier `pro` of a rule for open requests. Another tier has no number of its own. */
function setUp() {
  const limits = { pro: { concurrent: 9 }, plus: { limit: 50, window: "1h" } } as const;
  const tiers = { by: "header:x-plan", limits } as const;
  const fields = { name: "api", limit: 5, window: "1m", concurrent: 2 } as const;
  const config = defineConfig({ store: "memory", rules: [{ ...fields, tiers }] });
  const limiter = new Limiter(config, createMemoryStore());
  const [rule] = config.rules as [Rule];
  const own = { rule, windows: rule.windows, identity };
  const pro = { ...own, windows: rule.tiers?.windows.get("pro") ?? [] };
  const read = async () => (await limiter.clients.read([own]))[0];
  return { limiter, own, pro, read };
}

it("reads the open requests of a client for each tier, and takes no slot", async () => {
  const { limiter, pro, read } = setUp();
  for (let sent = 0; sent < 3; sent++) await limiter.decide([pro]);
  const open = { concurrent: true, windowMs: 300_000 };
  for (let repeated = 0; repeated < 2; repeated++) {
    const state = await read();
    expect(state).toMatchObject({ isActive: true, banMs: 0 });
    expect(state?.quotas).toMatchObject([
      { policy: "api/1m", remaining: 5, violated: false },
      { policy: "api/concurrent", ...open, limit: 2, remaining: 0, violated: true },
    ]);
    expect(state?.tiers.get("pro")).toMatchObject([
      { policy: "api/concurrent", ...open, limit: 9, remaining: 6, violated: false },
    ]);
    expect(state?.tiers.get("plus")?.[1]).toMatchObject({ ...open, limit: 2, remaining: 0 });
  }
});

it("calls a quota violated if a request that costs 1 is denied, whatever the rule's cost is", async () => {
  const config = defineConfig({ rules: [{ name: "api", limit: 10, window: "1h", cost: 5 }] });
  const limiter = new Limiter(config, createMemoryStore());
  const [rule] = config.rules as [Rule];
  const own = { rule, windows: rule.windows, identity };
  await limiter.decide([own], { cost: 8 });
  expect((await limiter.clients.read([own]))[0]?.quotas).toMatchObject([
    { remaining: 2, violated: false },
  ]);
  await limiter.decide([own], { cost: 2 });
  expect((await limiter.clients.read([own]))[0]?.quotas).toMatchObject([
    { remaining: 0, violated: true },
  ]);
});

it("removes the slots of a client in every tier, and a later return changes nothing", async () => {
  const { limiter, own, pro, read } = setUp();
  const decisions = [await limiter.decide([pro]), await limiter.decide([pro])] as Allowed[];
  await limiter.clients.liftBan({ ...own, windows: allWindowsOf(own.rule) });
  expect(await read()).toMatchObject({ isActive: true });
  await limiter.clients.reset({ ...own, windows: allWindowsOf(own.rule) });
  expect(await read()).toMatchObject({ isActive: false });
  await limiter.decide([own]);
  for (const { slots } of decisions) slots?.release();
  expect((await read())?.quotas[1]).toMatchObject({ remaining: 1 });
});

const SHARED = {
  rising: { own: [1, 4], tiers: { more: [2, 6], most: [5, 30] } },
  falling: { own: [5, 30], tiers: { less: [2, 6], least: [1, 4] } },
} as const;

it.each(Object.entries(SHARED))(
  "reads a counter that tiers share by each tier's own limit: %s",
  async (_, { own, tiers }) => {
    const windowOf = ([limit, capacity]: readonly [number, number]) => {
      return { limit, capacity, window: "1m" } as const;
    };
    const limits = Object.fromEntries(
      Object.entries(tiers).map(([tier, each]) => [tier, windowOf(each)]),
    );
    const rules = [
      { name: "api", ...windowOf(own), tiers: { by: "header:x-plan", limits } } as const,
    ];
    const config = defineConfig({ clock: "edge", rules });
    let now = 1_800_000_000_000;
    vi.useFakeTimers({ toFake: ["Date"], now });
    const limiter = new Limiter(config, createMemoryStore());
    const [rule] = config.rules as [Rule];
    const base = { rule, windows: rule.windows, identity };
    for (let sent = 0; sent < 4; sent++) await limiter.decide([base]);
    for (let minute = 0; minute < 6; minute++) {
      const [state] = await limiter.clients.read([base]);
      const views = [
        [rule.windows, state?.quotas],
        ...[...(rule.tiers?.windows ?? [])].map(([tier, each]) => [each, state?.tiers.get(tier)]),
      ] as const;
      for (const [windows, quotas] of views) {
        const decision = await limiter.decide([{ ...base, windows } as typeof base], {
          checkOnly: true,
        });
        expect(quotas).toEqual("quotas" in decision && decision.quotas);
      }
      const used = Math.max(
        0,
        4 - minute * Math.min(...[own, ...Object.values(tiers)].map(([limit]) => limit)),
      );
      expect(state?.isActive).toBe(used > 0);
      now += 60_000;
      vi.setSystemTime(now);
    }
    vi.useRealTimers();
  },
);
