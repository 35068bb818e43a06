import { expect, it } from "vitest";
import { DAY, figuresOf, HOUR, MINUTE, onEveryStore } from "./on-every-store.ts";

// These tests repeat the behaviour of Convex's rate limiter with `kind: "fixed window"`. Its
// options are rate, period, capacity, start, maxReserved and shards.

const ann = { user: "ann" };
const bob = { user: "bob" };
const reserve = { reserve: true };

onEveryStore("rate 100 per hour with capacity 150", (open) => {
  const hourly = { name: "hourly", key: "custom:user", limit: 100, window: "1h", capacity: 150 };

  it("grants 100 in each hour, up to 150", async () => {
    const system = open([hourly]);
    // A client starts with its whole capacity of 150. This request takes 50, so that the rows below
    // start at 100.
    await system.take(0, 50, ann);
    const rows = [];
    for (const [at, cost] of [
      [0, 0],
      [15, 0],
      [30, 15],
      [45, 15],
      [60, 0],
      [90, 30],
      [120, 0],
    ] as const) {
      rows.push([at, await system.take(at * MINUTE, cost, ann)]);
    }
    expect(rows).toEqual([
      [0, [100]],
      [15, [100]],
      [30, [85]],
      [45, [70]],
      [60, [150]],
      [90, [120]],
      [120, [150]],
    ]);
  });

  it("grants the same for each hour without requests", async () => {
    const system = open([{ ...hourly, capacity: 350 }]);
    expect(await system.take(0, 350, ann)).toEqual([0]);
    expect(await system.left(HOUR, ann)).toEqual([100]);
    expect(await system.left(3 * HOUR, ann)).toEqual([300]);
    expect(await system.left(4 * HOUR, ann)).toEqual([350]);
  });
});

onEveryStore("a daily quota of 1000", (open) => {
  const daily = { name: "daily", key: "header:x-api-key", limit: 1000, window: "1d" };
  const key = { headers: { "x-api-key": "k" } };

  it.each(["epoch", "2024-01-01T00:00:00Z"])(
    "resets at midnight UTC with the start %s",
    async (start) => {
      const system = open([{ ...daily, start }]);
      await system.take(6 * HOUR, 1000, key);
      const denied = await system.decide(DAY - 1, key);
      expect(denied).toMatchObject({ outcome: "limited", retryAfterMs: 1000 });
      expect(await system.left(DAY, key)).toEqual([1000]);
    },
  );

  it("returns the time until it resets", async () => {
    const system = open([daily]);
    await system.take(6.5 * HOUR, 1000, key);
    const denied = await system.decide(6.5 * HOUR, key);
    expect(denied).toMatchObject({ outcome: "limited", retryAfterMs: 17.5 * HOUR * 1000 });
  });
});

onEveryStore("500 a day from 9 AM Pacific", (open) => {
  it.each(["2024-01-01T17:00:00Z", "2024-01-01T09:00:00-08:00"])(
    "resets at 17:00 UTC: %s",
    async (start) => {
      const system = open([{ name: "daily", limit: 500, window: "1d", start }]);
      expect(await system.take(17 * HOUR - 1, 500)).toEqual([0]);
      expect(await system.take(17 * HOUR - 1, 1)).toBe("denied");
      expect(await system.take(17 * HOUR, 500)).toEqual([0]);
      expect(figuresOf(await system.decide(17 * HOUR))).toMatchObject({ resetMs: DAY * 1000 });
    },
  );
});

onEveryStore("a spread start", (open) => {
  it("starts windows at a different time for each client, and always at that time", async () => {
    const spread = { key: "custom:user", limit: 100, window: "1h", start: "spread" };
    const system = open([{ name: "hourly", ...spread }]);
    const ends = async (seconds: number) => {
      const users = Array.from({ length: 12 }, (_, index) => ({ user: `user-${index}` }));
      const decisions = await Promise.all(users.map((user) => system.decide(seconds, user)));
      return decisions.map((decision) => figuresOf(decision).resetMs);
    };
    const first = await ends(0);
    expect(new Set(first).size).toBe(12);
    expect(await ends(HOUR)).toEqual(first);
  });
});

