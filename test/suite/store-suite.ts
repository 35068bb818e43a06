import { describe, expect, it } from "vitest";
import type { Demand } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";
import { DAY, driverOf, type ExpiryOptions, HOUR, MINUTE, NOW } from "./driver.ts";
import { describeEscalation } from "./escalation-suite.ts";
import { describeFeatures } from "./feature-suite.ts";
import { describeIndependents } from "./independent-suite.ts";
import { describeLaterWindows } from "./later-window-suite.ts";
import { describeSettlements } from "./settlement-suite.ts";
import { verdictOf } from "./verdict.ts";

/** Tests the behaviour that all stores have in common. The tests pass the time to the store. */
export function storeSuite(createStore: () => Store, { ageKeys }: ExpiryOptions): void {
  describe("behaviour", () => {
    const driver = driverOf(createStore(), { ageKeys });
    const { store, decide, admitted, used } = driver;

    it("admits requests up to the limit, and denies the next request", async () => {
      const login = counter({ limit: 5 });
      const verdicts = [];
      for (let request = 1; request <= 6; request++) verdicts.push(await decide([login]));
      expect(verdicts.map(({ admitted, tallies }) => [admitted, tallies[0]?.count])).toEqual([
        [true, 1],
        [true, 2],
        [true, 3],
        [true, 4],
        [true, 5],
        [false, 5],
      ]);
    });

    it("counts each client separately", async () => {
      expect(await admitted([counter()], 9)).toBe(5);
      expect(await admitted([counter()], 9)).toBe(5);
    });

    it("returns the time until the window ends, to the millisecond", async () => {
      const login = counter();
      for (const [past, left] of [
        [0, 60_000],
        [1, 59_999],
        [59_999, 1],
        [60_000, 60_000],
      ] as const) {
        const { tallies } = await decide([login], NOW + past);
        expect(tallies[0]?.resetMs, `${past} ms past the minute`).toBe(left);
      }
    });

    it("admits the limit again in the next window", async () => {
      const login = counter();
      // If keys expire by the store's own clock, a key that is written in a window's last
      // millisecond expires after a second.
      expect(await admitted([login], 9, NOW + (ageKeys ? 50_000 : 59_999))).toBe(5);
      expect(await admitted([login], 9, NOW + 60_000)).toBe(5);
    });

    it("admits ten around the end of a minute: five at 00:58 and five at 01:02", async () => {
      const login = counter({ limit: 5 });
      expect(await admitted([login], 5, NOW + 58_000)).toBe(5);
      expect(await admitted([login], 5, NOW + 62_000)).toBe(5);
    });

    it("begins windows at the offset", async () => {
      const start = NOW + 17 * MINUTE;
      const daily = counter({ limit: 1, windowMs: DAY, offsetMs: start % DAY });
      expect(await admitted([daily], 2, start - 1)).toBe(1);
      expect(await admitted([daily], 2, start)).toBe(1);
      expect((await decide([daily], start)).tallies[0]?.resetMs).toBe(DAY);
    });

    it("keeps the count of a window when the clock steps back into it", async () => {
      const login = counter();
      // If keys expire by the store's own clock, the count must not expire while the test runs.
      const end = NOW + (ageKeys ? 50_000 : 59_500);
      await admitted([login], 5, end - 500);
      await decide([login], NOW + 60_500);
      expect(await admitted([login], 3, end)).toBe(0);
    });

    it("charges no counter when one of three is full", async () => {
      const identity = crypto.randomUUID();
      const minute = counter({ identity, limit: 33 });
      const hour = counter({ identity, limit: 2000, windowMs: HOUR });
      const full = counter({ identity, limit: 1 });
      await decide([minute, hour, full]);
      const before = await used([minute, hour, full]);
      const verdict = await decide([minute, hour, full]);
      expect(verdict.admitted).toBe(false);
      expect(verdict.tallies.map(({ count }) => count)).toEqual([1, 1, 1]);
      expect(await used([minute, hour, full])).toEqual(before);
    });

    it.each([0, 1, 2])(
      "charges no counter of several clients when number %i is full",
      async (at) => {
        const counters = [counter(), counter(), counter()].sort((a, b) =>
          a.identity < b.identity ? -1 : 1,
        );
        await admitted([counters[at] as Demand], 5);
        const verdict = await decide(counters);
        const counts = [0, 0, 0].with(at, 5);
        expect(verdict.admitted).toBe(false);
        for (const [index, tally] of verdict.tallies.entries()) {
          // A store may leave out the counters that it did not read.
          if (index === at || tally) expect(tally?.count).toBe(counts[index]);
        }
        expect(await used(counters)).toEqual(counts);
      },
    );

    it("decides each group of a call separately", async () => {
      const first = counter({ limit: 2 });
      const second = counter({ limit: 1, identity: first.identity });
      const [other, closed] = [counter(), counter({ limit: 0 })];
      const verdicts = [];
      for (let request = 1; request <= 3; request++) {
        const { groups } = await verdictOf(store.decide([[first], [second], [other, closed]], NOW));
        verdicts.push(groups.map((group) => group.admitted));
      }
      expect(verdicts).toEqual([
        [true, true, false],
        [true, false, false],
        [false, false, false],
      ]);
      expect(await used([first, second, other])).toEqual([2, 1, 0]);
    });

    it("admits a cost of 4 after a cost of 5 was denied", async () => {
      const quota = counter({ limit: 5 });
      await decide([quota]);
      expect((await decide([{ ...quota, cost: 5 }])).admitted).toBe(false);
      expect((await decide([{ ...quota, cost: 4 }])).admitted).toBe(true);
      expect(await used([quota])).toEqual([5]);
    });

    it("admits no request with a limit of 0, and no cost above the limit", async () => {
      expect(await admitted([counter({ limit: 0 })], 2)).toBe(0);
      expect(await admitted([counter({ limit: 4, cost: 5 })], 2)).toBe(0);
    });

    it("applies a raised or lowered limit within the window", async () => {
      const quota = counter({ limit: 5 });
      await admitted([quota], 5);
      expect(await admitted([{ ...quota, limit: 7, ceiling: 7 }], 5)).toBe(2);
      expect(await admitted([{ ...quota, limit: 3, ceiling: 3 }], 1)).toBe(0);
      expect(await used([quota])).toEqual([7]);
    });

    it("counts exactly up to the largest limit", async () => {
      const limit = 999_999_999_999_999;
      const quota = counter({ limit });
      expect((await decide([{ ...quota, cost: limit - 1 }])).tallies[0]?.count).toBe(limit - 1);
      expect((await decide([quota])).tallies[0]?.count).toBe(limit);
      expect((await decide([quota])).admitted).toBe(false);
    });

    describeFeatures(driver);
    describeIndependents(driver);
    describeSettlements(driver);
    describeEscalation(driver);
    describeLaterWindows(driver);

    it("admits exactly the limit under concurrency", async () => {
      const quota = counter({ limit: 20 });
      const verdicts = await Promise.all(Array.from({ length: 60 }, () => decide([quota])));
      expect(verdicts.filter((verdict) => verdict.admitted)).toHaveLength(20);
    });

    it("admits exactly the limit under concurrency if clients share one of two counters", async () => {
      const shared = counter({ limit: 10, reach: 1 });
      const clients = Array.from({ length: 8 }, () => counter({ limit: 3 }));
      const verdicts = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          decide([clients[index % clients.length] as Demand, shared]),
        ),
      );
      expect(verdicts.filter((verdict) => verdict.admitted)).toHaveLength(10);
      expect(await used([shared])).toEqual([10]);
      const charged = await Promise.all(clients.map((client) => used([client])));
      expect(charged.flat().reduce((sum, count) => sum + count)).toBe(10);
    });
  });
}
