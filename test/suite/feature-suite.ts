import { describe, expect, it } from "vitest";
import type { Demand, Removal } from "../../src/engine/counter.ts";
import { bans, counter } from "./counters.ts";
import { type Driver, HOUR, NOW } from "./driver.ts";

/** The part of the store suite for rollover, bans, shards, checks, adjustments and resets. */
export function describeFeatures({ store, decide, admitted, used, clockIsOurs }: Driver): void {
  describe("a counter that rolls over", () => {
    const rolling = (fields: Partial<Demand> = {}) =>
      counter({ limit: 100, ceiling: 150, windowMs: HOUR, rollsOver: true, ...fields });

    it("adds each window's limit to the quota left, up to the capacity", async () => {
      const hourly = rolling();
      const left = async (now: number) => 150 - ((await used([hourly], now))[0] as number);
      await decide([{ ...hourly, cost: 80 }]);
      expect(await left(NOW)).toBe(70);
      expect(await left(NOW + HOUR)).toBe(150);
      await decide([{ ...hourly, cost: 30 }], NOW + 1.5 * HOUR);
      expect(await left(NOW + 1.5 * HOUR)).toBe(120);
      expect(await left(NOW + 2 * HOUR)).toBe(150);
    });

    it("admits its capacity in one window, and the limit in each later window", async () => {
      const hourly = rolling({ cost: 50 });
      expect(await admitted([hourly], 9)).toBe(3);
      expect(await admitted([hourly], 9, NOW + HOUR)).toBe(2);
      expect(await admitted([hourly], 9, NOW + 3 * HOUR)).toBe(3);
    });

    it("takes quota of later windows for a reservation", async () => {
      const hourly = rolling({ limit: 10, ceiling: 10, cost: 5 });
      const reserving = { ...hourly, ceiling: 25 };
      expect(await admitted([hourly], 3)).toBe(2);
      expect(await admitted([reserving], 9)).toBe(3);
      expect(await used([hourly])).toEqual([25]);
      expect(await admitted([hourly], 1, NOW + HOUR)).toBe(0);
      expect(await used([hourly], NOW + HOUR)).toEqual([15]);
      expect(await admitted([hourly], 1, NOW + 2 * HOUR)).toBe(1);
    });

    /** Uses 150 under a limit of 100, so that the row of the limit of 100 expires after two hours. */
    const LOWERED: Record<string, (hourly: Demand) => Demand[]> = {
      "a denied request": (hourly) => [hourly],
      "a request that is only checked": (hourly) => [{ ...hourly, cost: 111, checkOnly: true }],
      "a request that is denied by another counter": (hourly) => [
        { ...hourly, cost: 5 },
        counter({ limit: 0, identity: hourly.identity, windowMs: HOUR }),
      ],
      "a request with a higher ceiling": (hourly) => [{ ...hourly, cost: 200, ceiling: 300 }],
    };
    it.each(Object.keys(LOWERED))(
      "keeps a debt until a lowered limit has repaid it: %s",
      async (name) => {
        const hourly = rolling();
        await decide([{ ...hourly, cost: 150 }]);
        const lowered = { ...hourly, limit: 10, ceiling: 20, cost: 21 };
        const [first, ...others] = (LOWERED[name] as (typeof LOWERED)[string])(lowered);
        const { admitted } = await decide([first as Demand, ...others], NOW + HOUR);
        expect(admitted).toBe(false);
        expect(await used([lowered], NOW + 3 * HOUR)).toEqual([120]);
        expect(await used([lowered], NOW + 14.5 * HOUR)).toEqual([10]);
        expect(await used([lowered], NOW + 15 * HOUR)).toEqual([0]);
      },
    );

    it("lowers a debt by charges and refunds under a lowered limit", async () => {
      const hourly = rolling();
      await decide([{ ...hourly, cost: 150 }]);
      const lowered = { ...hourly, limit: 10, ceiling: 200 };
      await decide([{ ...lowered, cost: 4 }], NOW + HOUR);
      await store.adjust([{ ...lowered, cost: -14 }], NOW + 2 * HOUR);
      expect(await used([lowered], NOW + 9 * HOUR)).toEqual([50]);
    });

    it("adds a window's limit once when the clock steps back and forth", async () => {
      const hourly = rolling({ cost: 50 });
      await admitted([hourly], 3, NOW + HOUR);
      expect(await admitted([hourly], 1, NOW + 0.5 * HOUR)).toBe(0);
      await store.adjust([{ ...hourly, cost: -50 }], NOW + 0.5 * HOUR);
      expect(await admitted([hourly], 9, NOW + 0.5 * HOUR)).toBe(1);
      expect(await admitted([hourly], 9, NOW + HOUR)).toBe(0);
    });

    it("charges no counter of a group when another counter is full", async () => {
      const hourly = rolling();
      await decide([hourly, counter({ limit: 0, identity: hourly.identity })]);
      expect(await used([hourly])).toEqual([0]);
    });
  });

  describe("a ban", () => {
    const banned = (fields: Partial<Demand> = {}) =>
      counter({ limit: 2, windowMs: 10_000, ban: bans(50_000), ...fields });

    it("outlasts the window, and ends after exactly its length", async () => {
      const login = banned();
      expect(await admitted([login], 2, NOW + 9_000)).toBe(2);
      const verdict = await decide([login], NOW + 9_000);
      expect(verdict).toMatchObject({ admitted: false, tallies: [{ banMs: 50_000 }] });
      if (clockIsOurs) {
        expect(await admitted([login], 1, NOW + 58_999)).toBe(0);
        expect(await admitted([login], 1, NOW + 59_000)).toBe(1);
      } else {
        expect(await admitted([login], 1, NOW + 20_000)).toBe(0);
      }
    });

    it("is not extended by further requests", async () => {
      const login = banned({ limit: 0 });
      await decide([login]);
      const [tally] = (await decide([login], NOW + 1000)).tallies;
      expect(tally?.banMs).toBeLessThanOrEqual(clockIsOurs ? 49_000 : 50_000);
    });

    it("is not started by a check, and a check returns its time left", async () => {
      const login = banned({ limit: 0 });
      const check = { ...login, checkOnly: true, neverBans: true };
      expect((await decide([check])).tallies[0]?.banMs).toBe(0);
      await decide([login]);
      // Less than a second of the ban passes during the test. If bans end by the store's own clock,
      // the test allows ten seconds.
      const least = clockIsOurs ? 49_000 : 40_000;
      expect((await decide([check])).tallies[0]?.banMs).toBeGreaterThan(least);
    });

    it("begins neither within the limit nor for other clients", async () => {
      const login = banned();
      await admitted([login], 2);
      expect((await decide([banned()])).tallies[0]?.banMs).toBe(0);
      expect(await admitted([login], 1, NOW + 10_000)).toBe(1);
    });
  });

  describe("a counter that is only checked", () => {
    it("denies if it is full, and is never charged", async () => {
      const [login, api] = [counter({ limit: 1 }), counter({ limit: 9 })];
      const checked = { ...login, checkOnly: true };
      expect(await admitted([checked, api], 3)).toBe(3);
      expect(await used([login, api])).toEqual([0, 3]);
      await decide([login]);
      expect(await admitted([checked, api], 3)).toBe(0);
      expect(await used([login, api])).toEqual([1, 3]);
    });
  });

  describe("an adjustment", () => {
    const adjust = async (quota: Demand, cost: number) => {
      const [tally] = await store.adjust([{ ...quota, cost }], NOW);
      return tally?.count;
    };

    it("charges the actual cost, even above the limit", async () => {
      const quota = counter({ limit: 5 });
      expect(await adjust(quota, 3)).toBe(3);
      expect(await adjust(quota, 4)).toBe(7);
      expect((await decide([quota])).admitted).toBe(false);
    });

    it("refunds at most what was used", async () => {
      const quota = counter({ limit: 5 });
      await admitted([quota], 5);
      expect(await adjust(quota, -2)).toBe(3);
      expect(await admitted([quota], 9)).toBe(2);
      expect(await adjust(quota, -99)).toBe(0);
      expect(await admitted([quota], 9)).toBe(5);
    });

    it("adjusts counters of several clients, and returns the count of each", async () => {
      const counters = [counter({ cost: 1 }), counter({ cost: 2 }), counter({ cost: 3 })];
      const tallies = await store.adjust(counters, NOW);
      expect(tallies.map(({ count }) => count)).toEqual([1, 2, 3]);
      expect(await used(counters)).toEqual([1, 2, 3]);
    });

    it("keeps counts between 0 and 2^53 - 1", async () => {
      const quota = counter();
      expect(await adjust(quota, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
      expect(await adjust(quota, 1)).toBe(Number.MAX_SAFE_INTEGER);
      expect(await adjust(quota, -Number.MAX_SAFE_INTEGER)).toBe(0);
    });
  });

  describe("a reset", () => {
    it("removes the count, the ban and the reservations of a client", async () => {
      const login = counter({ limit: 1, ban: bans(60_000) });
      const hourly = counter({ limit: 1, ceiling: 9, windowMs: HOUR, rollsOver: true, cost: 9 });
      await decide([hourly]);
      await admitted([login], 3);
      expect(await admitted([login, hourly], 1)).toBe(0);
      await store.reset([login, hourly], NOW);
      expect(await admitted([login, hourly], 3)).toBe(1);
    });

    it("of a counter that keeps its count removes only the bans and strikes of both modes", async () => {
      const login = counter({ limit: 2, windowMs: HOUR, ban: bans(HOUR, 2 * HOUR) });
      const plain = counter({ limit: 9, identity: login.identity });
      const inShadow = { ...login, shadow: true };
      await admitted([login, plain], 3);
      await decide([inShadow]);
      const banOf = async (each: Demand) => (await decide([each])).tallies[0]?.banMs as number;
      expect(await banOf(login)).toBeGreaterThan(0);
      const removal: Removal = { ...login, keepsCount: true };
      await store.reset([removal, plain], NOW);
      const check = { checkOnly: true, neverBans: true } as const;
      expect(await decide([{ ...login, ...check }])).toMatchObject({
        admitted: false,
        tallies: [{ count: 2, banMs: 0 }],
      });
      expect(await banOf({ ...inShadow, ...check })).toBe(0);
      expect(await used([plain])).toEqual([0]);
      // The next ban is the first one again.
      expect(await banOf(login)).toBeLessThanOrEqual(HOUR);
    });

    it("does not change other clients", async () => {
      const [one, other] = [counter(), counter()];
      await admitted([one, other], 5);
      await store.reset([one], NOW);
      expect(await used([one, other])).toEqual([0, 5]);
    });
  });
}
