import { Redis } from "ioredis";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { startTestRedis } from "../../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import type { Clock } from "../../../../src/config/bindings.ts";
import { type Demand, windowAt } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { counter as anyCounter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";

// Tests the effects of blocks on Redis. This file has its own server, so that no other test changes
// the figures.
const server = await startTestRedis();
const rest = await startUpstashRest({ redis: server });
const redis = new Redis(server.port, server.host);

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

afterAll(async () => {
  redis.disconnect();
  await rest.stop();
  await server.stop();
});

beforeEach(async () => {
  await redis.flushall();
  await redis.script("FLUSH");
});

/** Creates a counter with a window of a day that began half a day ago, so that no test reaches its end. */
function counter(fields: Partial<Demand> = {}): Demand {
  const midday = (Date.now() - DAY / 2) % DAY;
  return anyCounter({ limit: 1000, windowMs: DAY, offsetMs: midday, leasable: true, ...fields });
}

function storeWith(clock: Clock) {
  const { url, token } = rest;
  const store = createUpstashStore({ url, token, clock, timeoutMs: 10_000 });
  const unusedOf = (quota: Demand, amount: number, windowsAgo = 0) => {
    const window = windowAt(Date.now(), quota).index - windowsAgo;
    return { counter: quota, quota: amount, window };
  };
  const returnQuota = (quota: Demand, amount: number, windowsAgo = 0) =>
    store.adjust([], undefined, [unusedOf(quota, amount, windowsAgo)]);
  const take = async (quota: Demand) => {
    const { groups } = await verdictOf(store.decide([[quota]]));
    return groups[0]?.tallies[0];
  };
  return { store, take, returnQuota, unusedOf };
}

/**
 * Runs an action. Returns how often Redis ran each command during the action, according to INFO
 * commandstats.
 */
async function commandsOf(run: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.config("RESETSTAT");
  await run();
  const stats = await redis.info("commandstats");
  const calls = [...stats.matchAll(/cmdstat_(\w+(?:\|\w+)?):calls=(\d+)/g)].map(
    ([, name, count]) => [name as string, Number(count)] as const,
  );
  return Object.fromEntries(calls.filter(([name]) => !/^(info|config\|resetstat)$/.test(name)));
}

/** Reads the time until each key expires, in milliseconds; -1 for a key that never expires. */
async function ttls(): Promise<number[]> {
  const keys = await redis.keys("*");
  return await Promise.all(keys.map((key) => redis.pttl(key)));
}

const clocks = ["edge", "store"] as const;

describe.runIf(server.kind === "redis-server").each(clocks)("with the clock %s", (clock) => {
  const baseCommands = { evalsha: 1, incrby: 1, ...(clock === "store" && { time: 1 }) };
  const { store, take, returnQuota, unusedOf } = storeWith(clock);

  it("a block costs no more commands than a single request", async () => {
    await take(counter());
    const quota = counter();
    const block = { ...quota, block: 9 };
    expect(await commandsOf(() => take(block))).toEqual({ ...baseCommands, pexpire: 1 });
    expect(await commandsOf(() => take(block))).toEqual(baseCommands);
    expect(await commandsOf(() => take(quota))).toEqual(baseCommands);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 19 });
  });

  it("a block costs one more command if the quota left allows only a part of it", async () => {
    const quota = counter({ limit: 100 });
    await take({ ...quota, cost: 60 });
    const block = { ...quota, block: 9 };
    expect(await commandsOf(() => take(block))).toEqual({ ...baseCommands, decrby: 1 });
    // The quota left is 35. A block gets at most an eighth of it, which is 4.
    expect(await take({ ...quota, block: 4 })).toMatchObject({ count: 69, charged: 4 });
    await take({ ...quota, cost: 31 });
    expect(await commandsOf(() => take(block))).toEqual({ ...baseCommands, decrby: 1 });
  });

  it("a return costs one command for each counter, and no call of its own", async () => {
    const [quota, others] = [counter(), [counter(), counter()]];
    for (const each of [quota, ...others]) await take({ ...each, cost: 5 });
    const unused = others.map((each) => unusedOf(each, 2));
    const commands = await commandsOf(() => verdictOf(store.decide([[quota]], undefined, unused)));
    expect(commands).toEqual({ ...baseCommands, decrby: 2 });
    const rest = others.map((each) => unusedOf(each, 3));
    const last = await commandsOf(() => verdictOf(store.decide([[quota]], undefined, rest)));
    expect(last, "down to 0").toEqual({ ...baseCommands, decrby: 2, del: 2 });
  });

  it("a return to a window that has ended costs no command", async () => {
    const [quota, other] = [counter(), counter()];
    await take({ ...quota, cost: 5 });
    const unused = [unusedOf(other, 2, 1)];
    expect(await commandsOf(() => verdictOf(store.decide([[quota]], undefined, unused)))).toEqual(
      baseCommands,
    );
  });

  it("returning all that was charged leaves no key", async () => {
    const quota = counter();
    await take({ ...quota, block: 9 });
    await returnQuota(quota, 9);
    expect(await redis.keys("*")).toEqual([]);
  });
});

