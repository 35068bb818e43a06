import { describe, expect, it } from "vitest";
import type { Counter } from "../../src/engine/fixed-window.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The next full hour: not past, since a store may clear away what is past. */
const NOW = Math.ceil(Date.now() / HOUR) * HOUR;

/**
 * What every store must do, whatever it is made of. The caller's clock is passed in.
 *
 * @example storeSuite("memory", () => memoryStore());
 *
 * @param options.expiresByItself the store's keys expire by a clock of its own, as Redis's do, so
 *   what has been stored cannot be made to expire by passing a later time
 */
export function storeSuite(
  name: string,
  createStore: () => Store,
  { expiresByItself = false } = {},
): void {
  const clockIsOurs = !expiresByItself;
  describe(`a store: ${name}`, () => {
    const store = createStore();

    async function decide(counters: readonly Counter[], now = NOW) {
      const { groups } = await store.decide([counters], now);
      return groups[0] as (typeof groups)[number];
    }

    /** How many of `attempts` requests, one after the other, are admitted. */
    async function admitted(counters: readonly Counter[], attempts: number, now = NOW) {
      let count = 0;
      for (let attempt = 0; attempt < attempts; attempt++) {
        if ((await decide(counters, now)).admitted) count++;
      }
      return count;
    }

    /** The quota used, by a decision that costs nothing. */
    async function used(counters: readonly Counter[], now = NOW) {
      const { tallies } = await decide(
        counters.map((each) => ({ ...each, cost: 0 })),
        now,
      );
      return tallies.map(({ count }) => count);
    }

    it("admits up to the limit and denies the next", async () => {
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

    it("counts each client alone", async () => {
      expect(await admitted([counter()], 9)).toBe(5);
      expect(await admitted([counter()], 9)).toBe(5);
    });

    it("says when the window ends, to the millisecond", async () => {
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

    it("starts anew in the next window", async () => {
      const login = counter();
      expect(await admitted([login], 9, NOW + 59_999)).toBe(5);
      expect(await admitted([login], 9, NOW + 60_000)).toBe(5);
    });

    it("admits ten around a minute's edge: five at 00:58 and five at 01:02", async () => {
      const login = counter({ limit: 5 });
      expect(await admitted([login], 5, NOW + 58_000)).toBe(5);
      expect(await admitted([login], 5, NOW + 62_000)).toBe(5);
    });

    it("begins windows where the offset says", async () => {
      const start = NOW + 17 * MINUTE;
      const daily = counter({ limit: 1, windowMs: DAY, offsetMs: start % DAY });
      expect(await admitted([daily], 2, start - 1)).toBe(1);
      expect(await admitted([daily], 2, start)).toBe(1);
      expect((await decide([daily], start)).tallies[0]?.resetMs).toBe(DAY);
    });

    it("keeps the count of a window when the clock goes back into it", async () => {
      const login = counter();
      await admitted([login], 5, NOW + 59_000);
      await decide([login], NOW + 60_500);
      expect(await admitted([login], 3, NOW + 59_500)).toBe(0);
    });

    it("charges no counter when one of three has no room", async () => {
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
        await admitted([counters[at] as Counter], 5);
        const verdict = await decide(counters);
        const counts = [0, 0, 0].with(at, 5);
        expect(verdict.admitted).toBe(false);
        expect(verdict.tallies.map(({ count }) => count)).toEqual(counts);
        expect(await used(counters)).toEqual(counts);
      },
    );

    it("decides groups apart from each other in one call", async () => {
      const live = counter({ limit: 2 });
      const trial = counter({ limit: 1, identity: live.identity });
      const [other, closed] = [counter(), counter({ limit: 0 })];
      const verdicts = [];
      for (let request = 1; request <= 3; request++) {
        const { groups } = await store.decide([[live], [trial], [other, closed]], NOW);
        verdicts.push(groups.map((group) => group.admitted));
      }
      expect(verdicts).toEqual([
        [true, true, false],
        [true, false, false],
        [false, false, false],
      ]);
      expect(await used([live, trial, other])).toEqual([2, 1, 0]);
    });

    it("leaves room for a cost of 1 when a cost of 5 was denied", async () => {
      const quota = counter({ limit: 5 });
      await decide([quota]);
      expect((await decide([{ ...quota, cost: 5 }])).admitted).toBe(false);
      expect((await decide([{ ...quota, cost: 4 }])).admitted).toBe(true);
      expect(await used([quota])).toEqual([5]);
    });

    it("admits nothing with a limit of 0, nor a cost above the limit", async () => {
      expect(await admitted([counter({ limit: 0 })], 2)).toBe(0);
      expect(await admitted([counter({ limit: 4, cost: 5 })], 2)).toBe(0);
    });

    it("follows a limit that is raised or lowered within the window", async () => {
      const quota = counter({ limit: 5 });
      await admitted([quota], 5);
      expect(await admitted([{ ...quota, limit: 7, ceiling: 7 }], 5)).toBe(2);
      expect(await admitted([{ ...quota, limit: 3, ceiling: 3 }], 1)).toBe(0);
      expect(await used([quota])).toEqual([7]);
    });

    it("counts to the largest limit without losing one", async () => {
      const limit = 999_999_999_999_999;
      const quota = counter({ limit });
      expect((await decide([{ ...quota, cost: limit - 1 }])).tallies[0]?.count).toBe(limit - 1);
      expect((await decide([quota])).tallies[0]?.count).toBe(limit);
      expect((await decide([quota])).admitted).toBe(false);
    });

    describe("a counter that rolls over", () => {
      const rolling = (fields: Partial<Counter> = {}) =>
        counter({ limit: 100, ceiling: 150, windowMs: HOUR, rollsOver: true, ...fields });

      it("adds a window's grant to what is left, up to its capacity", async () => {
        const hourly = rolling();
        const left = async (now: number) => 150 - ((await used([hourly], now))[0] as number);
        await decide([{ ...hourly, cost: 80 }]);
        expect(await left(NOW)).toBe(70);
        expect(await left(NOW + HOUR)).toBe(150);
        await decide([{ ...hourly, cost: 30 }], NOW + 1.5 * HOUR);
        expect(await left(NOW + 1.5 * HOUR)).toBe(120);
        expect(await left(NOW + 2 * HOUR)).toBe(150);
      });

      it("may use all of its capacity in one window, and then what each next one grants", async () => {
        const hourly = rolling({ cost: 50 });
        expect(await admitted([hourly], 9)).toBe(3);
        expect(await admitted([hourly], 9, NOW + HOUR)).toBe(2);
        expect(await admitted([hourly], 9, NOW + 3 * HOUR)).toBe(3);
      });

      it("may be taken into later windows' grants by a reservation", async () => {
        const hourly = rolling({ limit: 10, ceiling: 10, cost: 5 });
        const reserving = { ...hourly, ceiling: 25 };
        expect(await admitted([hourly], 3)).toBe(2);
        expect(await admitted([reserving], 9)).toBe(3);
        expect(await used([hourly])).toEqual([25]);
        expect(await admitted([hourly], 1, NOW + HOUR)).toBe(0);
        expect(await used([hourly], NOW + HOUR)).toEqual([15]);
        expect(await admitted([hourly], 1, NOW + 2 * HOUR)).toBe(1);
      });

      it("grants a window once, when the clock goes back and forth", async () => {
        const hourly = rolling({ cost: 50 });
        await admitted([hourly], 3, NOW + HOUR);
        expect(await admitted([hourly], 1, NOW + 0.5 * HOUR)).toBe(0);
        await store.adjust([{ ...hourly, cost: -50 }], NOW + 0.5 * HOUR);
        expect(await admitted([hourly], 9, NOW + 0.5 * HOUR)).toBe(1);
        expect(await admitted([hourly], 9, NOW + HOUR)).toBe(0);
      });

      it("charges none of a group when another counter has no room", async () => {
        const hourly = rolling();
        await decide([hourly, counter({ limit: 0, identity: hourly.identity })]);
        expect(await used([hourly])).toEqual([0]);
      });
    });

    describe("a ban", () => {
      const banned = (fields: Partial<Counter> = {}) =>
        counter({ limit: 2, windowMs: 10_000, banMs: 50_000, ...fields });

      it("outlasts the window of who went over, by no more than it says", async () => {
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

      it("is not made longer by asking again", async () => {
        const login = banned({ limit: 0 });
        await decide([login]);
        const [tally] = (await decide([login], NOW + 1000)).tallies;
        expect(tally?.banMs).toBeLessThanOrEqual(clockIsOurs ? 49_000 : 50_000);
      });

      it("is not brought about by a look, but seen by it", async () => {
        const login = banned({ limit: 0 });
        const look = { ...login, checkOnly: true, neverBans: true };
        expect((await decide([look])).tallies[0]?.banMs).toBe(0);
        await decide([login]);
        expect((await decide([look])).tallies[0]?.banMs).toBeGreaterThan(49_000);
      });

      it("does not fall on who asks within the limit, nor on another", async () => {
        const login = banned();
        await admitted([login], 2);
        expect((await decide([banned()])).tallies[0]?.banMs).toBe(0);
        expect(await admitted([login], 1, NOW + 10_000)).toBe(1);
      });
    });

    describe("a counter with another to choose instead", () => {
      it("takes the one with more room, until neither has any", async () => {
        const [one, other] = [counter({ limit: 3 }), counter({ limit: 2 })];
        const either = { ...one, or: other };
        expect(await admitted([either], 9)).toBe(5);
        expect(await used([one])).toEqual([3]);
        expect(await used([other])).toEqual([2]);
      });

      it("is told of as if it had been asked itself", async () => {
        const either = { ...counter({ limit: 3, cost: 2 }), or: counter({ limit: 2, cost: 2 }) };
        const tallies = [];
        for (let request = 1; request <= 3; request++) tallies.push(await decide([either]));
        expect(tallies.map(({ admitted, tallies: [tally] }) => [admitted, tally?.count])).toEqual([
          [true, 2],
          [true, 3],
          [false, 2],
        ]);
      });

      it("is charged where there is more room, and given back to where there is less", async () => {
        const [one, other] = [counter({ limit: 9 }), counter({ limit: 9 })];
        await store.adjust([{ ...one, cost: 5 }], NOW);
        const either = (cost: number) => ({ ...one, or: { ...other, cost }, cost });
        await store.adjust([either(2)], NOW);
        expect(await used([one, other])).toEqual([5, 2]);
        await store.adjust([either(-4)], NOW);
        expect(await used([one, other])).toEqual([1, 2]);
      });
    });

    describe("a counter that is only checked", () => {
      it("is asked for room, and never charged", async () => {
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
      const adjust = async (quota: Counter, cost: number) => {
        const [tally] = await store.adjust([{ ...quota, cost }], NOW);
        return tally?.count;
      };

      it("charges what something turned out to cost, also above the limit", async () => {
        const quota = counter({ limit: 5 });
        expect(await adjust(quota, 3)).toBe(3);
        expect(await adjust(quota, 4)).toBe(7);
        expect((await decide([quota])).admitted).toBe(false);
      });

      it("refunds, and never lifts the quota above the limit", async () => {
        const quota = counter({ limit: 5 });
        await admitted([quota], 5);
        expect(await adjust(quota, -2)).toBe(3);
        expect(await admitted([quota], 9)).toBe(2);
        expect(await adjust(quota, -99)).toBe(0);
        expect(await admitted([quota], 9)).toBe(5);
      });

      it("reaches several clients' counters, and says what each stands at", async () => {
        const counters = [counter({ cost: 1 }), counter({ cost: 2 }), counter({ cost: 3 })];
        const tallies = await store.adjust(counters, NOW);
        expect(tallies.map(({ count }) => count)).toEqual([1, 2, 3]);
        expect(await used(counters)).toEqual([1, 2, 3]);
      });

      it("stays from 0 to 2^53 - 1", async () => {
        const quota = counter();
        expect(await adjust(quota, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
        expect(await adjust(quota, 1)).toBe(Number.MAX_SAFE_INTEGER);
        expect(await adjust(quota, -Number.MAX_SAFE_INTEGER)).toBe(0);
      });
    });

    describe("a reset", () => {
      it("frees a client at once, of bans and of what it reserved too", async () => {
        const login = counter({ limit: 1, banMs: 60_000 });
        const hourly = counter({ limit: 1, ceiling: 9, windowMs: HOUR, rollsOver: true, cost: 9 });
        await decide([hourly]);
        await admitted([login], 3);
        expect(await admitted([login, hourly], 1)).toBe(0);
        await store.reset([login, hourly], NOW);
        expect(await admitted([login, hourly], 3)).toBe(1);
      });

      it("leaves other clients as they are", async () => {
        const [one, other] = [counter(), counter()];
        await admitted([one, other], 5);
        await store.reset([one], NOW);
        expect(await used([one, other])).toEqual([0, 5]);
      });
    });

    it("admits exactly the limit of many concurrent requests", async () => {
      const quota = counter({ limit: 20 });
      const verdicts = await Promise.all(Array.from({ length: 60 }, () => decide([quota])));
      expect(verdicts.filter((verdict) => verdict.admitted)).toHaveLength(20);
    });

    it("is exact under concurrency when clients share one of two counters", async () => {
      const shared = counter({ limit: 10 });
      const clients = Array.from({ length: 8 }, () => counter({ limit: 3 }));
      const verdicts = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          decide([clients[index % clients.length] as Counter, shared]),
        ),
      );
      expect(verdicts.filter((verdict) => verdict.admitted)).toHaveLength(10);
      expect(await used([shared])).toEqual([10]);
      const charged = await Promise.all(clients.map((client) => used([client])));
      expect(charged.flat().reduce((sum, count) => sum + count)).toBe(10);
    });
  });
}
