import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { NOTHING } from "../../../../src/stores/batch.ts";
import type { CounterObject } from "../../../../src/stores/durable-object/counter-object.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { runIn, useVirtualTime, withObjects } from "./objects-in-one.ts";

beforeEach(useVirtualTime);

afterEach(() => {
  vi.useRealTimers();
});

/** Runs a task with functions that call one object. */
function inObject(task: (calls: ReturnType<typeof callsOf>) => Promise<void>): Promise<void> {
  return withObjects((objects) => task(callsOf(objects.getByName("one") as never)));
}

function callsOf(object: CounterObject) {
  const day = 24 * 3_600_000;
  const decide = (...group: Demand[]) => runIn(object, group);
  return {
    quotaOf: (fields: Partial<Demand>) => counter({ windowMs: day, ...fields }),
    decide,
    decideAt: (now: number, ...group: Demand[]) => runIn(object, group, { now }),
    hold: (id: string, ...group: Demand[]) =>
      runIn(object, group, { hold: { id, isFinal: false } }),
    /** Decides as the object that decides last. */
    decideLast: (id: string, ...group: Demand[]) =>
      runIn(object, group, { hold: { id, isFinal: true } }),
    release: (id: string) => object.endHold(id, false),
    keep: (id: string) => object.endHold(id, true),
    reset: (counter: Demand, keepsCount = false) =>
      object.run([{ ...NOTHING, now: undefined, removed: [{ ...counter, keepsCount }] }]),
    giveBack: (counter: Demand) =>
      object.run([{ ...NOTHING, now: undefined, unused: [{ counter, quota: 1, window: 0 }] }]),
    usedOf: async (quota: Demand) => (await decide({ ...quota, cost: 0 })).tallies[0]?.count,
  };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A denial of quota that may be back in a moment. */
const HELD = { admitted: false, tallies: [{ isUncertain: true, retryMs: 1000, banMs: 0 }] };

describe("a request that lacks only quota that others hold", () => {
  it("is denied at once, should retry after a second, and passes after the release", () =>
    inObject(async ({ quotaOf, hold, decide, release }) => {
      const quota = quotaOf({ limit: 1 });
      await hold("first", quota);
      expect(await decide(quota)).toMatchObject(HELD);
      expect(await release("first")).toBe(true);
      expect(await decide(quota)).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    }));

  it("begins no ban and gets no strike until the quota is kept", () =>
    inObject(async ({ quotaOf, hold, decide, keep }) => {
      const quota = quotaOf({ limit: 1, ban: bans(60_000, 600_000) });
      await hold("first", quota);
      for (const _ of [1, 2, 3]) expect(await decide(quota)).toMatchObject(HELD);
      expect(await keep("first")).toBe(true);
      const { admitted, tallies } = await decide(quota);
      expect(admitted).toBe(false);
      expect(tallies[0]).toMatchObject({ banMs: 60_000, count: 1 });
      expect(tallies[0]).not.toHaveProperty("isUncertain");
      expect(tallies[0]).not.toHaveProperty("retryMs");
    }));

  it("finds released quota of a sliding window back in the sub-window that was charged", () =>
    inObject(async ({ quotaOf, hold, decide, release, usedOf }) => {
      const quota = quotaOf({ limit: 3, subWindows: 2, windowMs: 10_000 });
      await hold("first", quota);
      await pass(10_000);
      await decide({ ...quota, cost: 2 });
      expect(await release("first")).toBe(true);
      await pass(20_000);
      // The first sub-window does not count any more, and the second one has lost nothing.
      expect(await usedOf(quota)).toBe(2);
    }));

  it("counts the quota of several holds", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 3 });
      await decide(quota);
      await hold("first", quota);
      await hold("second", quota);
      expect(await decide({ ...quota, cost: 2 })).toMatchObject(HELD);
      const denied = await decide({ ...quota, cost: 3 });
      expect(denied).toMatchObject({ admitted: false, tallies: [{ isUncertain: true }] });
      expect(denied.tallies[0]).not.toHaveProperty("retryMs");
    }));

  it("may hold quota of its own, and is one of many equal requests", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 2 });
      expect(await hold("first", quota)).toMatchObject({ admitted: true });
      expect(await decide(quota)).toMatchObject({ admitted: true });
      expect(await hold("second", quota)).toMatchObject(HELD);
    }));

  it("is banned for a limit that it exceeds all the same, and for no other one", () =>
    inObject(async ({ quotaOf, hold, decide, release }) => {
      const held = quotaOf({ limit: 1, ban: bans(60_000) });
      const exceeded = quotaOf({ limit: 0, ban: bans(60_000), identity: held.identity });
      const roomy = quotaOf({ identity: held.identity });
      await hold("first", held);
      expect(await decide(held, exceeded, roomy)).toMatchObject({
        admitted: false,
        tallies: [{ ...HELD.tallies[0] }, { banMs: 60_000 }, { banMs: 0 }],
      });
      await release("first");
      expect(await decide(held)).toMatchObject({ admitted: true });
    }));

  it("is denied by its ban while it is banned", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1, ban: bans(60_000) });
      await decide({ ...quota, cost: 2 });
      const { ban: _, ...withoutBan } = quota;
      await hold("first", withoutBan);
      const denied = await decide(quota);
      expect(denied).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
      expect(denied.tallies[0]).not.toHaveProperty("retryMs");
    }));

  it("does not rely on the charge of an object that has decided last", () =>
    inObject(async ({ quotaOf, decideLast, decide }) => {
      const quota = quotaOf({ limit: 1, ban: bans(60_000) });
      await decideLast("last", quota);
      const denied = await decide(quota);
      expect(denied).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
      expect(denied.tallies[0]).not.toHaveProperty("isUncertain");
    }));

  it("gets the slot of a hold that is released", () =>
    inObject(async ({ quotaOf, hold, decide, release }) => {
      const slot = quotaOf({ limit: 1, slot: 1 });
      await hold("first", slot);
      const other = { ...slot, slot: 2 };
      expect(await decide(other)).toMatchObject(HELD);
      await release("first");
      expect(await decide(other)).toMatchObject({ admitted: true });
    }));
});

