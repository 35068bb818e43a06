import { Redis } from "ioredis";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startTestRedis } from "../../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import { type Counter, windowAt } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import type { Clock } from "../../../../src/stores/upstash/script.ts";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { counter as anyCounter } from "../../../suite/counters.ts";

// What blocks do to Redis, seen from Redis: on a server of its own, for its figures to be those of
// this file alone.
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

/** A day's quota, whose window does not end while it is looked at. */
function counter(fields: Partial<Counter> = {}): Counter {
  const midday = (Date.now() - DAY / 2) % DAY;
  return anyCounter({ limit: 1000, windowMs: DAY, offsetMs: midday, leasable: true, ...fields });
}

function storeWith(clock: Clock) {
  const { url, token } = rest;
  const store = createUpstashStore({ url, token, clock, timeoutMs: 10_000 });
  const unusedOf = (quota: Counter, amount: number, windowsAgo = 0) => {
    const window = windowAt(Date.now(), quota).index - windowsAgo;
    return { counter: quota, quota: amount, window };
  };
  const giveBack = (quota: Counter, amount: number, windowsAgo = 0) =>
    store.decide([], undefined, [unusedOf(quota, amount, windowsAgo)]);
  const take = async (quota: Counter) => {
    const { groups } = await store.decide([[quota]]);
    return groups[0]?.tallies[0];
  };
  return { store, take, giveBack, unusedOf };
}

/** The commands that Redis ran for something, as INFO commandstats has them. */
async function commandsOf(run: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.config("RESETSTAT");
  await run();
  const stats = await redis.info("commandstats");
  const calls = [...stats.matchAll(/cmdstat_(\w+(?:\|\w+)?):calls=(\d+)/g)].map(
    ([, name, count]) => [name as string, Number(count)] as const,
  );
  return Object.fromEntries(calls.filter(([name]) => !/^(info|config\|resetstat)$/.test(name)));
}

/** Each key with what is left until it expires; -1 for never. */
async function ttls(): Promise<number[]> {
  const keys = await redis.keys("*");
  return await Promise.all(keys.map((key) => redis.pttl(key)));
}

const clocks = ["edge", "redis"] as const;

describe.runIf(server.kind === "redis-server").each(clocks)("by the clock %s", (clock) => {
  const within = { evalsha: 1, bitfield: 1, ...(clock === "redis" && { time: 1 }) };
  const { store, take, giveBack, unusedOf } = storeWith(clock);

  it("a block costs no more commands than a single request", async () => {
    await take(counter());
    const quota = counter();
    const block = { ...quota, block: 9 };
    expect(await commandsOf(() => take(block))).toEqual({ ...within, pexpire: 1 });
    expect(await commandsOf(() => take(block))).toEqual(within);
    expect(await commandsOf(() => take(quota))).toEqual(within);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 19 });
  });

  it("a block of which only a part is to be had costs one command more", async () => {
    const quota = counter({ limit: 100 });
    await take({ ...quota, cost: 60 });
    const block = { ...quota, block: 9 };
    expect(await commandsOf(() => take(block))).toEqual({ ...within, bitfield: 2 });
    // Within an eighth of the room of 35 there are four.
    expect(await take({ ...quota, block: 4 })).toMatchObject({ count: 69, charged: 4 });
    await take({ ...quota, cost: 31 });
    expect(await commandsOf(() => take(block))).toEqual({ ...within, bitfield: 2 - 1 });
  });

  it("what is given back costs a command for each counter, in the call that is made anyway", async () => {
    const [quota, others] = [counter(), [counter(), counter()]];
    for (const each of [quota, ...others]) await take({ ...each, cost: 5 });
    const unused = others.map((each) => unusedOf(each, 2));
    const commands = await commandsOf(() => store.decide([[quota]], undefined, unused));
    expect(commands).toEqual({ ...within, bitfield: 3 });
    const rest = others.map((each) => unusedOf(each, 3));
    const last = await commandsOf(() => store.decide([[quota]], undefined, rest));
    expect(last, "down to 0").toEqual({ ...within, bitfield: 3, del: 2 });
  });

  it("what is given back of a window that has ended costs nothing", async () => {
    const [quota, other] = [counter(), counter()];
    await take({ ...quota, cost: 5 });
    const unused = [unusedOf(other, 2, 1)];
    expect(await commandsOf(() => store.decide([[quota]], undefined, unused))).toEqual(within);
  });

  it("all that was charged and is given back leaves no key", async () => {
    const quota = counter();
    await take({ ...quota, block: 9 });
    await giveBack(quota, 9);
    expect(await redis.keys("*")).toEqual([]);
  });
});

