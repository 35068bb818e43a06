import { Redis } from "ioredis";
import { afterAll, describe, expect, it } from "vitest";
import { startTestRedis } from "../../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import { banKey } from "../../../../src/engine/bans.ts";
import { storedKey } from "../../../../src/engine/counter.ts";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { NOW } from "../../../suite/driver.ts";
import { verdictOf } from "../../../suite/verdict.ts";

// Tests the statements of docs/storage.md about a Redis that loses data.
const server = await startTestRedis();
const rest = await startUpstashRest({ redis: server });
const redis = new Redis(server.port, server.host);
const store = createUpstashStore({
  url: rest.url,
  token: rest.token,
  clock: "edge",
  timeoutMs: 10_000,
});

afterAll(async () => {
  redis.disconnect();
  await rest.stop();
  await server.stop();
});

async function admitted(quota: ReturnType<typeof counter>, requests: number, now = NOW) {
  let count = 0;
  for (let request = 0; request < requests; request++) {
    if ((await verdictOf(store.decide([[quota]], now))).groups[0]?.admitted) count++;
  }
  return count;
}

describe("a Redis that loses data", () => {
  it("grants again, after a restart, the quota that was used in this window since the last save", async () => {
    const quota = counter({ limit: 5 });
    await admitted(quota, 3);
    expect(await admitted(quota, 9)).toBe(2);
    // Sets the count that Redis had saved after three requests, as a restart would.
    await redis.set(storedKey(quota, NOW), 3, "KEEPTTL");
    expect(await admitted(quota, 9)).toBe(2);
    expect(await admitted(quota, 9, NOW + quota.windowMs)).toBe(5);
  });

  it("starts a counter from 0 after the counter's key was evicted", async () => {
    const [evicted, kept] = [counter({ limit: 5 }), counter({ limit: 5 })];
    await admitted(evicted, 9);
    await admitted(kept, 9);
    await redis.del(storedKey(evicted, NOW));
    expect(await admitted(evicted, 9)).toBe(5);
    expect(await admitted(kept, 9)).toBe(0);
    expect(await admitted(evicted, 9, NOW + evicted.windowMs)).toBe(5);
  });

  it("grants the whole capacity of a counter that rolls over after the counter's key was evicted", async () => {
    const quota = counter({ limit: 5, ceiling: 12, rollsOver: true });
    expect(await admitted(quota, 20)).toBe(12);
    await redis.del(storedKey(quota, NOW));
    expect(await admitted(quota, 20)).toBe(12);
  });

  it("ends a ban whose key was evicted", async () => {
    const quota = counter({ limit: 5, ban: bans(3_600_000) });
    expect(await admitted(quota, 9)).toBe(5);
    expect(await admitted(quota, 9, NOW + quota.windowMs)).toBe(0);
    await redis.del(banKey(quota));
    expect(await admitted(quota, 9, NOW + quota.windowMs)).toBe(5);
  });
});

describe.runIf(server.kind === "redis-server")("a Redis that is full", () => {
  it("rejects commands and keeps its counts if its policy is noeviction", async () => {
    const quota = counter({ limit: 5 });
    await admitted(quota, 3);
    await redis.config("SET", "maxmemory-policy", "noeviction");
    await redis.config("SET", "maxmemory", "1");
    await expect(verdictOf(store.decide([[quota]], NOW))).rejects.toMatchObject({
      failure: "error-reply",
    });
    await redis.config("SET", "maxmemory", "0");
    expect(await admitted(quota, 9)).toBe(2);
  });

  it("gives slots back, takes none, and fails no other client's return", async () => {
    const all = counter({ limit: 3, slot: 0 });
    const slot = (id: number) => ({ ...all, slot: id });
    const give = (id: number) => ({ counter: slot(id), quota: 1, window: 0 });
    for (const id of [1, 2, 3]) await verdictOf(store.decide([[slot(id)]], NOW));
    await redis.config("SET", "maxmemory", "1");
    try {
      await store.adjust([], NOW, [give(1)]);
      const taking = verdictOf(store.decide([[slot(4)]], NOW, [give(2)]));
      await expect(taking).rejects.toMatchObject({ failure: "error-reply" });
    } finally {
      await redis.config("SET", "maxmemory", "0");
    }
    const read = await store.adjust([{ ...all, cost: 0 }], NOW);
    expect(read).toMatchObject([{ count: 1 }]);
  });
});
