import { env } from "cloudflare:workers";
import { describe, expect, inject, it } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import type { ClientEffect } from "../../../src/overrides/override.ts";
import { createStore } from "../../../src/stores/create-store.ts";

const SOMEONE = "c".repeat(22);
const TIMEOUT_MS = 10_000;

/** The bindings of each store, with leases and remembered denials, except for the memory store. */
const STORES = {
  memory: () => ({ kind: "memory" }) as const,
  "Durable Objects": () => ({ kind: "durable-object", namespace: env.COUNTERS }) as const,
  Redis: () => {
    const { restUrl, restToken } = inject("redis");
    return { kind: "upstash", url: restUrl, token: restToken } as const;
  },
};

/** Creates an isolate with its own leases, remembered denials and overrides. */
function isolateOf(name: keyof typeof STORES, rule: Rule, prefix: string) {
  const options = { clock: "store", prefix, timeoutMs: TIMEOUT_MS } as const;
  const limiter = new Limiter(options, createStore(STORES[name](), options));
  const overrides = new LiveOverrides();
  let version = 0;

  async function isAdmitted(): Promise<boolean> {
    const applied = overrides.clientsOf([{ rule, windows: rule.windows, identity: SOMEONE }]);
    const { outcome } = await limiter.decide(applied);
    if (outcome === "undecided") throw new Error("The store has failed.");
    return outcome === "allowed";
  }

  return {
    /** Gives the isolate an override of the client. */
    change(effect: ClientEffect) {
      version += 1;
      const about = { expiresAt: Date.now() + 3_600_000, reason: "a test", by: "token", setAt: 0 };
      overrides.update({ version, all: [{ rule: rule.name, client: SOMEONE, effect, ...about }] });
    },
    /** Sends requests one after the other. @returns how many were admitted */
    async admitted(requests: number): Promise<number> {
      let count = 0;
      for (let sent = 0; sent < requests; sent++) if (await isAdmitted()) count++;
      return count;
    },
    /** Sends requests all at once. @returns how many were admitted */
    async rush(requests: number): Promise<number> {
      const results = await Promise.all(Array.from({ length: requests }, isAdmitted));
      return results.filter(Boolean).length;
    },
  };
}

function setUp(name: keyof typeof STORES, fields: Partial<RuleInput>) {
  // No window ends during a test.
  const rules = [{ name: "api", limit: 200, window: "52w", ...fields } as RuleInput];
  const [rule] = defineConfig({ store: "memory", rules }).rules as readonly Rule[];
  const prefix = `strict-${crypto.randomUUID()}`;
  return () => isolateOf(name, rule as Rule, prefix);
}

const limitOf = (limit: number): ClientEffect => ({ kind: "limits", limits: { api: limit } });

/**
 * Expects all of a quota to be admitted, and never more. A block of quota that arrives after a change of the limit is
 * returned to the store. Until the return, up to `late` requests may be denied.
 */
function expectQuota(admitted: number, quota: number, late = 0): void {
  expect(admitted).toBeLessThanOrEqual(quota);
  expect(admitted).toBeGreaterThanOrEqual(quota - late);
}

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])("with %s,", (name) => {
  /** The size of the blocks in these tests is at most an eighth of the quota left. */
  const block = name === "memory" ? 0 : 25;

  it("a lowered limit admits only what is left of it, and a raised one admits at once", async () => {
    const isolate = setUp(name, {})();
    expect(await isolate.admitted(100)).toBe(100);
    isolate.change(limitOf(120));
    const admitted = 100 + (await isolate.admitted(40));
    expectQuota(admitted, 120, block);
    isolate.change(limitOf(50));
    expect(await isolate.admitted(10)).toBe(0);
    isolate.change(limitOf(160));
    expectQuota(admitted + (await isolate.admitted(80)), 160, block);
  });

  it("a block ends at once, and the usage before it counts afterwards", async () => {
    const isolate = setUp(name, {})();
    expect(await isolate.admitted(100)).toBe(100);
    isolate.change({ kind: "blocked" });
    expect(await isolate.admitted(5)).toBe(0);
    isolate.change({ kind: "factor", factor: 1 });
    expectQuota(await isolate.admitted(120), 100, block);
  });

  it("requests without a limit are not counted", async () => {
    const isolate = setUp(name, {})();
    expect(await isolate.admitted(50)).toBe(50);
    isolate.change({ kind: "unlimited" });
    expect(await isolate.rush(300)).toBe(300);
    isolate.change({ kind: "factor", factor: 1 });
    expectQuota(await isolate.admitted(170), 150, block);
  });

  it("requests that arrive at the same time stay within a lowered limit", async () => {
    const isolate = setUp(name, {})();
    expect(await isolate.rush(100)).toBe(100);
    isolate.change(limitOf(140));
    const admitted = await isolate.rush(100);
    expectQuota(admitted + (await isolate.admitted(40)), 40, block);
  });

  it("a rule with rollover keeps the quota that is used", async () => {
    const isolate = setUp(name, { limit: 100, capacity: 200 })();
    expect(await isolate.admitted(150)).toBe(150);
    isolate.change(limitOf(80));
    expect(await isolate.admitted(20)).toBe(10);
    isolate.change(limitOf(200));
    expect(await isolate.rush(300)).toBe(240);
  });

  it("a rule with shards lowers the limit of each shard, even below the number of shards", async () => {
    const isolate = setUp(name, { shards: 10 })();
    // By chance, a shard can get more requests than its share.
    const rushed = await isolate.rush(100);
    expect(rushed).toBeGreaterThanOrEqual(95);
    isolate.change(limitOf(140));
    const lowered = await isolate.admitted(100);
    // Shards do not know how much the others have used. So as many further requests can pass as the counts of the
    // shards differ.
    expect(lowered).toBeGreaterThanOrEqual(30);
    expect(lowered).toBeLessThanOrEqual(60);
    isolate.change(limitOf(4));
    expect(await isolate.admitted(20)).toBe(0);
    isolate.change(limitOf(300));
    expectQuota(lowered + (await isolate.rush(300)), 300 - rushed, 30);
  });

  it("a rule with shards uses all of a limit that is below its shards", async () => {
    const isolate = setUp(name, { shards: 10 })();
    isolate.change(limitOf(3));
    expect(await isolate.admitted(30)).toBe(3);
    isolate.change(limitOf(1));
    expect(await isolate.admitted(10)).toBe(0);
  });
});

describe.each(["Durable Objects", "Redis"] as const)("two isolates over %s", (name) => {
  it("give back their leased quota when the limit is lowered, and stay within it together", async () => {
    const start = setUp(name, {});
    const [one, other] = [start(), start()];
    expect((await one.admitted(60)) + (await other.admitted(40))).toBe(100);
    for (const isolate of [one, other]) isolate.change(limitOf(130));
    const admitted = (await Promise.all([one.admitted(60), other.admitted(60)])).reduce(
      (sum, each) => sum + each,
    );
    expectQuota(admitted, 30, 20);
  });

  it("admit at once after a limit was raised, although both remember denials", async () => {
    const start = setUp(name, { limit: 10 });
    const [one, other] = [start(), start()];
    expect((await one.admitted(20)) + (await other.admitted(10))).toBe(10);
    other.change(limitOf(15));
    expect(await one.admitted(5)).toBe(0);
    expect(await other.admitted(10)).toBe(5);
  });
});
