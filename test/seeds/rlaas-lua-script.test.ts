import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, inject, it } from "vitest";
import { defineConfig } from "../../src/config/index.ts";
import { ruleCountersOf } from "../../src/limiter/counters.ts";
import { createDurableObjectStore } from "../../src/stores/durable-object/durable-object-store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { verdictOf } from "../suite/verdict.ts";
import { CUSTOM_KEYS, figuresOf, MIDNIGHT, onEveryStore } from "./on-every-store.ts";
import { storedAs } from "./stored-as.ts";

// These tests repeat `fixed-window-algo` of RLAAS. It is a Lua script that uses Redis's clock. Its
// window-size is 60, and its max-requests is 5.

const rule = { name: "rate_limit", key: "custom:user", limit: 5, window: 60 };
const alice = { user: "alice" };

onEveryStore("RLAAS's window-size of 60 and max-requests of 5", (open) => {
  it("allows the fifth request and denies the sixth", async () => {
    const system = open([rule]);
    const counts = [];
    for (let request = 1; request <= 6; request++) {
      const { remaining, violated } = figuresOf(await system.decide(7, alice));
      counts.push([5 - remaining, !violated]);
    }
    expect(counts).toEqual([
      [1, true],
      [2, true],
      [3, true],
      [4, true],
      [5, true],
      [5, false],
    ]);
  });

  it("returns the time until the window ends, for allowed and denied requests", async () => {
    const system = open([{ ...rule, limit: 1 }]);
    expect(figuresOf(await system.decide(7, alice))).toMatchObject({ resetMs: 53_000 });
    expect(figuresOf(await system.decide(59, alice))).toMatchObject({ resetMs: 1000 });
  });

  it("admits ten within two seconds: five at second 59 and five at second 61", async () => {
    const system = open([rule]);
    expect(await system.admitted(59, 6, alice)).toBe(5);
    expect(await system.admitted(61, 6, alice)).toBe(5);
  });
});

describe("RLAAS's key", () => {
  it("is prefix, rate_limit, user and window 28333335 at Unix time 1700000100", () => {
    const [stored] = storedAs({ prefix: "rlaas", rules: [rule] }, "alice", 1_700_000_100);
    expect(stored?.key).toBe("rlaas:rate_limit:1m:alice:28333335");
  });

  // RLAAS keeps a key for 60 s after the first request of a window. Weir keeps a key until one
  // second after the window's end.
  const prefix = `rlaas-${crypto.randomUUID()}`;
  const config = defineConfig({ prefix, rules: [rule], custom: { keys: CUSTOM_KEYS } });
  const [{ counter }] = config.rules.flatMap((each) =>
    ruleCountersOf({ rule: each, windows: each.windows, identity: "alice" }, prefix),
  ) as [ReturnType<typeof ruleCountersOf>[number]];
  const stored = `${counter.key}:${MIDNIGHT / 60_000}`;

  it("is a string in Redis, and the second request does not move its expiry", async () => {
    const { restUrl: url, restToken: token } = inject("redis");
    const redis = async (...command: string[]) => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(command) });
      return ((await response.json()) as { result: unknown }).result;
    };
    const store = createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });

    await verdictOf(store.decide([[counter]], MIDNIGHT + 20_000));
    expect(await redis("TYPE", stored)).toBe("string");
    const before = Number(await redis("PTTL", stored));
    expect(before).toBeGreaterThan(60_000);
    expect(before).toBeLessThanOrEqual(70_000);
    await verdictOf(store.decide([[counter]], MIDNIGHT + 59_000));
    const after = Number(await redis("PTTL", stored));
    expect(after).toBeGreaterThan(60_000);
    expect(after).toBeLessThanOrEqual(before);
  });

  it("is a row in a Durable Object that expires a second after the window", async () => {
    const store = createDurableObjectStore({ namespace: env.COUNTERS, prefix, timeoutMs: 10_000 });
    await verdictOf(store.decide([[counter]], MIDNIGHT + 20_000));
    await verdictOf(store.decide([[counter]], MIDNIGHT + 59_000));
    const rows = await runInDurableObject(env.COUNTERS.getByName(`${prefix}:alice`), (_, state) =>
      state.storage.sql.exec("SELECT key, count, expires_at FROM rows").toArray(),
    );
    expect(rows).toEqual([{ key: stored, count: 2, expires_at: MIDNIGHT + 61_000 }]);
  });
});