describe.each(clocks)("what is given back by the clock %s", (clock) => {
  const { store, take, giveBack } = storeWith(clock);

  it("is taken off, and the rest expires when it would have", async () => {
    const quota = counter();
    await take({ ...quota, block: 9 });
    const [key] = (await redis.keys("*")) as [string];
    const expiresAt = await redis.pexpiretime(key);
    expect(expiresAt).toBeGreaterThan(Date.now());
    await giveBack(quota, 3);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 6 });
    expect(await redis.pexpiretime(key)).toBe(expiresAt);
    await take({ ...quota, block: 9 });
    expect(await redis.pexpiretime(key)).toBe(expiresAt);
  });

  it("leaves no key where there is none any more", async () => {
    const quota = counter();
    await take(quota);
    await redis.flushall();
    await giveBack(quota, 1);
    expect(await redis.keys("*")).toEqual([]);
  });

  it("is no more than there is: the count stays as it is", async () => {
    const quota = counter();
    await take({ ...quota, cost: 4 });
    await giveBack(quota, 5);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 4 });
    expect(await ttls()).toEqual([expect.any(Number)]);
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
  });

  it("is nothing for another window", async () => {
    const quota = counter();
    await take({ ...quota, cost: 4 });
    await giveBack(quota, 2, 1);
    await giveBack(quota, 2, -1);
    expect(await take({ ...quota, cost: 0 })).toMatchObject({ count: 4 });
    expect(await redis.keys("*")).toHaveLength(1);
  });

  it("comes before what is decided with it", async () => {
    const quota = counter({ limit: 10 });
    await take({ ...quota, cost: 10 });
    const { index: window } = windowAt(Date.now(), quota);
    const unused = [{ counter: quota, quota: 3, window }];
    const { groups } = await store.decide([[{ ...quota, cost: 3 }]], undefined, unused);
    expect(groups).toMatchObject([{ admitted: true, tallies: [{ count: 10 }] }]);
  });

  it("has a key that was emptied expire again with its next charge", async () => {
    const quota = counter();
    await take({ ...quota, cost: 2 });
    await giveBack(quota, 2);
    await take({ ...quota, block: 5 });
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
    expect(await ttls()).toHaveLength(1);
  });
});

describe.each(clocks)("isolates with leases by the clock %s", (clock) => {
  function isolate() {
    const tasks: Promise<unknown>[] = [];
    const options = { timeoutMs: 10_000, background: (task: Promise<unknown>) => tasks.push(task) };
    return { ...withLeases(withDenialCache(storeWith(clock).store), options), tasks };
  }
  const timeOf = () => (clock === "edge" ? Date.now() : undefined);

  it("admit exactly the limit, of many requests at once", async () => {
    const isolates = [isolate(), isolate(), isolate()];
    const quota = counter({ limit: 150 });
    const verdicts = await Promise.all(
      Array.from({ length: 450 }, (_, index) =>
        isolates[index % isolates.length]?.decide([[quota]], timeOf()),
      ),
    );
    await Promise.all(isolates.flatMap(({ tasks }) => tasks));
    const admitted = verdicts.filter((verdict) => verdict?.groups[0]?.admitted).length;
    // What lies unused in one of them is still to be had there.
    let late = 0;
    for (let request = 0; request < 50; request++) {
      for (const { decide } of isolates) {
        if ((await decide([[quota]], timeOf())).groups[0]?.admitted) late++;
      }
    }
    expect(admitted + late).toBe(150);
    expect(await storeWith(clock).take({ ...quota, cost: 0 })).toMatchObject({ count: 150 });
  });

  it("leave no key without an expiry, and charge what was used when they have given back", async () => {
    const one = isolate();
    const groups = [counter({ limit: 500 }), counter({ limit: 300, windowMs: HOUR })];
    for (let request = 0; request < 40; request++) await one.decide([groups], timeOf());
    await Promise.all(one.tasks);
    const calls = rest.calls();
    expect(calls).toBeGreaterThan(0);
    for (const ttl of await ttls()) expect(ttl).toBeGreaterThan(0);
    const tallies = await one.adjust(
      groups.map((each) => ({ ...each, cost: 0 })),
      timeOf(),
    );
    expect(tallies.map(({ count }) => count)).toEqual([40, 40]);
    await one.adjust(
      groups.map((each) => ({ ...each, cost: -40 })),
      timeOf(),
    );
    for (const ttl of await ttls()) expect(ttl).not.toBe(-1);
  });

  it("make far fewer calls than there are requests", async () => {
    const one = isolate();
    const quota = counter({ limit: 100_000 });
    await one.decide([[counter()]], timeOf());
    const before = rest.calls();
    for (let request = 0; request < 300; request++) await one.decide([[quota]], timeOf());
    await Promise.all(one.tasks);
    expect(rest.calls() - before).toBeLessThan(60);
  });
});
