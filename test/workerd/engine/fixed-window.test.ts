import { describe, expect, it } from "vitest";
import { type Counter, storedKey, windowAt } from "../../../src/engine/counter.ts";
import { decideGroup } from "../../../src/engine/fixed-window.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { counter } from "../../suite/counters.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a window", () => {
  it.each([
    ["the 60 s window of 1700000100", 1_700_000_100_000, MINUTE, 0, 28_333_335, 1_700_000_160_000],
    [
      "the last millisecond of that window",
      1_700_000_159_999,
      MINUTE,
      0,
      28_333_335,
      1_700_000_160_000,
    ],
    ["the first of the next window", 1_700_000_160_000, MINUTE, 0, 28_333_336, 1_700_000_220_000],
    ["the 60 s window of 1678900825", 1_678_900_825_000, MINUTE, 0, 27_981_680, 1_678_900_860_000],
    ["a 10 s window", 1_700_000_105_000, 10_000, 0, 170_000_010, 1_700_000_110_000],
    ["a time before the offset", 999, 1000, 1000, -1, 1000],
    ["a time before the epoch", -1, 1000, 0, -1, 0],
    [
      "a day that begins at 17:00 UTC",
      Date.UTC(2024, 0, 2, 16, 59, 59, 999),
      24 * HOUR,
      17 * HOUR,
      19_723,
      Date.UTC(2024, 0, 2, 17),
    ],
  ])("is found for %s", (_, now, windowMs, offsetMs, index, endsAt) => {
    expect(windowAt(now, { windowMs, offsetMs })).toEqual({ index, endsAt });
  });

  it("is the last part of a stored key", () => {
    const alice = counter({ key: "weir:search:1m:alice" });
    expect(storedKey(alice, 1_700_000_100_000)).toBe("weir:search:1m:alice:28333335");
  });
});

describe("a group", () => {
  /** Decides a group whose counters have these counts. */
  function decide(counters: Counter[], counts: number[], now: number) {
    const rows = new Map(
      counters.map((counter, index) => [
        storedKey(counter, now),
        { window: windowAt(now, counter).index, count: counts[index] as number, expiresAt: 1e15 },
      ]),
    );
    const { verdict, writes } = decideGroup(counters, now, (key) => rows.get(key));
    return { ...verdict, written: [...writes.values()].map((row) => row?.count) };
  }

  it("is admitted and charged in all counters if each has quota for it", () => {
    const counters = [counter({ limit: 5 }), counter({ limit: 9, cost: 3 })];
    expect(decide(counters, [4, 6], 0)).toEqual({
      admitted: true,
      tallies: [
        { count: 5, resetMs: MINUTE, banMs: 0 },
        { count: 9, resetMs: MINUTE, banMs: 0 },
      ],
      written: [5, 9],
    });
  });

  it("is denied and charged in no counter if one has no quota for it", () => {
    const counters = [counter({ limit: 5 }), counter({ limit: 9, cost: 3 })];
    expect(decide(counters, [4, 7], 59_999)).toEqual({
      admitted: false,
      tallies: [
        { count: 4, resetMs: 1, banMs: 0 },
        { count: 7, resetMs: 1, banMs: 0 },
      ],
      written: [],
    });
  });
});

// The example quotas of the best-known descriptions of the algorithm.
describe("a well-known quota", () => {
  /** How many of `attempts` requests are admitted, each `stepMs` after the one before. */
  async function admitted(
    quotas: { limit: number; windowMs: number }[],
    attempts: number,
    { from = 0, stepMs = 0 } = {},
    store = createMemoryStore(),
  ) {
    const counters = quotas.map(({ limit, windowMs }) =>
      counter({ key: `${limit}/${windowMs}`, limit, windowMs }),
    );
    let count = 0;
    for (let attempt = 0; attempt < attempts; attempt++) {
      const { groups } = await store.decide([counters], from + attempt * stepMs);
      if (groups[0]?.admitted) count++;
    }
    return count;
  }

  it("of 5 per minute admits five of six", async () => {
    expect(await admitted([{ limit: 5, windowMs: MINUTE }], 6)).toBe(5);
  });

  it("of 5 per minute admits ten in the minute from 00:58", async () => {
    const store = createMemoryStore();
    const quota = [{ limit: 5, windowMs: MINUTE }];
    expect(await admitted(quota, 5, { from: 58_000 }, store)).toBe(5);
    expect(await admitted(quota, 5, { from: 62_000 }, store)).toBe(5);
  });

  it("of 5 per 10 seconds resets at the tenth second", async () => {
    const quota = [{ limit: 5, windowMs: 10_000 }];
    expect(await admitted(quota, 20, { stepMs: 1000 })).toBe(10);
  });

  it("of 20 per minute admits twenty of thirty", async () => {
    expect(await admitted([{ limit: 20, windowMs: MINUTE }], 30)).toBe(20);
  });

  it("of 33 per minute with 2,000 per hour admits 33 a minute, and 1,980 an hour", async () => {
    const quotas = [
      { limit: 33, windowMs: MINUTE },
      { limit: 2000, windowMs: HOUR },
    ];
    expect(await admitted(quotas, 60)).toBe(33);
    expect(await admitted(quotas, 3600, { stepMs: 1000 })).toBe(33 * 60);
  });

  it("of 33 per minute with 1,000 per hour admits 1,000 an hour", async () => {
    const quotas = [
      { limit: 33, windowMs: MINUTE },
      { limit: 1000, windowMs: HOUR },
    ];
    expect(await admitted(quotas, 3600, { stepMs: 1000 })).toBe(1000);
  });
});
