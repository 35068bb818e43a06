import { env } from "cloudflare:workers";
import { describe, expect, inject, it } from "vitest";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { createLimiter } from "../../../src/limiter/limiter.ts";
import { createDurableObjectStore } from "../../../src/stores/durable-object/durable-object-store.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import type { Store } from "../../../src/stores/store.ts";
import { createUpstashStore } from "../../../src/stores/upstash/upstash-store.ts";
import { HOUR, NOW } from "../../suite/driver.ts";
import { identifying } from "../request/requests.ts";

const timeoutMs = 10_000;

const stores: Record<string, (prefix: string) => Store> = {
  memory: () => createMemoryStore(),
  "Durable Objects": (prefix) =>
    createDurableObjectStore({ namespace: env.COUNTERS, prefix, timeoutMs }),
  Redis: () => {
    const { restUrl: url, restToken: token } = inject("redis");
    return createUpstashStore({ url, token, clock: "edge", timeoutMs });
  },
};

type Rule = Partial<ConfigInput["rules"][number]>;

/** Three of five an hour are used under one rule; then another stands in its place. */
const changes: [change: string, before: Rule, after: Rule, left: number][] = [
  ["nothing", {}, {}, 2],
  ["a limit that is raised", {}, { limit: 9 }, 6],
  ["a limit that is lowered", {}, { limit: 2 }, 0],
  ["another window", {}, { window: "2h" }, 5],
  ["another name", {}, { name: "other" }, 5],
  ["another key", {}, { key: "global" }, 5],
  ["capacity that is added", {}, { capacity: 8 }, 8],
  ["capacity that is raised", { capacity: 8 }, { capacity: 9 }, 6],
  ["capacity that is taken away", { capacity: 8 }, {}, 5],
  ["shards that are added", {}, { limit: 10, shards: 2 }, 5],
  ["another mode", {}, { mode: "shadow" }, 2],
  ["a ban that is added", {}, { ban: "1h" }, 2],
  ["tiers that are added", {}, tiersOf(20), 17],
  ["tiers that are taken away", tiersOf(20), {}, 2],
  // At half past: the window of the same number is the one from half past to half past.
  ["a start that leaves the window its number", {}, { start: "1970-01-01T00:15:00Z" }, 2],
  ["a start that gives the window another", {}, { start: "1970-01-01T00:45:00Z" }, 5],
];

function tiersOf(limit: number): Rule {
  return { tiers: { by: "header:x-plan", limits: { pro: { limit, window: "1h" } } } };
}

describe.each(Object.keys(stores))("what a deploy finds on %s", (name) => {
  it.each(changes)("after %s", async (_, before, after, left) => {
    const prefix = crypto.randomUUID();
    const store = stores[name]?.(prefix) as Store;
    const now = NOW + HOUR / 2;
    const timed: Store = {
      decide: (groups) => store.decide(groups, now),
      adjust: (counters) => store.adjust(counters, now),
      reset: (counters) => store.reset(counters, now),
    };
    async function deployed(fields: Rule) {
      const rules = [{ name: "api", limit: 5, window: "1h", ...fields }];
      const limiter = createLimiter(defineConfig({ prefix, rules }), timed);
      const subjects = await identifying(rules)({ "x-plan": "pro" });
      // A rule in shadow mode is looked at as `getValue` does.
      const shown = subjects.map(
        (each) => ({ ...each, rule: { ...each.rule, mode: "enforce" } }) as const,
      );
      return { limiter, shown };
    }
    const old = await deployed(before);
    expect(await old.limiter.decide(old.shown, { cost: 3 })).toMatchObject({ outcome: "allowed" });
    const { limiter, shown } = await deployed(after);
    const decision = await limiter.decide(shown, { cost: 0, checkOnly: true });
    expect("quotas" in decision && decision.quotas[0]?.remaining).toBe(left);
  });
});
