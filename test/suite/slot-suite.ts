import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Demand } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";
import { driverOf, HOUR, MINUTE, NOW } from "./driver.ts";
import { drawn, propertyRuns, runs } from "./runs.ts";
import { verdictOf } from "./verdict.ts";

const LIMIT = 2;

/** Returns a counter of open requests, whose slots expire after a minute. */
function slots(identity: string = crypto.randomUUID(), limit = 3) {
  const key = `test:rule:concurrent:${identity}`;
  const all = counter({ identity, key, limit, windowMs: MINUTE });
  return (slot: number): Demand => ({ ...all, slot });
}

function returned(...counters: readonly Demand[]) {
  return counters.map((each) => ({ counter: each, quota: 1, window: 0 }));
}

/** The part of the suites for counters of open requests: each behaviour, and a comparison with a model. */
export function slotSuite(createStore: () => Store, sequences: number): void {
  describe("slots", () => {
    const store = createStore();
    const { decide, used } = driverOf(store);

    it("are taken up to the limit, and again after a return", async () => {
      const of = slots();
      const taken = [await decide([of(1)]), await decide([of(2)]), await decide([of(3)])];
      expect(taken.map(({ admitted, tallies }) => [admitted, tallies[0]?.count])).toEqual([
        [true, 1],
        [true, 2],
        [true, 3],
      ]);
      const denied = await decide([of(4)]);
      expect(denied.admitted).toBe(false);
      expect(denied.tallies[0]).toMatchObject({ count: 3, resetMs: 1000, banMs: 0 });
      await store.adjust([], NOW, returned(of(2)));
      expect(await used([of(0)])).toEqual([2]);
      expect((await decide([of(5)])).admitted).toBe(true);
      expect((await decide([of(6)])).admitted).toBe(false);
    });

    it("are returned once, and only by their own id", async () => {
      const of = slots();
      for (const id of [1, 2, 3]) await decide([of(id)]);
      await store.adjust([], NOW, returned(of(9), of(1), of(1)));
      expect(await used([of(0)])).toEqual([2]);
    });

    it("are returned with the next decision", async () => {
      const of = slots();
      for (const id of [1, 2, 3]) await decide([of(id)]);
      const { groups } = await verdictOf(store.decide([[of(4)]], NOW, returned(of(1))));
      expect(groups[0]?.admitted).toBe(true);
    });

    it("count once for the request that has taken them", async () => {
      const of = slots();
      for (const id of [1, 2, 3]) await decide([of(id)]);
      const again = await decide([of(2)], NOW + 30_000);
      expect([again.admitted, again.tallies[0]?.count]).toEqual([true, 3]);
      expect(await used([of(0)], NOW + MINUTE)).toEqual([1]);
    });

    it("expire one by one, unless they are renewed", async () => {
      const of = slots();
      await decide([of(1)], NOW);
      await decide([of(2)], NOW + 20_000);
      await store.adjust([{ ...of(1), cost: 0 }], NOW + 30_000);
      expect(await used([of(0)], NOW + MINUTE + 19_999)).toEqual([2]);
      expect(await used([of(0)], NOW + MINUTE + 20_000)).toEqual([1]);
      expect(await used([of(0)], NOW + MINUTE + 29_999)).toEqual([1]);
      expect(await used([of(0)], NOW + MINUTE + 30_000)).toEqual([0]);
    });

    it("are not opened again by a renewal after their return or their expiry", async () => {
      const of = slots();
      await decide([of(1)]);
      await decide([of(2)]);
      await store.adjust([], NOW, returned(of(1)));
      const [tally] = await store.adjust([{ ...of(1), cost: 0 }], NOW);
      expect(tally?.count).toBe(1);
      await store.adjust([{ ...of(2), cost: 0 }], NOW + MINUTE);
      expect(await used([of(0)], NOW + MINUTE)).toEqual([0]);
    });

    it("are taken together with the quota of windows, or not at all", async () => {
      const identity = crypto.randomUUID();
      const of = slots(identity);
      const quota = counter({ identity, limit: 2, windowMs: HOUR });
      await decide([quota, of(1)]);
      await decide([quota, of(2)]);
      expect((await decide([quota, of(3)])).admitted).toBe(false);
      expect(await used([quota, of(0)])).toEqual([2, 2]);
      const wide = counter({ identity, limit: 9, windowMs: HOUR });
      await decide([of(3)]);
      expect((await decide([wide, of(4)])).admitted).toBe(false);
      expect(await used([wide, of(0)])).toEqual([0, 3]);
    });

    it("are taken by two clients together, or by none", async () => {
      const [one, other] = [slots(), slots()];
      for (const id of [1, 2, 3]) await decide([other(id)]);
      expect((await decide([one(4), other(4)])).admitted).toBe(false);
      expect(await used([one(0)])).toEqual([0]);
      await store.adjust([], NOW, returned(other(2)));
      expect((await decide([one(5), other(5)])).admitted).toBe(true);
      expect(await used([one(0)])).toEqual([1]);
      expect(await used([other(0)])).toEqual([3]);
    });

    it("are only counted by a check", async () => {
      const of = slots();
      const check = () => decide([{ ...of(0), checkOnly: true }]);
      for (const id of [1, 2, 3]) {
        expect((await check()).admitted).toBe(true);
        await decide([of(id)]);
      }
      expect((await check()).admitted).toBe(false);
      expect(await used([of(0)])).toEqual([3]);
    });

    it("are removed by a reset", async () => {
      const of = slots();
      for (const id of [1, 2, 3]) await decide([of(id)]);
      await store.reset([of(0)], NOW);
      expect(await used([of(0)])).toEqual([0]);
      await store.adjust([], NOW, returned(of(1)));
      expect((await decide([of(4)])).admitted).toBe(true);
    });

    it("are never taken above the limit by many requests at once", async () => {
      const of = slots();
      const decided = Array.from({ length: 50 }, (_, id) => decide([of(id + 1)]));
      const admitted = (await Promise.all(decided)).filter((each) => each.admitted);
      expect(admitted).toHaveLength(3);
    });

    it("agree with a model in every order in which three requests take, renew and return them", async () => {
      for (const steps of drawn(ORDERS).slice(0, runs(3 * sequences))) await compare(store, steps);
    });

    it("agree with a model in random sequences", () =>
      fc.assert(
        fc.asyncProperty(SEQUENCE, (steps) => compare(store, steps)),
        propertyRuns(sequences),
      ));
  });
}