describe("a denial by one counter", () => {
  it("tells no certain count of another counter whose quota is held", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const held = quotaOf({ limit: 1 });
      const full = quotaOf({ limit: 0, identity: held.identity });
      await hold("first", { ...held, limit: 5, ceiling: 5 });
      const { tallies } = await decide({ ...held, limit: 5, ceiling: 5 }, full);
      expect(tallies[0]).toMatchObject({ count: 1, isUncertain: true });
      expect(tallies[0]).not.toHaveProperty("retryMs");
      expect(tallies[1]).not.toHaveProperty("isUncertain");
    }));
});

describe("a hold that is never ended", () => {
  it("stays charged, and after 30 s its quota is denied for the whole window", () =>
    inObject(async ({ quotaOf, hold, decide, usedOf }) => {
      const quota = quotaOf({ limit: 1, ban: bans(60_000) });
      await hold("first", quota);
      await pass(29_999);
      expect(await decide(quota)).toMatchObject(HELD);
      await pass(1);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
      expect(await usedOf(quota)).toBe(1);
    }));

  it("returns its quota if it is released late", () =>
    inObject(async ({ quotaOf, hold, decide, release, usedOf }) => {
      const quota = quotaOf({ limit: 2 });
      await hold("first", quota);
      await hold("second", quota);
      await pass(25_000);
      await release("first");
      expect((await decide(quota)).admitted).toBe(true);
      expect((await decide(quota)).admitted).toBe(false);
      expect(await usedOf(quota)).toBe(2);
    }));

  it("is one of at most 4,096: the oldest ones are dropped, and stay charged", () =>
    inObject(async ({ quotaOf, hold, release, usedOf }) => {
      const quota = quotaOf({ limit: 9999 });
      for (let held = 0; held <= 4096; held++) await hold(`${held}`, quota);
      expect(await release("0")).toBe(false);
      expect(await release("1")).toBe(true);
      expect(await usedOf(quota)).toBe(4096);
    }));
});

describe("a hold that is released", () => {
  it("returns nothing to a counter that rolls over after its window, because the next grant has repaid the charge", () =>
    inObject(async ({ hold, decide, release }) => {
      const quota = counter({ windowMs: 60_000, limit: 20, ceiling: 40, rollsOver: true });
      for (let held = 0; held < 15; held++) await hold(`${held}`, quota);
      await pass(60_000);
      let admitted = 0;
      const take = async (requests: number) => {
        for (let request = 0; request < requests; request++) {
          if ((await decide(quota)).admitted) admitted++;
        }
      };
      await take(15);
      for (let held = 0; held < 15; held++) await release(`${held}`);
      await take(60);
      expect(admitted).toBe(40);
    }));

  it("returns reserved quota at once, in any order", () =>
    inObject(async ({ hold, release, keep, usedOf }) => {
      const fields = { limit: 2, windowMs: 60_000, capacity: 2, ceiling: 12, rollsOver: true };
      const quota = counter(fields);
      for (let held = 0; held < 6; held++) await hold(`${held}`, quota);
      const used = [];
      for (const id of ["2", "5", "0"]) {
        await release(id);
        used.push(await usedOf(quota));
      }
      await keep("1");
      expect([...used, await usedOf(quota)]).toEqual([5, 4, 3, 3]);
    }));

  it("returns the whole block of the object that has decided last, and only once", () =>
    inObject(async ({ quotaOf, decide, decideLast, release, usedOf }) => {
      const quota = quotaOf({ limit: 800 });
      await decide(quota);
      expect(await decideLast("last", { ...quota, block: 50 })).toMatchObject({
        tallies: [{ count: 51, charged: 50 }],
      });
      await release("last");
      await release("last");
      expect(await usedOf(quota)).toBe(1);
    }));

  it("returns nothing that a reset has removed, but the quota and slots of other rules", () =>
    inObject(async ({ quotaOf, hold, decide, reset, release, usedOf }) => {
      const [removed, kept] = [quotaOf({ limit: 5 }), quotaOf({ limit: 5 })];
      const slot = quotaOf({ limit: 1, slot: 7 });
      await hold("first", removed, kept, slot);
      await reset(removed);
      await decide(removed);
      expect(await release("first")).toBe(true);
      expect([await usedOf(removed), await usedOf(kept)]).toEqual([1, 0]);
      expect((await decide({ ...slot, slot: 8 })).admitted).toBe(true);
    }));

  it("returns its quota after a reset that keeps the count", () =>
    inObject(async ({ quotaOf, hold, reset, release, usedOf }) => {
      const quota = quotaOf({ limit: 5 });
      await hold("first", quota);
      await reset(quota, true);
      await release("first");
      expect(await usedOf(quota)).toBe(0);
    }));
});

