import { describe, expect, it } from "vitest";
import { type Demand, storedKey, windowAt } from "../../../src/engine/counter.ts";
import {
  adjustGroup,
  countFitting,
  decideGroup,
  EXPIRY_GRACE_MS,
} from "../../../src/engine/fixed-window.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { counter } from "../../suite/counters.ts";
import { verdictOf } from "../../suite/verdict.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a group", () => {
  /** Decides a group whose counters have these counts. */
  function decide(counters: Demand[], counts: number[], now: number) {
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

  it("of cost 0 writes nothing, although a lowered limit repays the debt after the row expires", () => {
    const lowered = counter({ limit: 10, ceiling: 20, rollsOver: true });
    const debt = { window: 0, count: 150, expiresAt: 2 * MINUTE };
    const written = (cost: number) => {
      const { writes } = decideGroup([{ ...lowered, cost }], 0, () => debt);
      return [...writes.values()];
    };
    expect(written(1)).toEqual([{ ...debt, expiresAt: 15 * MINUTE + EXPIRY_GRACE_MS }]);
    expect(written(0)).toEqual([]);
  });

  it("stores the debt under a limit of 0 for one window, because no window repays the debt", () => {
    const zero = { ...counter({ limit: 0, rollsOver: true }), cost: 7 };
    const { writes } = adjustGroup([zero], 0, () => undefined);
    expect([...writes.values()]).toEqual([
      { window: 0, count: 7, expiresAt: MINUTE + EXPIRY_GRACE_MS },
    ]);
  });
});

describe("the number of equal requests that are admitted", () => {
  const fitting = (...counters: Demand[]) => countFitting(counters, 9, 0, () => USED);
  const USED = { window: 0, count: 4, expiresAt: HOUR };

  it("is the number for which the counter with the least quota has quota", () => {
    expect(fitting(counter({ limit: 15, cost: 3 }))).toBe(3);
    expect(fitting(counter({ limit: 15, cost: 3 }), counter({ limit: 6 }))).toBe(2);
    expect(fitting(counter({ limit: 15, cost: 3 }), counter({ limit: 4 }))).toBe(0);
  });

  it("is limited by no counter that is not charged", () => {
    expect(fitting(counter({ limit: 4, cost: 0 }))).toBe(9);
    expect(fitting({ ...counter({ limit: 6 }), checkOnly: true })).toBe(9);
  });
});

// The best-known descriptions of the algorithm use these quotas as examples.
describe("a well-known quota", () => {
  /** Sends `attempts` requests, one every `stepMs`. @returns the number that is admitted */
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
      const { groups } = await verdictOf(store.decide([counters], from + attempt * stepMs));
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
