import { describe, expect, it } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { Store } from "../../../src/stores/store.ts";
import { HOUR, NOW } from "../../suite/driver.ts";
import { EVERY_STORE, withClock } from "../../suite/every-store.ts";
import { identifying } from "../request/requests.ts";

type Rule = Partial<ConfigInput["rules"][number]>;

/**
 * The fields of a rule before and after a deploy. By default, the rule allows five requests an
 * hour. Before the deploy, a client uses 3 of its quota. `left` is the quota that the client has
 * left after the deploy.
 */
const changes: [change: string, before: Rule, after: Rule, left: number][] = [
  ["nothing", {}, {}, 2],
  ["a limit that is raised", {}, { limit: 9 }, 6],
  ["a limit that is lowered", {}, { limit: 2 }, 0],
  ["another window", {}, { window: "2h" }, 5],
  ["another name", {}, { name: "other" }, 5],
  ["another key", {}, { key: "global" }, 5],
  ["capacity that is added", {}, { capacity: 8 }, 8],
  ["capacity that is raised", { capacity: 8 }, { capacity: 9 }, 6],
  ["capacity that is removed", { capacity: 8 }, {}, 5],
  ["shards that are added", {}, { limit: 10, shards: 2 }, 5],
  ["another mode", {}, { mode: "shadow" }, 2],
  ["a ban that is added", {}, { ban: "1h" }, 2],
  ["tiers that are added", {}, tiersOf(20), 17],
  ["tiers that are removed", tiersOf(20), {}, 2],
  // The deploy is at half past an hour. With a start at 0:15, the current window keeps its number.
  // With a start at 0:45, the current window gets the number of the previous window.
  ["a start that keeps the window's number", {}, { start: "1970-01-01T00:15:00Z" }, 2],
  ["a start that changes the window's number", {}, { start: "1970-01-01T00:45:00Z" }, 5],
];

function tiersOf(limit: number): Rule {
  return { tiers: { by: "header:x-plan", limits: { pro: { limit, window: "1h" } } } };
}

/**
 * Creates a limiter for a rule, with a clock at half past an hour. Returns the limiter, and the
 * rule as applied to a request.
 */
async function deploy(store: Store, prefix: string, fields: Rule) {
  const rules = [{ name: "api", limit: 5, window: "1h", ...fields }];
  const limiter = new Limiter(
    defineConfig({ prefix, rules }),
    withClock(store, () => NOW + HOUR / 2),
  );
  const applied = await identifying(rules)({ "x-plan": "pro" });
  // This test enforces every rule, also a rule in shadow mode, as `getValue` does. So the decision
  // contains the rule's quota left.
  const enforced = applied.map(
    (each) => ({ ...each, rule: { ...each.rule, mode: "enforce" } }) as const,
  );
  return { limiter, enforced };
}

describe.each(Object.keys(EVERY_STORE))("after a deploy, over %s", (name) => {
  it.each(changes)("a client has the documented quota left: %s", async (_, before, after, left) => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, before);
    const taken = await old.limiter.decide(old.enforced, { cost: 3 });
    expect(taken).toMatchObject({ outcome: "allowed" });
    const { limiter, enforced } = await deploy(store, prefix, after);
    const decision = await limiter.decide(enforced, { cost: 0, checkOnly: true });
    expect("quotas" in decision && decision.quotas[0]?.remaining).toBe(left);
  });

  it("a client is no longer banned after the ban is removed from the rule", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, { ban: "1h" });
    await old.limiter.decide(old.enforced, { cost: 3 });
    for (const cost of [3, 1]) {
      const denied = await old.limiter.decide(old.enforced, { cost });
      expect(denied).toMatchObject({ outcome: "limited" });
    }
    const { limiter, enforced } = await deploy(store, prefix, {});
    const admitted = await limiter.decide(enforced, { cost: 2 });
    expect(admitted).toMatchObject({ outcome: "allowed" });
  });

  it("two versions that run at the same time share the counts, each with its own limit", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    const old = await deploy(store, prefix, { limit: 100 });
    const { limiter, enforced } = await deploy(store, prefix, { limit: 50 });
    expect(await old.limiter.decide(old.enforced, { cost: 60 })).toMatchObject({
      outcome: "allowed",
    });
    expect(await limiter.decide(enforced)).toMatchObject({ outcome: "limited" });
    expect(await old.limiter.decide(old.enforced)).toMatchObject({ outcome: "allowed" });
  });

  it("four shards that become two admit one and a half times the limit in that window", async () => {
    const prefix = crypto.randomUUID();
    const store = EVERY_STORE[name]?.(prefix) as Store;
    let admitted = 0;
    for (const shards of [4, 2]) {
      const { limiter, enforced } = await deploy(store, prefix, { limit: 20, shards });
      // Each request picks two shards at random. After 100 requests, all shards are full.
      for (let request = 0; request < 100; request++) {
        const { outcome } = await limiter.decide(enforced);
        if (outcome === "allowed") admitted += 1;
      }
    }
    expect(admitted).toBe(30);
  });
});
