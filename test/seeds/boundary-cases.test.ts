import { expect, it } from "vitest";
import { defineConfig } from "../../src/config/index.ts";

import { figuresOf, HOUR, onEveryStore } from "./on-every-store.ts";

// docs/how-it-counts.md has a table of boundary cases. These tests check the table with the smallest
// and largest values of each field.

const WEEK = 7 * 24 * HOUR;
const LARGEST = 999_999_999_999_999;

onEveryStore("a boundary case", (open) => {
  const quota = { name: "quota", key: "global", limit: 5, window: "1m" };

  it("a cost of 0 is admitted below the limit and at the limit, and charges nothing", async () => {
    const system = open([quota]);
    expect(await system.left(0)).toEqual([5]);
    expect(await system.take(0, 5)).toEqual([0]);
    expect(await system.left(0)).toEqual([0]);
    expect(await open([{ ...quota, limit: 0 }]).left(0)).toEqual([0]);
  });

  it("a cost above the limit is always denied, and charges nothing", async () => {
    const system = open([{ ...quota, cost: 6 }]);
    const denied = await system.decide(18);
    expect(denied).toMatchObject({ outcome: "limited" });
    // No later window admits the request, so the denial names no time.
    expect(denied).not.toHaveProperty("retryAfterMs");
    expect(await system.take(18, 5)).toEqual([0]);
  });

  it("a cost above the share of one shard is denied, even if the limit is not used up", async () => {
    const system = open([{ ...quota, limit: 10, shards: 5 }]);
    expect(await system.take(0, 3)).toBe("denied");
    expect(await system.take(0, 2)).toEqual([0]);
  });

  it("a cost of 1 is admitted after a cost of 5 was denied", async () => {
    const system = open([quota]);
    await system.take(0, 1);
    expect(await system.take(0, 5)).toBe("denied");
    expect(await system.take(0, 1)).toEqual([3]);
  });

  it("a limit of 0 denies every request, in every window", async () => {
    const system = open([{ ...quota, limit: 0 }]);
    // The Worker denies these requests without the store, by its own clock.
    const denial = await system.decide(0);
    expect(denial).toMatchObject({ outcome: "limited" });
    expect(denial).not.toHaveProperty("retryAfterMs");
    expect(await system.decide(60)).toMatchObject({ outcome: "limited" });
  });

  it("a window of 1 s ends at each second", async () => {
    const system = open([{ ...quota, window: "1s" }]);
    expect(await system.admitted(7, 6)).toBe(5);
    expect(await system.decide(7.999)).toMatchObject({ outcome: "limited", retryAfterMs: 1 });
    expect(await system.admitted(8, 6)).toBe(5);
  });

  it("a window of 52 weeks ends after 364 days", async () => {
    const system = open([{ ...quota, window: "52w" }]);
    const { resetMs } = figuresOf(await system.decide(0));
    expect(resetMs).toBeLessThanOrEqual(52 * WEEK * 1000);
    const lastSecond = resetMs / 1000 - 1;
    expect(await system.left(lastSecond)).toEqual([4]);
    expect(await system.left(lastSecond + 1)).toEqual([5]);
  });

  it("a clock that steps back into an earlier window continues with the quota used in it", async () => {
    const system = open([quota]);
    await system.take(59, 5);
    await system.take(60.5, 2);
    expect(await system.take(59.9, 1)).toBe("denied");
    expect(await system.left(60.5)).toEqual([3]);
  });

  it("a clock that steps back does not grant quota twice if quota rolls over", async () => {
    const system = open([{ ...quota, capacity: 8 }]);
    expect(await system.take(0, 8)).toEqual([0]);
    expect(await system.take(60, 5)).toEqual([0]);
    expect(await system.take(59, 1)).toBe("denied");
    expect(await system.take(60, 1)).toBe("denied");
    expect(await system.left(120)).toEqual([5]);
  });

  it("the largest limit is counted exactly", async () => {
    const system = open([{ ...quota, limit: LARGEST }]);
    expect(await system.take(0, LARGEST - 1)).toEqual([1]);
    expect(await system.take(0, 1)).toEqual([0]);
    expect(await system.take(0, 1)).toBe("denied");
  });

  it("the largest capacity is counted exactly", async () => {
    const system = open([{ ...quota, limit: LARGEST - 1, capacity: LARGEST, maxReserved: 1 }]);
    expect(await system.take(0, LARGEST)).toEqual([0]);
    expect(await system.take(0, 1)).toBe("denied");
    expect(await system.take(0, 1, {}, { reserve: true })).toEqual([0]);
    expect(await system.left(60)).toEqual([LARGEST - 2]);
  });

  it("one of 10,000 rules counts in the same way as a single rule", async () => {
    const rules = Array.from({ length: 10_000 }, (_, index) => {
      return { ...quota, name: `r${index}`, match: { paths: [`/${index}`] } };
    });
    const system = open(rules);
    expect(await system.admitted(0, 6, { path: "/9999" })).toBe(5);
    expect(await system.left(0, { path: "/0" })).toEqual([5]);
  });

  it("a rule with eight windows charges all of them or none", async () => {
    const lengths = ["1s", "10s", "1m", "10m", "1h", "1d", "1w", "52w"];
    const limits = lengths.map((window, index) => ({ limit: 9 - index, window }));
    const system = open([{ name: "eight", key: "global", limits }]);
    expect(await system.admitted(0, 5)).toBe(2);
    expect(await system.left(0)).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
  });
});

it.each<[string, object, RegExp]>([
  ["a capacity below the limit", { limit: 100, window: "1h", capacity: 99 }, /capacity/],
  ["a capacity beside a limit of 0", { limit: 0, window: "1h", capacity: 9 }, /capacity/],
  ["maxReserved beside a limit of 0", { limit: 0, window: "1h", maxReserved: 9 }, /maxReserved/],
  ["a window below a second", { limit: 5, window: 0 }, /window/],
  ["a window above 52 weeks", { limit: 5, window: "53w" }, /window/],
  ["a limit above the largest", { limit: LARGEST + 1, window: "1m" }, /limit/],
  ["more shards than the limit", { limit: 5, window: "1m", shards: 6 }, /shards/],
  [
    "nine windows",
    { limits: Array.from({ length: 9 }, (_, index) => ({ limit: 5, window: index + 1 })) },
    /limits/,
  ],
])("refuses %s", (_, fields, place) => {
  expect(() => defineConfig({ rules: [{ name: "quota", ...fields }] })).toThrow(place);
});

it("refuses 10,001 rules", () => {
  const rules = Array.from({ length: 10_001 }, (_, index) => {
    return { name: `r${index}`, limit: 5, window: "1m" };
  });
  expect(() => defineConfig({ rules })).toThrow(/rules/);
});
