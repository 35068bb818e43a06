import { Redis } from "ioredis";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startTestRedis } from "../../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import type { Clock } from "../../../../src/config/bindings.ts";
import { banKey, banKeys } from "../../../../src/engine/bans.ts";
import {
  type Adjustment,
  type Demand,
  storedKey,
  windowAt,
} from "../../../../src/engine/counter.ts";
import { type Entry, withBatches } from "../../../../src/stores/batch.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createUpstashEntries } from "../../../../src/stores/upstash/upstash-store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";

// Tests the effects of the scripts in Redis. This file has its own server, because it reads figures
// of the whole server.
const server = await startTestRedis();
const rest = await startUpstashRest({ redis: server });
const redis = new Redis(server.port, server.host);

afterAll(async () => {
  redis.disconnect();
  await rest.stop();
  await server.stop();
});

beforeEach(async () => {
  await redis.flushall();
  await redis.script("FLUSH");
});

const HOUR = 3_600_000;

/** The commands of all calls so far, as the calls themselves have counted them. */
let counted = 0;

function storeWith(clock: Clock) {
  const { url, token } = rest;
  const options = { timeoutMs: 10_000, keepAlive: () => {} };
  const entries = createUpstashEntries({ url, token, clock, ...options });
  const run = async (batch: readonly Entry[]) => {
    const { answers, commands } = await entries.call(batch);
    counted += commands;
    return answers;
  };
  return withBatches({ run }, options);
}

/**
 * Runs a decision. Returns how often Redis ran each command for the decision, according to INFO
 * commandstats. The calls must have counted as many.
 */
async function commandsOf(run: () => Promise<unknown>): Promise<Record<string, number>> {
  await redis.config("RESETSTAT");
  const before = counted;
  await run();
  const stats = await redis.info("commandstats");
  const calls = [...stats.matchAll(/cmdstat_(\w+(?:\|\w+)?):calls=(\d+)/g)].map(
    ([, name, count]) => [name as string, Number(count)] as const,
  );
  const own = calls.filter(([name]) => !/^(info|config\|resetstat)$/.test(name));
  const total = own.reduce((sum, [, count]) => sum + count, 0);
  expect(counted - before).toBe(total);
  return Object.fromEntries(own);
}

