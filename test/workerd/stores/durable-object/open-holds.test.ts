import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import type { CounterObject } from "../../../../src/stores/durable-object/counter-object.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { useVirtualTime, withObjects } from "./objects-in-one.ts";

const MAX_WAIT_MS = 250;

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
  return {
    object,
    quotaOf: (fields: Partial<Demand>) => counter({ windowMs: day, ...fields }),
    hold: (quota: Demand, id?: string) => object.hold([quota], undefined, MAX_WAIT_MS, id),
    decide: async (quota: Demand, id?: string) => {
      const [verdict] = await object.decide([[quota]], undefined, MAX_WAIT_MS, [], id);
      return verdict;
    },
    usedOf: async (quota: Demand) => {
      const [check] = await object.decide([[{ ...quota, cost: 0 }]], undefined, 0);
      return check?.tallies[0]?.count;
    },
  };
}

/** Returns an object whose `value` is set when the call returns. */
function resultOf<Result>(call: Promise<Result>): { value?: Result } {
  const result: { value?: Result } = {};
  call.then((value) => {
    result.value = value;
  });
  return result;
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe("a hold that lasts longer than its window", () => {
  it("returns nothing to a counter that rolls over, because the next grant has repaid the charge", () =>
    inObject(async ({ object, hold, decide }) => {
      const quota = counter({ windowMs: 60_000, limit: 20, ceiling: 40, rollsOver: true });
      const ids = [];
      for (let held = 0; held < 15; held++) ids.push((await hold(quota)).hold as string);
      await pass(60_000);
      let admitted = 0;
      const take = async (requests: number) => {
        for (let request = 0; request < requests; request++) {
          if ((await decide(quota))?.admitted) admitted++;
        }
      };
      await take(15);
      for (const id of ids) object.endHold(id, false);
      await take(60);
      expect(admitted).toBe(40);
    }));
});

describe("holds of reserved quota", () => {
  it("give their quota back in any order of their releases, except below a hold that is kept", () =>
    inObject(async ({ object, hold, decide, usedOf }) => {
      const fields = { limit: 2, windowMs: 60_000, capacity: 2, ceiling: 12, rollsOver: true };
      const quota = counter(fields);
      const ids: string[] = [];
      for (let held = 0; held < 9; held++) ids.push((await hold(quota)).hold as string);
      const used = [];
      for (const [index, keep] of [
        [4, false],
        [8, false],
        [0, false],
        [6, false],
        [7, false],
        [5, true],
        [1, false],
      ] as const) {
        await object.endHold(ids[index] as string, keep);
        used.push(await usedOf(quota));
      }
      // The hold at place 5 has reserved after those at 4, 1 and 0.
      expect(used).toEqual([9, 8, 8, 8, 6, 6, 6]);
      object.reset([quota], undefined);
      await decide(quota);
      const { hold: last } = await hold(quota);
      await object.endHold(last as string, false);
      expect(await usedOf(quota)).toBe(1);
    }));
});

describe("a reset of one rule", () => {
  it("leaves the holds of other rules their charges and slots, which a release gives back", () =>
    inObject(async ({ object, quotaOf, usedOf }) => {
      const [reset, kept] = [quotaOf({ limit: 5 }), quotaOf({ limit: 5 })];
      const slot = quotaOf({ limit: 1, slot: 7 });
      const { hold: id } = await object.hold([reset, kept, slot], undefined, 0);
      object.reset([reset], undefined);
      await object.decide([[reset]], undefined, 0);
      await object.endHold(id as string, false);
      expect([await usedOf(reset), await usedOf(kept)]).toEqual([1, 0]);
      const [next] = await object.decide([[{ ...slot, slot: 8 }]], undefined, 0);
      expect(next?.admitted).toBe(true);
    }));
});

describe("calls that wait for a hold", () => {
  it("are both admitted if the release is enough for both", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 2 });
      const { hold: id } = await hold({ ...quota, cost: 2 });
      const both = Promise.all([decide(quota), decide(quota)]);
      object.endHold(id as string, false);
      expect((await both).map((each) => each?.admitted)).toEqual([true, true]);
    }));

  it("are admitted one after the other if the first one is released too", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1 });
      const { hold: id } = await hold(quota);
      const [first, second] = [hold(quota), resultOf(decide(quota))];
      object.endHold(id as string, false);
      object.endHold((await first).hold as string, false);
      await pass(0);
      expect(second.value).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    }));

  it("are admitted although calls before them need more than was released", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 3 });
      const ids = [await hold(quota), await hold(quota), await hold(quota)].map(({ hold }) => hold);
      const large = resultOf(decide({ ...quota, cost: 3 }));
      const small = resultOf(decide(quota));
      object.endHold(ids[0] as string, false);
      await pass(0);
      expect(small.value).toMatchObject({ admitted: true });
      object.endHold(ids[1] as string, true);
      await pass(0);
      expect(large.value).toMatchObject({ admitted: false });
    }));

  it("are denied as soon as the hold is kept", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1 });
      const { hold: id } = await hold(quota);
      const calls = Array.from({ length: 9 }, () => resultOf(decide(quota)));
      object.endHold(id as string, true);
      await pass(0);
      for (const { value } of calls) {
        expect(value).toMatchObject({ admitted: false });
        expect(value).not.toHaveProperty("skipCache");
      }
    }));

  it("have one timer each, which they clear: 120 calls wait for 120 holds", () =>
    inObject(async ({ object, quotaOf, hold, decide, usedOf }) => {
      const quota = quotaOf({ limit: 120 });
      const holds = await Promise.all(Array.from({ length: 120 }, () => hold(quota)));
      const calls = Array.from({ length: 120 }, () => resultOf(decide(quota)));
      await pass(0);
      for (const [index, { hold: id }] of holds.entries()) {
        object.endHold(id as string, index % 3 === 0);
        await pass(0);
        expect(vi.getTimerCount()).toBeLessThanOrEqual(120);
      }
      const admitted = calls.filter(({ value }) => value?.admitted);
      const denied = calls.filter(({ value }) => value?.admitted === false);
      expect([admitted.length, denied.length]).toEqual([80, 40]);
      expect(await usedOf(quota)).toBe(120);
      expect(vi.getTimerCount()).toBe(0);
    }));

  it("make about two decisions for each release, however many calls wait", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 50 });
      const holds = await Promise.all(Array.from({ length: 50 }, () => hold(quota)));
      const calls = Array.from({ length: 200 }, () => resultOf(decide(quota)));
      await pass(0);
      const floor = vi.spyOn(Math, "floor");
      for (const { hold: id } of holds.slice(0, 49)) object.endHold(id as string, false);
      await pass(0);
      // Each wake-up makes one decision, and each decision calls Math.floor a few times.
      const callsPerRelease = floor.mock.calls.length / 49;
      floor.mockRestore();
      expect(callsPerRelease).toBeLessThan(60);
      expect(calls.filter(({ value }) => value?.admitted)).toHaveLength(49);
      await pass(MAX_WAIT_MS);
      expect(calls.every(({ value }) => value)).toBe(true);
    }));
});