onEveryStore("100 free trial sign-ups an hour", (open) => {
  const signUps = { name: "free-trial-sign-up", key: "global", limit: 100, window: "1h" };

  it("are one quota for all clients", async () => {
    const system = open([signUps]);
    expect(await system.take(0, 60, ann)).toEqual([40]);
    expect(await system.take(0, 40, bob)).toEqual([0]);
    const denied = await system.decide(59 * MINUTE, { user: "carol" });
    expect(denied).toMatchObject({ outcome: "limited", retryAfterMs: 60_000 });
  });

  it("are admitted all at once, and again at the start of the next hour", async () => {
    const system = open([signUps]);
    expect(await system.take(HOUR - MINUTE, 100, ann)).toEqual([0]);
    expect(await system.take(HOUR, 100, ann)).toEqual([0]);
  });
});

onEveryStore("1000 LLM requests a minute over 10 shards", (open) => {
  const llm = { name: "llm", key: "global", limit: 1000, window: "1m", shards: 10 };

  it("admits exactly 1000 after enough attempts", async () => {
    const system = open([llm]);
    const cost = { cost: 50 };
    let admitted = 0;
    for (let attempt = 0; attempt < 300 && admitted < 20; attempt++) {
      admitted += await system.admitted(0, 1, {}, cost);
    }
    expect(admitted * cost.cost).toBe(1000);
    expect(await system.admitted(0, 20)).toBe(0);
    expect(await system.admitted(MINUTE, 1)).toBe(1);
  });
});

onEveryStore("rate 100 per hour with capacity 120", (open) => {
  const actions = { name: "actions", key: "custom:user", limit: 100, window: "1h", capacity: 120 };

  it("rolls over a quota of 20 for each user", async () => {
    const system = open([actions]);
    expect(await system.take(0, 120, ann)).toEqual([0]);
    expect(await system.take(HOUR, 80, ann)).toEqual([20]);
    expect(await system.left(2 * HOUR, ann)).toEqual([120]);
    expect(await system.left(2 * HOUR, bob)).toEqual([120]);
  });

  it("returns the time until quota is left again", async () => {
    const system = open([actions]);
    await system.take(0, 120, ann);
    const denied = await system.decide(25 * MINUTE, ann);
    expect(denied).toMatchObject({ outcome: "limited", retryAfterMs: 35 * MINUTE * 1000 });
  });
});

onEveryStore("1000 a minute with maxReserved 200", (open) => {
  const reservable = { name: "jobs", key: "global", limit: 1000, window: "1m", maxReserved: 200 };

  it("reserves at most 200 of the next minute", async () => {
    const system = open([reservable]);
    await system.take(15, 1000);
    expect(await system.take(15, 1)).toBe("denied");
    const reserved = await system.decide(15, {}, { cost: 200, ...reserve });
    expect(reserved).toMatchObject({ outcome: "allowed", reservationDelayMs: 45_000 });
    expect(await system.take(15, 1, {}, reserve)).toBe("denied");
    expect(await system.left(MINUTE)).toEqual([800]);
  });

  it("reserves nothing while quota is left", async () => {
    const system = open([reservable]);
    const reserved = await system.decide(0, {}, reserve);
    expect(reserved).toMatchObject({ outcome: "allowed", reservationDelayMs: 0 });
  });
});

onEveryStore("retryAfterMs = ts + period * ceil(-value / rate) - now", (open) => {
  const rate10 = { name: "ten", key: "custom:user", limit: 10, window: "1m", capacity: 20 };

  // At second 0, a request takes `used` of the capacity of 20. At second `at`, a request with
  // `cost` would leave `value`, which is below zero.
  it.each([
    { used: 20, at: 0, cost: 1, value: -1, retryAfter: 60 },
    { used: 20, at: 45, cost: 10, value: -10, retryAfter: 15 },
    { used: 20, at: 45, cost: 11, value: -11, retryAfter: 75 },
    { used: 20, at: 59.5, cost: 20, value: -20, retryAfter: 60.5 },
    { used: 20, at: 70, cost: 12, value: -2, retryAfter: 50 },
    { used: 5, at: 30, cost: 16, value: -1, retryAfter: 30 },
    { used: 15, at: 61, cost: 17, value: -2, retryAfter: 59 },
  ])("%o", async ({ used, at, cost, retryAfter }) => {
    const retryAfterMs = retryAfter * 1000;
    const plain = open([rate10]);
    await plain.take(0, used, ann);
    const denied = await plain.decide(at, ann, { cost });
    expect(denied).toMatchObject({ outcome: "limited", retryAfterMs });

    const reserving = open([{ ...rate10, maxReserved: 20 }]);
    await reserving.take(0, used, ann);
    const reserved = await reserving.decide(at, ann, { cost, ...reserve });
    expect(reserved).toMatchObject({ outcome: "allowed", reservationDelayMs: retryAfterMs });
  });
});