describe.each(clocks)("a return with the clock %s", (clock) => {
  const { store, take, returnQuota } = storeWith(clock);

  it("lowers the count and keeps its expiry", async () => {
    const quota = counter();
    await take({ ...quota, block: 9 });
    const [key] = (await redis.keys("*")) as [string];
    const expiresAt = await redis.pexpiretime(key);
    expect(expiresAt).toBeGreaterThan(Date.now());
    await returnQuota(quota, 3);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 6 });
    expect(await redis.pexpiretime(key)).toBe(expiresAt);
    await take({ ...quota, block: 9 });
    expect(await redis.pexpiretime(key)).toBe(expiresAt);
  });

  it("creates no key if the counter's key is gone", async () => {
    const quota = counter();
    await take(quota);
    await redis.flushall();
    await returnQuota(quota, 1);
    expect(await redis.keys("*")).toEqual([]);
  });

  it("of more than the count changes nothing", async () => {
    const quota = counter();
    await take({ ...quota, cost: 4 });
    await returnQuota(quota, 5);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 4 });
    expect(await ttls()).toEqual([expect.any(Number)]);
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
  });

  it("changes nothing in another window", async () => {
    const quota = counter();
    await take({ ...quota, cost: 4 });
    await returnQuota(quota, 2, 1);
    await returnQuota(quota, 2, -1);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 4 });
    expect(await redis.keys("*")).toHaveLength(1);
  });

  it("happens before the decision of the same call", async () => {
    const quota = counter({ limit: 10 });
    await take({ ...quota, cost: 10 });
    const { index: window } = windowAt(Date.now(), quota);
    const unused = [{ counter: quota, quota: 3, window }];
    const { groups } = await verdictOf(store.decide([[{ ...quota, cost: 3 }]], undefined, unused));
    expect(groups).toMatchObject([{ admitted: true, tallies: [{ count: 10 }] }]);
  });

  it("deletes a key whose count becomes 0, and the next charge sets an expiry again", async () => {
    const quota = counter();
    await take({ ...quota, cost: 2 });
    await returnQuota(quota, 2);
    await take({ ...quota, block: 5 });
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
    expect(await ttls()).toHaveLength(1);
  });
});

describe.each(clocks)("isolates with leases and the clock %s", (clock) => {
  function isolate() {
    const tasks: Promise<unknown>[] = [];
    const options = { timeoutMs: 10_000, background: (task: Promise<unknown>) => tasks.push(task) };
    return Object.assign(withLeases(withDenialCache(storeWith(clock).store), options), { tasks });
  }
  const givenTime = () => (clock === "edge" ? Date.now() : undefined);

  afterEach(() => {
    vi.useRealTimers();
  });

  it("admit exactly the limit of many requests at once", async () => {
    // The isolates' clock stands still. After five seconds, an isolate would return unused quota, and the
    // others would deny requests from memory a little longer.
    vi.useFakeTimers({ toFake: ["Date"] });
    const isolates = [isolate(), isolate(), isolate()];
    const quota = counter({ limit: 150 });
    const verdicts = await Promise.all(
      Array.from({ length: 450 }, (_, index) =>
        verdictOf(isolates[index % isolates.length]?.decide([[quota]], givenTime()) ?? []),
      ),
    );
    await Promise.all(isolates.flatMap(({ tasks }) => tasks));
    const admitted = verdicts.filter((verdict) => verdict?.groups[0]?.admitted).length;
    // Each isolate can still use the unspent quota of its leases.
    let late = 0;
    for (let request = 0; request < 50; request++) {
      for (const each of isolates) {
        if ((await verdictOf(each.decide([[quota]], givenTime()))).groups[0]?.admitted) late++;
      }
    }
    expect(admitted + late).toBe(150);
    expect(await storeWith(clock).take({ ...quota, cost: 0 })).toMatchObject({ count: 150 });
  });

  it("leave no key without an expiry, and after returns only the quota used is charged", async () => {
    const one = isolate();
    const groups = [counter({ limit: 500 }), counter({ limit: 300, windowMs: HOUR })];
    for (let request = 0; request < 40; request++)
      await verdictOf(one.decide([groups], givenTime()));
    await Promise.all(one.tasks);
    const calls = rest.calls();
    expect(calls).toBeGreaterThan(0);
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
    const tallies = await one.adjust(
      groups.map((each) => ({ ...each, cost: 0 })),
      givenTime(),
    );
    expect(tallies.map(({ count }) => count)).toEqual([40, 40]);
    await one.adjust(
      groups.map((each) => ({ ...each, cost: -40 })),
      givenTime(),
    );
    for (const ttl of await ttls()) expect(ttl).not.toBe(-1);
  });

  it("make far fewer calls than requests", async () => {
    const one = isolate();
    const quota = counter({ limit: 100_000 });
    await verdictOf(one.decide([[counter()]], givenTime()));
    const before = rest.calls();
    for (let request = 0; request < 300; request++)
      await verdictOf(one.decide([[quota]], givenTime()));
    await Promise.all(one.tasks);
    expect(rest.calls() - before).toBeLessThan(60);
  });
});