describe.runIf(server.kind === "redis-server")("Redis commands per decision", () => {
  const opened = { evalsha: 1, incrby: 1, pexpire: 1 };
  const within = { evalsha: 1, incrby: 1 };

  it.each([
    { clock: "edge", time: {} },
    { clock: "store", time: { time: 1 } },
  ] as const)(
    "are one more for the first decision in a window, with the clock $clock",
    async ({ clock, time }) => {
      const store = storeWith(clock);
      const quota = counter({ limit: 3, windowMs: 3_600_000 });
      await verdictOf(store.decide([[counter()]]));
      expect(await commandsOf(() => verdictOf(store.decide([[quota]])))).toEqual({
        ...opened,
        ...time,
      });
      expect(await commandsOf(() => verdictOf(store.decide([[quota]])))).toEqual({
        ...within,
        ...time,
      });
      expect(await commandsOf(() => verdictOf(store.decide([[quota]])))).toEqual({
        ...within,
        ...time,
      });
      // This request is denied, and its charge is taken back.
      expect(await commandsOf(() => verdictOf(store.decide([[quota]])))).toEqual({
        ...within,
        ...time,
        decrby: 1,
      });
    },
  );

  // The commands that Redis runs for a decision with each feature, except EVALSHA. Earlier
  // decisions have already charged the same window. docs/cost.md has the same figures.
  const rolling = { ceiling: 8, rollsOver: true };
  const sliding = { subWindows: 10 };
  const full = { limit: 1 };
  const banned = { ban: bans(60_000) };
  it.each<[string, Partial<Demand>[], Record<string, number>]>([
    ["three counters", [{}, {}, {}], { incrby: 3 }],
    ["a counter that rolls over", [rolling], { get: 1, set: 1 }],
    ["a counter that is only checked", [{ checkOnly: true }], { get: 1 }],
    ["a counter with a cost of 0", [{ cost: 0 }], { get: 1 }],
    ["a counter with a ban", [banned], { pttl: 1, incrby: 1 }],
    ["a denial by the first of two counters", [full, {}], { incrby: 1, get: 1, decrby: 1 }],
    ["a denial by the second of two counters", [{}, full], { incrby: 2, decrby: 2 }],
    ["a denial by a counter that rolls over", [{ limit: 1, rollsOver: true }], { get: 1 }],
    ["a counter with sub-windows", [sliding], { get: 1, set: 1 }],
    ["a denial by a counter with sub-windows", [{ limit: 1, ...sliding }], { get: 1 }],
    [
      "a counter with sub-windows that is only checked",
      [{ checkOnly: true, ...sliding }],
      { get: 1 },
    ],
    [
      "a counter with sub-windows and a ban",
      [{ ...sliding, ...banned }],
      { get: 1, set: 1, pttl: 1 },
    ],
    ["two counters that roll over", [rolling, rolling], { get: 2, set: 2 }],
    ["two counters with a ban", [banned, banned], { pttl: 2, incrby: 2 }],
  ])("for %s", async (_, fields, expected) => {
    const store = storeWith("edge");
    const counters = fields.map((each) => counter({ windowMs: 3_600_000, ...each }));
    // Two decisions come first, so that the counters have been charged.
    await verdictOf(store.decide([counters.map((each) => ({ ...each, checkOnly: false }))]));
    await verdictOf(store.decide([counters.map((each) => ({ ...each, checkOnly: false }))]));
    expect(await commandsOf(() => verdictOf(store.decide([counters])))).toEqual({
      evalsha: 1,
      ...expected,
    });
  });

  it("for a thousand requests of a client in one isolate: few, under a sliding window", async () => {
    const options = { timeoutMs: 10_000, background: () => {} };
    const store = withLeases(withDenialCache(storeWith("edge")), options);
    const each = counter({ limit: 50, subWindows: 10, windowMs: HOUR });
    const before = rest.calls();
    const verdicts: ReturnType<typeof verdictOf>[] = [];
    const send = async () => {
      for (let request = 0; request < 1000; request++) {
        // The requests come in fifty turns of the event loop.
        if (request % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
        verdicts.push(verdictOf(store.decide([[each]], Date.now())));
      }
      await Promise.all(verdicts);
    };
    const commands = await commandsOf(send);
    const decided = await Promise.all(verdicts);
    expect(decided.filter(({ groups }) => groups[0]?.admitted)).toHaveLength(50);
    const calls = rest.calls() - before;
    expect(calls).toBeLessThanOrEqual(10);
    expect(Object.values(commands).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(
      3 * calls + 1,
    );
  });

  it("for the first request after the limit of a counter that rolls over was lowered", async () => {
    const store = storeWith("edge");
    const high = counter({ windowMs: HOUR, limit: 5, ceiling: 20, cost: 20, rollsOver: true });
    await verdictOf(store.decide([[high]]));
    const low = { ...high, limit: 4 };
    const first = await commandsOf(() => verdictOf(store.decide([[low]])));
    expect(first).toEqual({ evalsha: 1, get: 1, set: 1 });
    expect(await commandsOf(() => verdictOf(store.decide([[low]])))).toEqual({
      evalsha: 1,
      get: 1,
    });
  });

  // docs/cost.md has the same figures.
  it.each<[string, Partial<Adjustment>, Record<string, number>]>([
    ["a part", { cost: -1 }, { incrby: 1 }],
    ["more than the reserve", { cost: 3 }, { incrby: 1 }],
    ["the whole count", { cost: -2 }, { incrby: 1, del: 1 }],
    ["a part, in a window that has ended", { cost: -1, chargedIn: 7 }, { get: 1 }],
    ["a part, for a counter that rolls over", { cost: -1, ...rolling }, { get: 1, set: 1 }],
    ["a part, for a counter with sub-windows", { cost: -1, ...sliding }, { get: 1, set: 1 }],
    [
      "a part, in a sub-window that does not count any more",
      { cost: -1, chargedIn: 7, ...sliding },
      { get: 1 },
    ],
    ["a part, for a counter with a ban", { cost: -1, ...banned }, { incrby: 1, pttl: 1 }],
  ])("for a settlement that charges or gives back %s", async (_, fields, expected) => {
    const store = storeWith("edge");
    const now = Date.now();
    const charged = counter({ windowMs: HOUR, ...fields, cost: 2 });
    await verdictOf(store.decide([[charged]], now));
    // The first call loads the script.
    await store.adjust([counter()], now);
    const settled = { ...charged, chargedIn: windowAt(now, charged).index, ...fields };
    const commands = await commandsOf(() => store.adjust([settled as Demand], now));
    expect(commands).toEqual({ evalsha: 1, ...expected });
  });

  it("for a denial by the second of two counters that takes back a window's first charge", async () => {
    const store = storeWith("edge");
    const [first, second] = [counter({ windowMs: HOUR }), counter({ limit: 1, windowMs: HOUR })];
    await verdictOf(store.decide([[second]]));
    const expected = { evalsha: 1, incrby: 2, del: 1, decrby: 1 };
    expect(await commandsOf(() => verdictOf(store.decide([[first, second]])))).toEqual(expected);
  });

  it("for the group of a mark: as for an enforced one, also if the enforced group is denied", async () => {
    const store = storeWith("edge");
    const [enforced, mark] = [
      counter({ limit: 3, windowMs: HOUR }),
      counter({ limit: 2, windowMs: HOUR, marks: true }),
    ];
    const decide = () => verdictOf(store.decide([[enforced], [mark]]));
    await decide();
    expect(await commandsOf(decide)).toEqual({ evalsha: 1, incrby: 2 });
    // The mark has no quota left.
    expect(await commandsOf(decide)).toEqual({ evalsha: 1, incrby: 2, decrby: 1 });
    // The enforced group is denied.
    expect(await commandsOf(decide)).toEqual({ evalsha: 1, incrby: 2, decrby: 2 });
  });

  it("fails only the group of a mark if the value under its key has the wrong type", async () => {
    const store = storeWith("edge");
    const now = Date.now();
    const [enforced, mark] = [counter(), counter({ marks: true })];
    await redis.lpush(storedKey(mark, now), "text");
    const [first, second] = store.decide([[enforced], [mark]], now);
    await expect(second).rejects.toMatchObject({ failure: "error-reply" });
    expect(await first).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
  });

  it("for a client that exceeds the limit and is banned, and for a client that is banned already", async () => {
    const store = storeWith("edge");
    const banned = counter({ limit: 1, ban: bans(60_000), windowMs: 3_600_000 });
    await verdictOf(store.decide([[banned]]));
    const over = { evalsha: 1, pttl: 1, incrby: 1, decrby: 1, set: 1 };
    expect(await commandsOf(() => verdictOf(store.decide([[banned]])))).toEqual(over);
    const already = { evalsha: 1, pttl: 1, get: 1 };
    expect(await commandsOf(() => verdictOf(store.decide([[banned]])))).toEqual(already);
  });

  it.each(["edge", "store"] as const)(
    "for bans that become longer: two more than for one length, and only for a strike, with the clock %s",
    async (clock) => {
      const store = storeWith(clock);
      const time = clock === "store" ? { time: 1 } : {};
      const quota = counter({ limit: 2, ban: bans(60_000, HOUR), windowMs: HOUR });
      const decide = () => verdictOf(store.decide([[quota]]));
      // The first calls load the scripts.
      await store.adjust([counter()]);
      await store.reset([counter()]);
      await redis.flushall();
      await decide();
      const base = { evalsha: 1, pttl: 1, ...time };
      const strike = { ...base, incrby: 1, decrby: 1, get: 1, set: 2 };
      expect(await commandsOf(decide)).toEqual({ ...base, incrby: 1 });
      expect(await commandsOf(decide)).toEqual(strike);
      expect(await commandsOf(decide)).toEqual({ ...base, get: 1 });
      await redis.del(banKey(quota));
      expect(await commandsOf(decide)).toEqual(strike);
      const [ban, strikes] = banKeys(quota) as [string, string];
      expect(await redis.get(strikes)).toBe("2");
      const [banMs, strikesMs] = [await redis.pttl(ban), await redis.pttl(strikes)];
      expect(banMs).toBeGreaterThan(HOUR - 10_000);
      expect(banMs).toBeLessThanOrEqual(HOUR);
      expect(strikesMs - banMs).toBeGreaterThan(HOUR - 10_000);
      expect(strikesMs).toBeLessThanOrEqual(2 * HOUR);
      const adjusted = () => store.adjust([quota]);
      expect(await commandsOf(adjusted)).toEqual({ ...base, incrby: 1 });
      expect(await commandsOf(() => store.reset([quota]))).toEqual({ evalsha: 1, ...time, del: 1 });
      expect(await redis.dbsize()).toBe(0);
      // A ban that began when the rule had one length lasts on.
      const oneLength = { ...quota, limit: 0, ceiling: 0, ban: bans(60_000) };
      await verdictOf(store.decide([[oneLength]]));
      expect(await commandsOf(decide)).toEqual({ ...base, get: 1 });
    },
  );

  it("for slots: taken, denied, checked, renewed, and given back", async () => {
    const store = storeWith("edge");
    const all = counter({ limit: 2 });
    const slot = (id: number) => ({ ...all, slot: id });
    const give = (id: number) =>
      commandsOf(() => store.adjust([], undefined, [{ counter: slot(id), quota: 1, window: 0 }]));
    await verdictOf(store.decide([[slot(1)]]));
    const decide = (demand: Demand) => commandsOf(() => verdictOf(store.decide([[demand]])));
    const read = { evalsha: 1, hgetall: 1 };
    const taken = { ...read, hset: 1, pexpire: 1 };
    expect(await decide({ ...slot(0), checkOnly: true })).toEqual(read);
    expect(await decide(slot(2))).toEqual(taken);
    expect(await decide(slot(3))).toEqual(read);
    const renewed = await commandsOf(() => store.adjust([{ ...slot(1), cost: 0 }]));
    expect(renewed).toEqual(taken);
    expect(await give(1)).toEqual({ evalsha: 1, hdel: 1 });
    expect(await give(2)).toEqual({ evalsha: 1, hdel: 1 });
    expect(await redis.exists(all.key)).toBe(0);
  });

  it("for slots in one call: read once, taken one by one, returned together", async () => {
    const store = storeWith("edge");
    const all = counter({ limit: 9 });
    const slots = [1, 2, 3].map((slot) => ({ ...all, slot }));
    const unused = slots.map((each) => ({ counter: each, quota: 1, window: 0 }));
    const next = { ...all, slot: 4 };
    await verdictOf(store.decide([[slots[0] as Demand]]));
    await store.adjust([], undefined, unused);
    for (const each of slots) await verdictOf(store.decide([[each]]));
    const decide = () => verdictOf(store.decide([[next]], undefined, unused));
    const expected = { evalsha: 1, hgetall: 1, hset: 1, pexpire: 1, hdel: 1 };
    expect(await commandsOf(decide)).toEqual(expected);
    expect(await redis.hkeys(all.key)).toEqual(["4"]);
  });

  it("for an adjustment, and for a reset", async () => {
    const store = storeWith("edge");
    const quota = counter({ windowMs: 3_600_000, cost: 2 });
    await store.adjust([quota]);
    await store.reset([quota]);
    expect(await commandsOf(() => store.adjust([quota]))).toEqual(opened);
    expect(await commandsOf(() => store.adjust([quota]))).toEqual(within);
    expect(await commandsOf(() => store.reset([quota]))).toEqual({ evalsha: 1, del: 1 });
    const banned = { ...quota, ban: bans(60_000) };
    expect(await commandsOf(() => store.reset([banned]))).toEqual({ evalsha: 1, del: 1 });
  });

  it.each(["edge", "store"] as const)(
    "for a reset of many counters: one DEL for each thousand keys, with the clock %s",
    async (clock) => {
      const store = storeWith(clock);
      const time = clock === "store" ? { time: 1 } : {};
      const banned = { ban: bans(60_000), windowMs: HOUR, limit: 1 };
      const counters = Array.from({ length: 400 }, () => counter(banned));
      for (const _ of [1, 2]) await verdictOf(store.decide(counters.map((each) => [each])));
      await store.reset([counter()]);
      expect(await redis.dbsize()).toBe(800);
      // Each counter has six keys: its count, its ban and its strikes, in both modes.
      const commands = await commandsOf(() => store.reset(counters));
      expect(commands).toEqual({ evalsha: 1, ...time, del: 3 });
      expect(await redis.dbsize()).toBe(0);
    },
  );
});

describe("a flood of made-up keys", () => {
  it("stores nothing after another rule, with the address as key, has denied", async () => {
    const store = storeWith("edge");
    const address = counter({ limit: 3, windowMs: HOUR });
    for (let made = 0; made < 50; made++) {
      await verdictOf(store.decide([[counter({ limit: 1000, windowMs: HOUR }), address]]));
    }
    // Redis has four keys: the address, and the three made-up keys whose requests were admitted.
    expect(await redis.dbsize()).toBe(4);
  });

  it.runIf(server.kind === "redis-server")("takes about 180 bytes for each key", async () => {
    const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    const before = await used();
    const keys = 5000;
    const store = storeWith("edge");
    for (let made = 0; made < keys; made += 50) {
      const counters = Array.from({ length: 50 }, () => counter({ limit: 9, windowMs: HOUR }));
      await verdictOf(store.decide(counters.map((each) => [each])));
    }
    const bytesEach = ((await used()) - before) / keys;
    expect(bytesEach).toBeGreaterThan(120);
    expect(bytesEach).toBeLessThan(260);
    expect(await redis.dbsize()).toBe(keys);
  });
});

describe("a sliding window of 60 sub-windows", () => {
  it.each([
    ["a limit of 60", 60, 140, 320],
    ["a limit of a million", 1_000_000, 400, 550],
    ["the highest counts", Number.MAX_SAFE_INTEGER, 1000, 1200],
  ])("takes few bytes with %s", async (_, quota, valueBytes, allBytes) => {
    const store = storeWith("edge");
    const each = counter({ subWindows: 60, windowMs: 1000, cost: Math.ceil(quota / 61) });
    const start = Math.ceil(Date.now() / HOUR) * HOUR;
    for (let second = 0; second < 61; second++) await store.adjust([each], start + 1000 * second);
    expect((await redis.get(each.key))?.split(",")).toHaveLength(61);
    expect(await redis.strlen(each.key)).toBeLessThanOrEqual(valueBytes);
    if (server.kind !== "redis-server") return;
    // With the key, and with the space that Redis leaves free behind a text.
    expect(await redis.memory("USAGE", each.key)).toBeLessThanOrEqual(allBytes);
  });
});

describe.each(["store", "edge"] as const)("the scripts with the clock %s", (clock) => {
  const store = storeWith(clock);
  // With the clock of isolates, the key must outlive the window of an isolate whose clock is behind.
  const graceMs = clock === "edge" ? 30_000 : 1000;

  it("decides two rules with three windows in one REST call", async () => {
    const counters = [counter(), counter(), counter({ windowMs: 3_600_000 })];
    await verdictOf(store.decide([counters]));
    const before = rest.calls();
    await verdictOf(store.decide([counters]));
    expect(rest.calls() - before).toBe(1);
  });

  it("changes no counter if one of three denies", async () => {
    // Each window lasts an hour, so that none ends between the two decisions.
    const counters = [{}, {}, { limit: 1 }].map((each) => counter({ windowMs: HOUR, ...each }));
    await verdictOf(store.decide([counters]));
    const before = await snapshot();
    const { groups } = await verdictOf(store.decide([counters]));
    expect(groups[0]?.admitted).toBe(false);
    expect(await snapshot()).toEqual(before);
  });

  it("creates no key for a denied request", async () => {
    await verdictOf(store.decide([[counter(), counter({ limit: 0 })]]));
    await verdictOf(store.decide([[counter(), counter({ limit: 2, cost: 3 })]]));
    expect(await redis.keys("*")).toEqual([]);
  });

  it("keeps every key for a moment after its window, whether or not more requests follow", async () => {
    // On a busy machine, the key of a shorter window could expire before the test reads it.
    const counters = [10_000, 60_000, 52 * 604_800_000].map((windowMs) => counter({ windowMs }));
    const { groups } = await verdictOf(store.decide([counters]));
    for (const [index, { key }] of counters.entries()) {
      const [stored] = await redis.keys(`${key}:*`);
      const expiresAt = await redis.pexpiretime(stored as string);
      const ttl = await redis.pttl(stored as string);
      const rest = groups[0]?.tallies[index]?.resetMs as number;
      expect(ttl).toBeGreaterThan(0);
      expect(ttl).toBeLessThanOrEqual(rest + graceMs);
      expect(ttl).toBeGreaterThan(rest + graceMs - 10_000);
      await verdictOf(store.decide([[counters[index] as Demand]]));
      expect(await redis.pexpiretime(stored as string)).toBe(expiresAt);
    }
  });

  it("keeps the counts of sub-windows until the last of them does not count any more", async () => {
    const each = counter({ limit: 9, subWindows: 10, windowMs: HOUR });
    const { groups } = await verdictOf(store.decide([[{ ...each, cost: 2 }]]));
    const tally = groups[0]?.tallies[0];
    const lastsMs = tally?.resetMs as number;
    expect(lastsMs).toBeGreaterThan(10 * HOUR);
    const ttl = await redis.pttl(each.key);
    expect(ttl).toBeLessThanOrEqual(lastsMs + graceMs);
    expect(ttl).toBeGreaterThan(lastsMs + graceMs - 10_000);
    expect(await redis.get(each.key)).toBe(`${tally?.ring?.window}:2`);
    // Counts after the oldest one are stored, and those before it are not.
    const window = (tally?.ring?.window as number) - 3;
    await redis.set(each.key, `${window}:1,0,4,0`);
    await verdictOf(store.decide([[each]]));
    expect(await redis.get(each.key)).toBe(`${window + 3}:1,0,0,1,0,4`);
  });

  it("keeps a counter that rolls over until later windows have repaid it", async () => {
    const windowMs = 3_600_000;
    const hourly = counter({ limit: 10, ceiling: 40, cost: 25, rollsOver: true, windowMs });
    const { groups } = await verdictOf(store.decide([[hourly]]));
    const reset = groups[0]?.tallies[0]?.resetMs as number;
    const ttl = await redis.pttl(hourly.key);
    expect(ttl).toBeLessThanOrEqual(reset + 2 * windowMs + graceMs);
    expect(ttl).toBeGreaterThan(reset + 2 * windowMs);
  });

  it("keeps a counter that rolls over until a lowered limit has repaid it, with one command more", async () => {
    const windowMs = 3_600_000;
    const hourly = counter({ limit: 10, ceiling: 40, cost: 40, rollsOver: true, windowMs });
    await verdictOf(store.decide([[hourly]]));
    const lowered = { ...hourly, limit: 2 };
    const value = (await redis.get(hourly.key)) as string;
    const { groups } = await verdictOf(store.decide([[lowered]]));
    const reset = groups[0]?.tallies[0]?.resetMs as number;
    const ttl = await redis.pttl(hourly.key);
    expect(ttl).toBeLessThanOrEqual(reset + 19 * windowMs + graceMs);
    expect(ttl).toBeGreaterThan(reset + 19 * windowMs);
    expect(await redis.get(hourly.key)).toBe(value.replace(/:10$/, ":2"));
    const time = await redis.pexpiretime(hourly.key);
    await verdictOf(store.decide([[lowered]]));
    await verdictOf(store.decide([[{ ...lowered, cost: 0, limit: 1 }]]));
    await store.adjust([{ ...lowered, cost: 0, limit: 1 }]);
    expect(await redis.pexpiretime(hourly.key)).toBe(time);
  });

  it("keeps counting after SCRIPT FLUSH, and repeats a call only if Redis lacks the script", async () => {
    const quota = counter({ limit: 2, windowMs: 3_600_000 });
    const before = rest.calls();
    await verdictOf(store.decide([[quota]]));
    await verdictOf(store.decide([[quota]]));
    expect(rest.calls() - before).toBe(3);
    await redis.script("FLUSH");
    const { groups } = await verdictOf(store.decide([[quota]]));
    expect(groups[0]).toMatchObject({ admitted: false, tallies: [{ count: 2 }] });
  });
});

describe.each(["store", "edge"] as const)("a key of another type, with the clock %s", (clock) => {
  const store = storeWith(clock);
  const hour = 3_600_000;
  const plain = (fields: Partial<Demand> = {}) => counter({ windowMs: hour, ...fields });
  const rolling = (fields: Partial<Demand> = {}) =>
    plain({ limit: 5, ceiling: 20, rollsOver: true, ...fields });
  const sliding = () => plain({ subWindows: 10 });

  /** Stores a list under the counter's key. */
  async function occupy({ key, rollsOver }: Demand): Promise<void> {
    const window = Math.floor(Date.now() / hour);
    await redis.rpush(rollsOver ? key : `${key}:${window}`, "something else");
    if (!rollsOver) await redis.rpush(`${key}:${window + 1}`, "something else");
  }

  const kinds = { plain, rolling };
  const cases = (["plain", "rolling"] as const).flatMap((first) =>
    (["plain", "rolling"] as const).flatMap((second) =>
      [false, true].map((isOpen) => ({ first, second, isOpen })),
    ),
  );

  it.each(cases)(
    "leaves a $first counter uncharged if a $second key is of another type; charged before: $isOpen",
    async ({ first, second, isOpen }) => {
      const [charged, foreign] = [kinds[first]({ cost: 2 }), kinds[second]()];
      if (isOpen) await verdictOf(store.decide([[charged]]));
      await occupy(foreign);
      const before = await snapshot();
      const refused = { failure: "error-reply", message: expect.stringContaining("WRONGTYPE") };
      await expect(verdictOf(store.decide([[charged, foreign]]))).rejects.toMatchObject(refused);
      expect(await snapshot(), "one group").toEqual(before);
      for (const cost of [3, -1, -9]) {
        const adjusted = [charged, foreign].map((each) => ({ ...each, cost }));
        await expect(store.adjust(adjusted)).rejects.toMatchObject(refused);
        expect(await snapshot(), `an adjustment by ${cost}`).toEqual(before);
      }
    },
  );

  it("fails alone in a call with other entries", async () => {
    const { url, token } = rest;
    const entries = createUpstashEntries({ url, token, clock, timeoutMs: 10_000 });
    const nothing = { now: Date.now(), unused: [], adjusted: [], removed: [] };
    const deciding = (demand: Demand, times = 1) => ({ ...nothing, group: [demand], times });
    const [one, foreign, rolls, adjusted] = [plain(), plain(), rolling(), plain({ cost: 7 })];
    await occupy(foreign);
    const answers = await entries.run([
      deciding(one),
      deciding(foreign),
      deciding(foreign, 3),
      deciding(rolls, 2),
      { ...nothing, adjusted: [foreign], times: 1 },
      { ...nothing, adjusted: [adjusted], times: 1 },
      deciding(one),
    ]);
    const failed = { failure: "error-reply", message: expect.stringContaining("WRONGTYPE") };
    expect(answers.map((each) => each.map(({ adjusted, decided }) => adjusted ?? decided))).toEqual(
      [
        [expect.objectContaining({ admitted: true })],
        [expect.objectContaining(failed)],
        [1, 2, 3].map(() => expect.objectContaining(failed)),
        [1, 2].map(() => expect.objectContaining({ admitted: true })),
        [expect.objectContaining(failed)],
        [[expect.objectContaining({ count: 7 })]],
        [
          expect.objectContaining({
            admitted: true,
            tallies: [expect.objectContaining({ count: 2 })],
          }),
        ],
      ],
    );
  });

  type ForeignValue = [string, () => Demand, (demand: Demand) => Promise<unknown>];
  it.each<ForeignValue>([
    ["a list under a count", plain, (each) => occupy(each)],
    ["a list under a count that rolls over", rolling, (each) => occupy(each)],
    [
      "a text under a count",
      plain,
      ({ key }) => redis.hset(`${key}:${Math.floor(Date.now() / hour)}`, "a", 1),
    ],
    ["another text under a count that rolls over", rolling, ({ key }) => redis.set(key, "text")],
    ...["9".repeat(20), "9".repeat(400)].flatMap((large): ForeignValue[] => [
      [`a count of ${large.length} digits`, rolling, ({ key }) => redis.set(key, `0:${large}:5`)],
      [`a window of ${large.length} digits`, sliding, ({ key }) => redis.set(key, `${large}:3`)],
      [
        `a count of ${large.length} digits in a sub-window`,
        sliding,
        ({ key }) => redis.set(key, `${Math.floor(Date.now() / hour)}:0,${large}`),
      ],
    ]),
    ["a text under slots", () => plain({ slot: 1 }), ({ key }) => redis.set(key, "text")],
    [
      "a list under a ban",
      () => plain({ ban: bans(1000) }),
      (each) => redis.rpush(banKey(each), "a"),
    ],
    [
      "a list under strikes",
      () => plain({ ban: bans(1, 2) }),
      (each) => redis.rpush(banKeys(each)[1] ?? "", "a"),
    ],
  ])("never fails a call as a whole: %s", async (_, kind, store) => {
    const { url, token } = rest;
    const entries = createUpstashEntries({ url, token, clock, timeoutMs: 10_000 });
    const foreign = kind();
    await store(foreign);
    const [alone] = await entries.run([
      { now: Date.now(), unused: [], adjusted: [], removed: [], group: [foreign], times: 1 },
    ]);
    const decided = alone?.[0]?.decided;
    if (decided instanceof Error) expect(decided).toMatchObject({ failure: "error-reply" });
    else expect(decided).toMatchObject({ admitted: true });
  });

  it.each(["text", "3.5", "-5", " 5", "0x10", "", "9223372036854775807", "99999999999999999999"])(
    "keeps the foreign text %j under a count, and fails nobody else",
    async (text) => {
      const { url, token } = rest;
      const entries = createUpstashEntries({ url, token, clock, timeoutMs: 10_000 });
      const [foreign, own] = [plain({ cost: 2 }), plain()];
      const windows = [0, 1].map((later) => Math.floor(Date.now() / hour) + later);
      const keys = windows.map((window) => `${foreign.key}:${window}`);
      for (const key of keys) await redis.set(key, text);
      const entry = { now: Date.now(), unused: [], adjusted: [], removed: [], times: 1 };
      const unused = windows.map((window) => ({ counter: foreign, quota: 9, window }));
      for (const work of [
        { group: [foreign] },
        { group: [foreign], times: 4 },
        { group: [own, foreign] },
        { group: [{ ...foreign, cost: 0 }] },
        { group: [{ ...foreign, block: 5 }] },
        { adjusted: [foreign] },
        { adjusted: [{ ...foreign, cost: -1 }] },
        { adjusted: [own, { ...foreign, cost: 0 }] },
      ]) {
        const [, second] = await entries.run([
          { ...entry, ...work },
          { ...entry, group: [own] },
        ]);
        expect(second?.[0]?.decided).toMatchObject({ admitted: true });
        await store.reset([own]);
        // An adjustment lowers a count that is too high for JavaScript.
        if (text.startsWith("92") && "adjusted" in work) continue;
        for (const key of keys) expect(await redis.get(key)).toBe(text);
      }
      await entries.run([{ ...entry, unused }]);
      const [decided] = await entries.run([{ ...entry, group: [own] }]);
      expect(decided?.[0]?.decided).toMatchObject({ tallies: [{ count: 1 }] });
    },
  );

  it("leaves a block uncharged", async () => {
    const [block, foreign] = [plain({ limit: 800, block: 50 }), plain()];
    await occupy(foreign);
    const before = await snapshot();
    await expect(verdictOf(store.decide([[block, foreign]]))).rejects.toThrow();
    expect(await snapshot()).toEqual(before);
  });

  it("takes no unused quota back, and no decision fails because of that", async () => {
    const [charged, foreign] = [plain(), plain()];
    await occupy(foreign);
    const window = Math.floor(Date.now() / hour);
    const unused = [{ counter: foreign, quota: 1, window }];
    const { groups } = await verdictOf(store.decide([[charged]], undefined, unused));
    expect(groups).toMatchObject([{ admitted: true, tallies: [{ count: 1 }] }]);
  });

  it.each(["plain", "rolling"] as const)(
    "leaves only the shadow group undecided if its counter is %s",
    async (kind) => {
      const shadow = true;
      const [charged, after, foreign] = [plain(), plain({ shadow }), kinds[kind]({ shadow })];
      const beside = plain({ shadow });
      await occupy(foreign);
      for (const count of [1, 2]) {
        const answers = await Promise.allSettled(
          store.decide([[charged], [beside, foreign], [after]]),
        );
        expect(answers).toMatchObject([
          { value: { admitted: true, tallies: [{ count }] } },
          { reason: { failure: "error-reply" } },
          { value: { admitted: true, tallies: [{ count }] } },
        ]);
      }
      const [read] = (await verdictOf(store.decide([[{ ...beside, cost: 0 }]]))).groups;
      expect(read?.tallies[0]?.count).toBe(0);
    },
  );
});

describe("a stored key", () => {
  it("is the counter's key with the number of the window, which is 28333335 for the time 1700000100", async () => {
    const alice = counter({ key: "weir:search:1m:alice" });
    await verdictOf(storeWith("edge").decide([[alice]], 1_700_000_100_000));
    expect(await redis.keys("*")).toEqual(["weir:search:1m:alice:28333335"]);
  });

  it("contains the count as an integer, which GET shows", async () => {
    const alice = counter({ key: "weir:search:1m:alice", cost: 3 });
    await verdictOf(storeWith("edge").decide([[alice]], 1_700_000_100_000));
    expect(await redis.get("weir:search:1m:alice:28333335")).toBe("3");
  });

  it("has the window number by Redis's clock if the clock is store", async () => {
    const alice = counter({ key: "weir:search:1m:alice" });
    const { now } = await verdictOf(storeWith("store").decide([[alice]], 1_700_000_100_000));
    const [seconds] = await redis.time();
    expect(Math.abs(now / 1000 - Number(seconds))).toBeLessThan(60);
    expect(await redis.keys("*")).toEqual([`weir:search:1m:alice:${Math.floor(now / 60_000)}`]);
  });
});

/** Reads every key with its value and the time at which it expires. */
async function snapshot(): Promise<Record<string, string>> {
  const keys = (await redis.keys("*")).sort();
  const entries = keys.map(async (key) => {
    const isText = (await redis.type(key)) === "string";
    const value = isText ? (await redis.getBuffer(key))?.toString("hex") : "a list";
    return [key, `${value} until ${await redis.pexpiretime(key)}`];
  });
  return Object.fromEntries(await Promise.all(entries));
}