/** A step of a sequence: its operation, the place of its request, the client, and the time that passes before it. */
const SEQUENCE = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "take",
      "take",
      "take",
      "retake",
      "check",
      "renew",
      "free",
      "refund",
      "reset",
    ),
    place: fc.integer({ min: 1, max: 5 }),
    client: fc.nat({ max: 2 }),
    // Redis removes a key after its real time to live, so this time must not be almost 0.
    passMs: fc.constantFrom(0, 0, 1, 20_000, MINUTE - 1000, MINUTE),
  }),
  { minLength: 8, maxLength: 30 },
);

const LIFE = ["take", "renew", "free"] as const;

/** Every order of the lives of three requests, and every moment at which the slots taken until then expire. */
const ORDERS: readonly Step[][] = ordersOf([0, 0, 0]).flatMap((order) =>
  [...order.keys(), order.length].map((at) =>
    order.map((step, index) => ({ ...step, passMs: index === at ? MINUTE : 1 })),
  ),
);

/** @param done the number of steps that each request has done */
function ordersOf(done: readonly number[]): Omit<Step, "passMs">[][] {
  const orders = done.flatMap((steps, place) => {
    const kind = LIFE[steps];
    if (!kind) return [];
    const after = ordersOf(done.map((each, index) => (index === place ? each + 1 : each)));
    return after.map((rest) => [{ kind, place, client: 0 }, ...rest]);
  });
  return orders.length > 0 ? orders : [[]];
}

async function compare(store: Store, steps: readonly Step[]): Promise<void> {
  const clients = [0, 1, 2].map(() => {
    return {
      of: slots(crypto.randomUUID(), LIMIT),
      open: new Map<number, number>(),
      ids: new Map<number, number>(),
    };
  });
  let now = NOW;
  for (const [step, { kind, place, client, passMs }] of steps.entries()) {
    now += passMs;
    const { of, open, ids } = clients[client] as (typeof clients)[number];
    // Each request has an id of its own.
    if (kind === "take") ids.set(place, step + 1);
    const id = ids.get(place) ?? 1000 + place;
    for (const [each, expiresAt] of open) if (expiresAt <= now) open.delete(each);
    const isRetaken = kind === "retake" && open.has(id);
    const isFree = open.size - Number(isRetaken) < LIMIT;
    let count: number | undefined;
    // A slot that was given back is not taken again, because its return may arrive before the call that takes it.
    if (kind === "take" || isRetaken || kind === "check") {
      const isTaken = kind !== "check";
      const demand = isTaken ? of(id) : { ...of(0), checkOnly: true };
      const { groups } = await verdictOf(store.decide([[demand]], now));
      expect(groups[0]?.admitted).toBe(isFree);
      if (isTaken && isFree) open.set(id, now + MINUTE);
      count = groups[0]?.tallies[0]?.count;
    } else if (kind === "renew" || kind === "refund") {
      const cost = kind === "renew" ? 0 : -1;
      count = (await store.adjust([{ ...of(id), cost }], now))[0]?.count;
      if (kind === "refund") open.delete(id);
      else if (open.has(id)) open.set(id, now + MINUTE);
    } else if (kind === "retake") {
      count = open.size;
    } else if (kind === "free") {
      open.delete(id);
      await store.adjust([], now, returned(of(id)));
    } else {
      open.clear();
      await store.reset([of(0)], now);
    }
    count ??= (await store.adjust([{ ...of(0), cost: 0 }], now))[0]?.count;
    expect(count).toBe(open.size);
  }
}

type Step = typeof SEQUENCE extends fc.Arbitrary<readonly (infer Each)[]> ? Each : never;
