import { describe, expect, it } from "vitest";
import type { Demand } from "../../src/engine/counter.ts";
import { bans, counter } from "./counters.ts";
import { type Driver, HOUR, MINUTE, NOW } from "./driver.ts";

/** The length of the first ban. It is too long to end in real time, and rounds to no hour. */
const FIRST_MS = 10 * MINUTE;
const LENGTHS = { lengthsMs: [FIRST_MS, HOUR, 2 * HOUR, 3 * HOUR], forgetAfterMs: HOUR };

/** The part of the store suite for bans that become longer. */
export function describeEscalation({ store, decide, used, passTime }: Driver): void {
  const banned = (fields: Partial<Demand> = {}) =>
    counter({
      limit: 0,
      windowMs: 24 * HOUR,
      ban: LENGTHS,
      ...fields,
    });

  /** Ends the first ban. @returns the time at which it has ended */
  const afterFirstBan = (quotas: readonly Demand[]) => passTime(quotas, FIRST_MS);

  /** Decides groups that start bans. @returns the length of each ban, in whole hours */
  async function hoursOf(quotas: readonly Demand[], now: number): Promise<number[]> {
    const { tallies } = await decide(quotas, now);
    return tallies.map(({ banMs }) => Math.round(banMs / HOUR));
  }

  describe("bans that become longer", () => {
    it("take one strike for a burst of concurrent requests over the limit", async () => {
      const login = banned();
      const burst = (now: number) =>
        Promise.all(Array.from({ length: 30 }, () => decide([login], now)));
      for (const { admitted, tallies } of await burst(NOW)) {
        expect(admitted).toBe(false);
        expect(tallies[0]?.banMs).toBeLessThanOrEqual(FIRST_MS);
      }
      const lengths = (await burst(await afterFirstBan([login]))).map(({ tallies }) =>
        Math.round((tallies[0]?.banMs as number) / HOUR),
      );
      expect(new Set(lengths)).toEqual(new Set([1]));
    });

    it("take no strike for a check, an adjustment or a refund", async () => {
      const login = banned({ limit: 1 });
      const check = { ...login, cost: 2, checkOnly: true, neverBans: true };
      expect((await decide([check])).tallies[0]?.banMs).toBe(0);
      await store.adjust([{ ...login, cost: 5 }], NOW);
      await store.adjust([{ ...login, cost: -5 }], NOW);
      await decide([{ ...login, cost: 2 }]);
      const now = await afterFirstBan([login]);
      expect((await decide([check], now)).tallies[0]?.banMs).toBe(0);
      expect(await hoursOf([{ ...login, cost: 2 }], now)).toEqual([1]);
      expect(await used([login], now)).toEqual([0]);
    });

    it("take a strike for each window that a request exceeds, and none for other windows", async () => {
      const [minute, hour, other] = [banned(), banned(), banned({ limit: 9 })];
      const sameClient = [hour, other].map((each) => ({ ...each, identity: minute.identity }));
      await decide([minute, ...sameClient]);
      const now = await afterFirstBan([minute, ...sameClient]);
      expect(await hoursOf([minute, ...sameClient], now)).toEqual([1, 1, 0]);
      expect(await used([other], now)).toEqual([0]);
    });

    it("begin with the first length for each client, and again after a reset", async () => {
      const login = banned();
      await decide([login]);
      const now = await afterFirstBan([login]);
      expect(await hoursOf([login], now)).toEqual([1]);
      expect((await decide([banned()], now)).tallies[0]?.banMs).toBeLessThanOrEqual(FIRST_MS);
      await store.reset([login], now);
      expect((await decide([login], now)).tallies[0]?.banMs).toBeLessThanOrEqual(FIRST_MS);
    });

    it.each(["one length", "no length"])(
      "begin with the first length after a reset while the rule's ban has %s",
      async (kind) => {
        const login = banned();
        const { ban: _, ...rest } = login;
        const oneLength = { ...rest, ban: bans(FIRST_MS) };
        await decide([login]);
        const now = await afterFirstBan([login]);
        expect(await hoursOf([login], now)).toEqual([1]);
        await store.reset([kind === "no length" ? rest : oneLength], now);
        expect((await decide([login], now)).tallies[0]?.banMs).toBeLessThanOrEqual(FIRST_MS);
      },
    );

    it("of a rule in shadow mode do not ban or lengthen bans once the rule is enforced", async () => {
      const login = banned({ limit: 1 });
      const inShadow = { ...login, shadow: true };
      expect(await hoursOf([{ ...inShadow, cost: 2 }], NOW)).toEqual([0]);
      const now = await afterFirstBan([inShadow]);
      expect(await hoursOf([{ ...inShadow, cost: 2 }], now)).toEqual([1]);
      const check = { ...login, checkOnly: true };
      expect(await decide([check], now)).toMatchObject({ admitted: true });
      expect((await decide([{ ...login, cost: 2 }], now)).tallies[0]?.banMs).toBeLessThanOrEqual(
        FIRST_MS,
      );
      // The rule is in shadow mode again.
      expect((await decide([inShadow], now)).tallies[0]?.banMs).toBeGreaterThan(HOUR - MINUTE);
    });

    it.each([false, true])(
      "of both modes end with a reset (in shadow mode: %s)",
      async (shadow) => {
        const login = banned({ ban: bans(HOUR, HOUR) });
        const both = [login, { ...login, shadow: true }];
        for (const each of both) expect(await hoursOf([each], NOW)).toEqual([1]);
        await store.reset([{ ...login, shadow }], NOW);
        for (const each of both) {
          const check = { ...each, ceiling: 9, checkOnly: true, neverBans: true };
          expect(await decide([check])).toMatchObject({ admitted: true, tallies: [{ banMs: 0 }] });
        }
      },
    );

    it("are started by rules whose cost depends on the response, too", async () => {
      const login = banned({ limit: 2, checkOnly: true });
      expect((await decide([login])).admitted).toBe(true);
      await store.adjust([{ ...login, cost: 2 }], NOW);
      expect((await decide([login])).admitted).toBe(false);
      const now = await afterFirstBan([{ ...login, ceiling: 9 }]);
      expect(await hoursOf([login], now)).toEqual([1]);
    });

    it("are kept when the rule's ban becomes one length, and when the lengths return", async () => {
      const login = banned();
      await decide([login]);
      const now = await afterFirstBan([login]);
      expect(await hoursOf([login], now)).toEqual([1]);
      // The client stays banned, and not for as long as its strikes are remembered.
      expect(await hoursOf([{ ...login, ban: bans(FIRST_MS) }], now)).toEqual([1]);
      expect(await hoursOf([login], now)).toEqual([1]);
    });

    it("keep a ban that began when the rule had one length, which is no strike", async () => {
      const login = banned();
      await decide([{ ...login, ban: bans(2 * HOUR) }]);
      expect(await hoursOf([login], NOW)).toEqual([2]);
      const client = banned();
      await decide([{ ...client, ban: bans(FIRST_MS) }]);
      const now = await afterFirstBan([client]);
      expect((await decide([client], now)).tallies[0]?.banMs).toBeLessThanOrEqual(FIRST_MS);
    });
  });
}