describe("a hold that is never ended", () => {
  it("makes a call wait for at most maxWaitMs, and then the call is denied", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1 });
      await hold(quota);
      const call = resultOf(decide(quota));
      await pass(MAX_WAIT_MS - 1);
      expect(call.value).toBeUndefined();
      await pass(1);
      // Isolates do not cache this denial, because the quota may still be released.
      const denial = { admitted: false, skipCache: true, tallies: [{ count: 1 }] };
      expect(call.value).toMatchObject(denial);
    }));

  it("makes no call wait if it is older than maxWaitMs", () =>
    inObject(async ({ quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1 });
      await hold(quota);
      await pass(MAX_WAIT_MS);
      const call = resultOf(decide(quota));
      await pass(0);
      expect(call.value).toMatchObject({ admitted: false });
    }));

  it("returns its quota if it is released late, and otherwise stays charged", () =>
    inObject(async ({ object, quotaOf, hold, decide, usedOf }) => {
      const quota = quotaOf({ limit: 2 });
      const [{ hold: id }] = [await hold(quota), await hold(quota)];
      await pass(25_000);
      object.endHold(id as string, false);
      expect((await decide(quota))?.admitted).toBe(true);
      expect((await decide(quota))?.admitted).toBe(false);
      expect(await usedOf(quota)).toBe(2);
    }));

  it("bans no client for quota that may still be released", () =>
    inObject(async ({ object, quotaOf, hold, decide }) => {
      const quota = quotaOf({ limit: 1, ban: bans(60_000) });
      const { hold: id } = await hold(quota);
      await pass(MAX_WAIT_MS);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ banMs: 0 }] });
      object.endHold(id as string, true);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
    }));
});

describe("a hold that is released before its charge", () => {
  it("is not charged by a call that arrives later", () =>
    inObject(async ({ object, quotaOf, hold, decide, usedOf }) => {
      const quota = quotaOf({ limit: 5 });
      object.endHold("first", false);
      object.endHold("second", false);
      expect(await hold(quota, "first")).toMatchObject({ admitted: false });
      expect(await decide(quota, "second")).toMatchObject({ admitted: false });
      expect(await usedOf(quota)).toBe(0);
    }));

  it("is not charged by a call that still waits", () =>
    inObject(async ({ object, quotaOf, hold, usedOf }) => {
      const quota = quotaOf({ limit: 1 });
      const { hold: id } = await hold(quota);
      const waiting = hold(quota, "waiting");
      object.endHold("waiting", false);
      object.endHold(id as string, false);
      expect(await waiting).toMatchObject({ admitted: false });
      expect(await usedOf(quota)).toBe(0);
    }));

  it("has its whole block released, and only once, by the object that decides last", () =>
    inObject(async ({ object, quotaOf, decide, usedOf }) => {
      const quota = quotaOf({ limit: 800 });
      await decide(quota);
      expect(await decide({ ...quota, block: 50 }, "last")).toMatchObject({
        tallies: [{ count: 51, charged: 50 }],
      });
      object.endHold("last", false);
      object.endHold("last", false);
      expect(await usedOf(quota)).toBe(1);
    }));
});