/** A counter of a limit in any second. A minute after its start, nothing of it counts any more. */
const sliding = (fields: Partial<Demand> = {}) =>
  counter({ windowMs: 100, subWindows: 10, ...fields });

describe("a hold in a sub-window", () => {
  it("returns its quota to this sub-window, although later ones were charged since", () =>
    inObject(async ({ hold, decide, release }) => {
      const quota = sliding({ limit: 3 });
      await decide(quota);
      await pass(100);
      await hold("first", quota);
      await pass(500);
      await decide(quota);
      expect((await decide(quota)).tallies[0]).toMatchObject({ retryMs: 1000 });
      await release("first");
      const { tallies, now } = await decide({ ...quota, cost: 0 });
      expect(tallies[0]?.ring?.counts).toEqual([1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
      // The first charge counts for a whole second after the end of its sub-window.
      expect([tallies[0]?.count, (now + (tallies[0]?.resetMs ?? 0)) % 1000]).toEqual([2, 100]);
    }));

  it("returns nothing when the sub-window counts no longer", () =>
    inObject(async ({ hold, decide, release, usedOf }) => {
      const quota = sliding({ limit: 2 });
      await hold("first", quota);
      await pass(1100);
      await decide(quota);
      await decide(quota);
      await release("first");
      expect(await usedOf(quota)).toBe(2);
    }));

  it("returns its quota if the row was ahead of the clock", () =>
    inObject(async ({ hold, decide, release, usedOf, decideAt }) => {
      const quota = sliding({ limit: 3 });
      const ahead = Date.now() + 350;
      await decideAt(ahead, quota);
      await hold("first", quota);
      await decide(quota);
      expect(await usedOf(quota)).toBe(3);
      await release("first");
      const { ring } = (await decide({ ...quota, cost: 0 })).tallies[0] ?? {};
      expect(ring).toMatchObject({ window: Math.floor(ahead / 100) });
      expect(ring?.counts.slice(0, 4)).toEqual([2, 0, 0, 0]);
    }));

  it("excuses no client any more when the sub-window counts no longer", () =>
    inObject(async ({ hold, decide }) => {
      const quota = sliding({ limit: 1, ban: bans(60_000) });
      await hold("first", quota);
      expect(await decide(quota)).toMatchObject(HELD);
      await pass(1100);
      expect(await decide(quota)).toMatchObject({ admitted: true });
      const denied = await decide(quota);
      expect(denied).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
      expect(denied.tallies[0]).not.toHaveProperty("retryMs");
    }));
});

describe("a reset", () => {
  it("lets the next requests be denied for certain, although the hold is still open", () =>
    inObject(async ({ quotaOf, hold, decide, reset }) => {
      const quota = quotaOf({ limit: 1 });
      await hold("first", quota);
      await reset(quota);
      expect(await decide(quota)).toMatchObject({ admitted: true });
      expect((await decide(quota)).tallies[0]).not.toHaveProperty("isUncertain");
    }));
});

describe("what is released before its charge", () => {
  it("is not charged by a call that arrives later", () =>
    inObject(async ({ quotaOf, hold, decideLast, release, usedOf }) => {
      const quota = quotaOf({ limit: 5 });
      expect(await release("first")).toBe(false);
      expect(await release("last")).toBe(false);
      expect(await hold("first", quota)).toMatchObject({ admitted: false });
      expect(await decideLast("last", quota)).toMatchObject({ admitted: false });
      expect(await usedOf(quota)).toBe(0);
    }));

  it("takes no slot that was given back", () =>
    inObject(async ({ quotaOf, decide, giveBack, usedOf }) => {
      const slot = quotaOf({ limit: 2, slot: 1 });
      await giveBack(slot);
      expect(await decide(slot)).toMatchObject({ admitted: false });
      expect(await decide({ ...slot, slot: 2 })).toMatchObject({ admitted: true });
      expect(await usedOf({ ...slot, slot: 0 })).toBe(1);
    }));

  it("is remembered for 30 s", () =>
    inObject(async ({ quotaOf, hold, release, decide }) => {
      const quota = quotaOf({ limit: 5 });
      await release("first");
      await pass(30_000);
      await release("another");
      expect(await hold("first", quota)).toMatchObject({ admitted: true });
      expect(await decide(quota)).toMatchObject({ admitted: true });
    }));
});
