import { describe, expect, it } from "vitest";
import type { Demand } from "../../src/engine/counter.ts";
import { bans, counter } from "./counters.ts";
import { type Driver, HOUR, MINUTE, NOW } from "./driver.ts";
import { randomOf } from "./random.ts";

/** The part of the store suite for groups of rules with the mode `mark`, which are decided whatever the others say. */
export function describeIndependents({ store, used }: Driver): void {
  const mark = (fields: Partial<Demand> = {}) => counter({ marks: true, ...fields });
  const shadow = (fields: Partial<Demand> = {}) => counter({ shadow: true, ...fields });

  const decideAll = (groups: readonly (readonly Demand[])[], now = NOW) =>
    Promise.all(store.decide(groups, now));

  async function admittedOf(groups: readonly (readonly Demand[])[], now = NOW) {
    return (await decideAll(groups, now)).map(({ admitted }) => admitted);
  }

  describe.each([
    ["stored with the enforced group", (identity: string) => ({ identity })],
    ["stored elsewhere", () => ({})],
  ])("the group of a mark, %s", (_, place) => {
    const pairOf = (enforced: Partial<Demand>, marking: Partial<Demand>) => {
      const first = counter(enforced);
      return [first, mark({ ...place(first.identity), ...marking })] as const;
    };

    it("is charged with the enforced group, and does not deny it", async () => {
      const [enforced, marking] = pairOf({ limit: 5 }, { limit: 2 });
      const verdicts = [];
      for (let sent = 0; sent < 6; sent++) verdicts.push(await admittedOf([[enforced], [marking]]));
      expect(verdicts).toEqual([
        [true, true],
        [true, true],
        [true, false],
        [true, false],
        [true, false],
        [false, false],
      ]);
      expect(await used([enforced])).toEqual([5]);
      expect(await used([marking])).toEqual([2]);
    });

    it("is charged although the enforced group is denied", async () => {
      const [enforced, marking] = pairOf({ limit: 1 }, { limit: 3 });
      const verdicts = [];
      for (let sent = 0; sent < 5; sent++) verdicts.push(await admittedOf([[enforced], [marking]]));
      expect(verdicts.map(([first]) => first)).toEqual([true, false, false, false, false]);
      expect(verdicts.map(([, second]) => second)).toEqual([true, true, true, false, false]);
      expect(await used([enforced])).toEqual([1]);
      expect(await used([marking])).toEqual([3]);
    });

    it("is denied with its tally if its quota is used up", async () => {
      const [enforced, marking] = pairOf({}, { limit: 2, cost: 2 });
      await decideAll([[enforced], [marking]]);
      const [, answer] = await decideAll([[enforced], [marking]], NOW + 1);
      expect(answer).toMatchObject({
        admitted: false,
        tallies: [{ count: 2, resetMs: MINUTE - 1, banMs: 0 }],
      });
    });

    it("is charged in all of its counters or in none", async () => {
      const [enforced, minute] = pairOf({ limit: 9 }, { limit: 1 });
      const hour = mark({ identity: minute.identity, limit: 5, windowMs: HOUR });
      for (let sent = 0; sent < 3; sent++) await decideAll([[enforced], [minute, hour]]);
      expect(await used([minute, hour])).toEqual([1, 1]);
      expect(await used([enforced])).toEqual([3]);
    });

    it("may roll over", async () => {
      const rolling = { limit: 2, ceiling: 3, rollsOver: true, windowMs: HOUR };
      const [enforced, marking] = pairOf({ limit: 99 }, rolling);
      const admitted = async (now: number) => {
        let count = 0;
        for (let sent = 0; sent < 5; sent++) {
          if ((await admittedOf([[enforced], [marking]], now))[1]) count++;
        }
        return count;
      };
      expect(await admitted(NOW)).toBe(3);
      expect(await admitted(NOW + HOUR)).toBe(2);
    });

    it("may only be checked", async () => {
      const [enforced, marking] = pairOf({}, { limit: 1, checkOnly: true });
      expect(await admittedOf([[enforced], [marking]])).toEqual([true, true]);
      await store.adjust([{ ...marking, cost: 1 }], NOW);
      expect(await admittedOf([[enforced], [marking]])).toEqual([true, false]);
      expect(await used([marking])).toEqual([1]);
    });

    it("is exact under concurrency", async () => {
      const [enforced, marking] = pairOf({ limit: 12 }, { limit: 5 });
      const verdicts = await Promise.all(
        Array.from({ length: 30 }, () => admittedOf([[enforced], [marking]])),
      );
      expect(verdicts.filter(([admitted]) => admitted)).toHaveLength(12);
      expect(await used([enforced])).toEqual([12]);
      // A lease may have quota left when a concurrent request finds none.
      const marked = verdicts.filter(([, within]) => within).length;
      expect(marked).toBeLessThanOrEqual(5);
      expect(await used([marking])).toEqual([marked]);
    });
  });

  describe("groups of marks", () => {
    it("are decided like enforced groups if no group is enforced", async () => {
      const [one, other] = [mark({ limit: 1 }), mark({ limit: 2 })];
      const verdicts = [];
      for (let sent = 0; sent < 3; sent++) verdicts.push(await admittedOf([[one], [other]]));
      expect(verdicts).toEqual([
        [true, true],
        [false, true],
        [false, false],
      ]);
    });

    it("are independent of each other and of shadow groups", async () => {
      const enforced = counter({ limit: 9 });
      const full = mark({ limit: 0, identity: enforced.identity });
      const [elsewhere, trial] = [mark(), shadow({ limit: 0 })];
      expect(await admittedOf([[enforced], [trial], [full], [elsewhere]])).toEqual([
        true,
        false,
        false,
        true,
      ]);
      const denied = counter({ limit: 0 });
      const other = shadow();
      expect(await admittedOf([[denied], [other], [elsewhere]])).toEqual([false, true, true]);
      expect(await used([elsewhere])).toEqual([2]);
      expect(await used([other])).toEqual([1]);
    });

    it("count the requests of a banned client", async () => {
      const login = counter({ limit: 1, ban: bans(50_000) });
      const plan = mark({ identity: login.identity });
      for (let sent = 0; sent < 4; sent++) await decideAll([[login], [plan]]);
      expect(await used([plan])).toEqual([4]);
    });

    it("agree with a model in a random sequence of costs", async () => {
      const random = randomOf(7);
      const [enforced, plan] = [counter({ limit: 60 }), mark({ limit: 40 })];
      const counts = [0, 0] as [number, number];
      for (let sent = 0; sent < 40; sent++) {
        const costs = [1 + random(4), 1 + random(4)] as const;
        const isAdmitted = counts[0] + costs[0] <= 60;
        const isWithin = counts[1] + costs[1] <= 40;
        const verdict = await admittedOf([
          [{ ...enforced, cost: costs[0] }],
          [{ ...plan, cost: costs[1] }],
        ]);
        expect(verdict).toEqual([isAdmitted, isWithin]);
        if (isAdmitted) counts[0] += costs[0];
        if (isWithin) counts[1] += costs[1];
      }
      expect([await used([enforced]), await used([plan])]).toEqual([[counts[0]], [counts[1]]]);
    });
  });
}
