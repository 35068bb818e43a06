import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { NOTHING } from "../../../../src/stores/batch.ts";
import type { CounterObject } from "../../../../src/stores/durable-object/counter-object.ts";
import { MAX_WAITING } from "../../../../src/stores/durable-object/slot-line.ts";
import { counter } from "../../../suite/counters.ts";
import { runIn, useVirtualTime, withObjects } from "./objects-in-one.ts";

const MINUTE = 60_000;
const CLAIM_MS = 2000;

beforeEach(() => {
  useVirtualTime();
  vi.useFakeTimers({
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    now: Date.now(),
  });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** Runs a task with functions that call one object, in which a client may have two open requests. */
function inObject(task: (calls: ReturnType<typeof callsOf>) => Promise<void>): Promise<void> {
  return withObjects((objects) => task(callsOf(objects.getByName("one") as never)));
}

function callsOf(object: CounterObject) {
  const identity = crypto.randomUUID();
  const all = counter({ identity, key: `test:slots:${identity}`, limit: 2, windowMs: MINUTE });
  const slot = (id: number): Demand => ({ ...all, slot: id });
  /** The slots that were taken by waiting, in their order. The number is negative for a wait in vain. */
  const ended: number[] = [];
  const join = (id: number, waitMs = 5000, ceiling = 2) =>
    object
      .awaitSlot({ ...slot(id), ceiling }, waitMs, CLAIM_MS)
      .then((waitedMs) => ended.push(waitedMs === undefined ? -id : id));
  const take = async (id: number) => {
    return (await runIn(object, [slot(id)])).admitted;
  };
  const free = (id: number) =>
    object.run([
      { ...NOTHING, now: undefined, unused: [{ counter: slot(id), quota: 1, window: 0 }] },
    ]);
  return { object, slot, ended, join, take, free };
}

describe("the calls to an object that wait for slots", () => {
  it("get them in the order of arrival, before any later request", () =>
    inObject(async ({ object, slot, ended, join, take, free }) => {
      await take(1);
      await take(2);
      for (const id of [3, 4, 5]) join(id);
      free(1);
      expect(await take(9)).toBe(false);
      // One call gives a slot back and asks for it.
      const unused = [{ counter: slot(2), quota: 1, window: 0 }];
      expect((await runIn(object, [slot(8)], { unused })).admitted).toBe(false);
      expect(ended).toEqual([3, 4]);
      expect([await take(3), await take(4)]).toEqual([true, true]);
      await pass(5000);
      expect(ended).toEqual([3, 4, -5]);
    }));

  it("get a free slot at once", () =>
    inObject(async ({ ended, join, take }) => {
      await take(1);
      join(2);
      join(3);
      await pass(0);
      expect(ended).toEqual([2]);
    }));

  it("leave a slot to the next one if they do not use it in time", () =>
    inObject(async ({ ended, join, take }) => {
      await take(1);
      for (const id of [2, 3]) join(id);
      await pass(CLAIM_MS);
      expect(ended).toEqual([2, 3]);
    }));

  it("get the slots that expire", () =>
    inObject(async ({ ended, join, take }) => {
      await take(1);
      await take(2);
      await pass(MINUTE - 1500);
      join(3);
      await pass(1400);
      expect(ended).toEqual([]);
      await pass(1100);
      expect(ended).toEqual([3]);
    }));

  it("get the slots that have just expired before any newcomer", () =>
    inObject(async ({ ended, join, take }) => {
      await take(1);
      await pass(900);
      await take(2);
      await pass(MINUTE - 1000);
      join(3);
      await pass(101);
      expect(ended).toEqual([]);
      expect(await take(9)).toBe(false);
      expect(ended).toEqual([3]);
    }));

  it("do not wait for those of a tier with fewer slots", () =>
    inObject(async ({ ended, join, take, free }) => {
      await take(1);
      await take(2);
      join(3, 5000, 1);
      join(4);
      free(1);
      await pass(0);
      expect(ended).toEqual([4]);
    }));

  it("end if their slots are given back", () =>
    inObject(async ({ ended, join, take, free }) => {
      await take(1);
      await take(2);
      for (const id of [3, 4]) join(id);
      free(3);
      free(5);
      join(5);
      await pass(0);
      expect(ended.sort()).toEqual([-3, -5]);
      free(1);
      await pass(0);
      expect(ended.slice(2)).toEqual([4]);
    }));

  it("keep their place if they call again", () =>
    inObject(async ({ ended, join, take, free }) => {
      await take(1);
      await take(2);
      for (const id of [3, 4, 3]) join(id);
      free(1);
      await pass(0);
      expect(ended).toEqual([-3, 3]);
    }));

  it("get the slots of a hold that is released, and of a reset", () =>
    inObject(async ({ object, slot, ended, join, take }) => {
      await take(1);
      await runIn(object, [slot(2)], { hold: { id: "hold", isFinal: false } });
      for (const id of [3, 4, 5]) join(id);
      await object.endHold("hold", false);
      await pass(0);
      expect(ended).toEqual([3]);
      object.run([{ ...NOTHING, now: undefined, removed: [slot(0)] }]);
      await pass(0);
      expect(ended).toEqual([3, 4, 5]);
    }));

  it("are bounded, and leave no timer behind", () =>
    inObject(async ({ ended, join, take }) => {
      await take(1);
      await take(2);
      for (let id = 3; id < 3 + MAX_WAITING; id++) join(id);
      await pass(0);
      expect(ended).toEqual([]);
      join(2000);
      await pass(0);
      expect(ended).toEqual([-2000]);
      await pass(5000);
      expect(ended).toHaveLength(1 + MAX_WAITING);
      expect(vi.getTimerCount()).toBe(0);
    }));
});
