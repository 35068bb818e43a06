import { describe, expect, it } from "vitest";
import { type Adjustment, type Demand, windowAt } from "../../src/engine/counter.ts";
import { bans, counter } from "./counters.ts";
import { type Driver, HOUR, MINUTE, NOW } from "./driver.ts";

/** The part of the store suite for quota that is charged first and settled later. */
export function describeSettlements({ store, decide, used, clockIsOurs }: Driver): void {
  const refund = (charged: Demand, quota: number, chargedAt: number): Adjustment => ({
    ...charged,
    cost: -quota,
    chargedIn: windowAt(chargedAt, charged).index,
  });

  describe("a refund of quota that was charged in a certain window", () => {
    it("lowers the count until this window ends", async () => {
      const budget = counter({ limit: 100, cost: 60, windowMs: HOUR });
      await decide([budget]);
      const [tally] = await store.adjust([refund(budget, 50, NOW)], NOW + HOUR - 1);
      expect(tally).toMatchObject({ count: 10, resetMs: 1 });
    });

    it("changes nothing in the next window, which has not been charged for it", async () => {
      const budget = counter({ limit: 100, cost: 60, windowMs: HOUR });
      await decide([budget]);
      await decide([budget], NOW + HOUR);
      const [tally] = await store.adjust([refund(budget, 50, NOW)], NOW + HOUR);
      expect(tally).toMatchObject({ count: 60, resetMs: HOUR });
      expect(await used([budget], NOW + HOUR)).toEqual([60]);
    });

    it("applies to each counter of a group by the window of that counter", async () => {
      const budgets = [MINUTE, HOUR].map((windowMs) =>
        counter({ limit: 100, cost: 60, windowMs, identity: "several" }),
      );
      await decide(budgets);
      await decide(budgets.slice(0, 1), NOW + MINUTE);
      const refunds = budgets.map((each) => refund(each, 50, NOW));
      const tallies = await store.adjust(refunds, NOW + MINUTE);
      expect(tallies.map(({ count }) => count)).toEqual([60, 10]);
    });

    it("leaves a counter that rolls over unchanged once a later window has repaid a part", async () => {
      const rolling = counter({
        limit: 100,
        ceiling: 150,
        cost: 90,
        windowMs: HOUR,
        rollsOver: true,
      });
      await decide([rolling]);
      const [early] = await store.adjust([refund(rolling, 20, NOW)], NOW);
      expect(early?.count).toBe(70);
      const [late] = await store.adjust([refund(rolling, 20, NOW)], NOW + HOUR);
      expect(late?.count).toBe(0);
      await decide([rolling], NOW + HOUR);
      if (!clockIsOurs) return;
      // The clock has gone back, but the count belongs to the later window.
      const [back] = await store.adjust([refund(rolling, 20, NOW)], NOW + HOUR - 1);
      expect(back?.count).toBe(90);
    });

    it("ends no ban", async () => {
      const login = counter({ limit: 1, windowMs: HOUR, ban: bans(MINUTE) });
      await decide([login]);
      await decide([login]);
      const [tally] = await store.adjust([refund(login, 1, NOW)], NOW);
      expect(tally?.count).toBe(0);
      expect(tally?.banMs).toBeGreaterThan(0);
    });
  });
}
