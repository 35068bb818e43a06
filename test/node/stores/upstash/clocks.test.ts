import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startTestRedis } from "../../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import { type Demand, windowAt } from "../../../../src/engine/counter.ts";
import { createUpstashStore } from "../../../../src/stores/upstash/upstash-store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { propertyRuns } from "../../../suite/runs.ts";
import { verdictOf } from "../../../suite/verdict.ts";

// Isolates whose clocks differ count in one Redis, with the clock `edge`. The clock of Redis is moved by shortening the
// life of every key. This file has its own server, because that concerns all keys.
const server = await startTestRedis();
const rest = await startUpstashRest({ redis: server });
const redis = new Redis(server.port, server.host);
const { url, token } = rest;
const store = createUpstashStore({ url, token, clock: "edge", timeoutMs: 10_000 });

afterAll(async () => {
  redis.disconnect();
  await rest.stop();
  await server.stop();
});

beforeEach(async () => {
  await redis.flushall();
});

const WINDOW_MS = 20_000;
const END = 85_000_000 * WINDOW_MS;

/** Lets time pass in Redis. */
async function pass(ms: number): Promise<void> {
  for (const key of await redis.keys("*")) {
    await redis.pexpire(key, (await redis.pttl(key)) - ms);
  }
}

async function take(demand: Demand, now: number) {
  const { groups } = await verdictOf(store.decide([[demand]], now));
  return groups[0] as (typeof groups)[number];
}

describe("isolates whose clocks differ by seconds", () => {
  it("share the count of a window, although the clock that is ahead has set its expiry", async () => {
    const quota = counter({ limit: 3, windowMs: WINDOW_MS });
    for (const _ of [1, 2]) expect(await take(quota, END - 10)).toMatchObject({ admitted: true });
    // 9.9 seconds later, a clock that is 10 seconds behind the first one has not reached the end of the window.
    await pass(9900);
    expect(await take(quota, END - 110)).toMatchObject({ admitted: true, tallies: [{ count: 3 }] });
    expect(await take(quota, END - 110)).toMatchObject({ admitted: false });
    // By the first clock, the next window has begun.
    expect(await take(quota, END + 9890)).toMatchObject({
      admitted: true,
      tallies: [{ count: 1 }],
    });
  });

  it("share the debt of a counter that rolls over", async () => {
    const quota = counter({ limit: 3, ceiling: 6, rollsOver: true, windowMs: WINDOW_MS, cost: 5 });
    await take(quota, END - 10);
    await pass(WINDOW_MS + 9900);
    const late = { ...quota, cost: 1 };
    expect(await take(late, END + WINDOW_MS - 110)).toMatchObject({ tallies: [{ count: 3 }] });
  });

  it.each([[[60_000]], [[60_000, 120_000]]])(
    "see the same end of a ban with the lengths %j, which Redis determines",
    async (lengthsMs) => {
      const quota = counter({ limit: 0, windowMs: WINDOW_MS, ban: bans(...lengthsMs) });
      await take(quota, END);
      await pass(20_000);
      for (const now of [END - 10_000, END + 20_000, END + 70_000]) {
        const [tally] = (await take(quota, now)).tallies;
        expect(tally?.banMs).toBeGreaterThan(35_000);
        expect(tally?.banMs).toBeLessThanOrEqual(40_000);
      }
    },
  );

  it("keep a slot until its end by the clock of the isolate that asks", async () => {
    const slots = counter({ limit: 1, windowMs: 60_000 });
    await take({ ...slots, slot: 1 }, END);
    expect(await take({ ...slots, slot: 2 }, END + 29_000)).toMatchObject({ admitted: false });
    expect(await take({ ...slots, slot: 2 }, END - 29_000)).toMatchObject({ admitted: false });
    await pass(29_000);
    // The first isolate renews its slot, and the other one takes a place when this slot is given back.
    const [renewed] = await store.adjust([{ ...slots, slot: 1, cost: 0 }], END + 29_000);
    expect(renewed?.count).toBe(1);
    expect(await take({ ...slots, slot: 2 }, END + 58_000)).toMatchObject({ admitted: false });
  });

  it("never exceed the limit of a window, in random order", async () => {
    const step = fc.record({
      passMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9000 })),
      isolate: fc.nat(2),
      cost: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.integer({ min: -14_000, max: 14_000 }), { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 10, maxLength: 30 }),
        async (limit, skewsMs, steps) => {
          await redis.flushall();
          const quota = counter({ limit, windowMs: WINDOW_MS });
          const used = new Map<number, number>();
          let time = END;
          for (const { passMs, isolate, cost } of steps) {
            time += passMs;
            if (passMs > 0) await pass(passMs);
            const now = time + (skewsMs[isolate] as number);
            const { index } = windowAt(now, quota);
            const before = used.get(index) ?? 0;
            const { admitted } = await take({ ...quota, cost }, now);
            expect(admitted).toBe(before + cost <= limit);
            if (admitted) used.set(index, before + cost);
          }
        },
      ),
      propertyRuns(400),
    );
  });
});
