import { describe, expect, it } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { answersFrom, verdictOf } from "../../../suite/verdict.ts";
import { at, counter, flushPromises, leasesOver, readCount, stopClock } from "./leases-setup.ts";

stopClock();

/**
 * Creates an isolate. After `hold(true)`, each call to the store stops before and after the store handles it. Each stop
 * adds a function to `waiting`, which lets the call continue.
 */
function steppedIsolate() {
  const memory = createMemoryStore();
  const waiting: (() => void)[] = [];
  let isHeld = false;
  const gate = () => (isHeld ? new Promise<void>((go) => waiting.push(go)) : undefined);
  async function around<Result>(call: () => Promise<Result>): Promise<Result> {
    await gate();
    const result = await call();
    await gate();
    return result;
  }
  const innerStore: Store = {
    decide: (groups, now, unused) =>
      answersFrom(
        groups,
        around(() => verdictOf(memory.decide(groups, now, unused))),
      ),
    adjust: (...args) => around(() => memory.adjust(...args)),
    reset: (counters, now) => around(() => memory.reset(counters, now)),
  };
  const store = leasesOver(innerStore);
  return { memory, store, waiting, hold: (held: boolean) => (isHeld = held) };
}

/**
 * Operations that begin while a decision waits for the store's answer. The decision has already
 * taken leased quota.
 */
const overlaps = {
  "a refund": ({ store }: ReturnType<typeof steppedIsolate>, quota: Demand) =>
    store.adjust([{ ...quota, cost: -2 }]),
  "a charge": ({ store }: ReturnType<typeof steppedIsolate>, quota: Demand) =>
    store.adjust([{ ...quota, cost: 2 }]),
  "a reset": ({ store }: ReturnType<typeof steppedIsolate>, quota: Demand) => store.reset([quota]),
  "a decision for another tier": ({ store }: ReturnType<typeof steppedIsolate>, quota: Demand) =>
    verdictOf(store.decide([[{ ...quota, ceiling: 90 }]])),
  "a decision with a larger cost": ({ store }: ReturnType<typeof steppedIsolate>, quota: Demand) =>
    verdictOf(store.decide([[{ ...quota, cost: 20 }]])),
} as const;

/**
 * All orders in which the steps of two operations can run. At each of six steps, a bit chooses the
 * operation that continues.
 */
const orders = Array.from({ length: 64 }, (_, bits) =>
  Array.from({ length: 6 }, (_, step) => (bits >> step) & 1),
);

const cases = (Object.keys(overlaps) as (keyof typeof overlaps)[]).flatMap((overlap) =>
  [true, false].map((hasQuotaLeft) => ({ overlap, hasQuotaLeft })),
);

describe("a pending decision on two counters, one of them leased", () => {
  it.each(cases)(
    "is exact during $overlap, with quota left in the other counter: $hasQuotaLeft",
    async ({ overlap, hasQuotaLeft }) => {
      for (const order of orders) {
        const isolate = steppedIsolate();
        const { memory, store, waiting, hold } = isolate;
        const quota = counter({ limit: 100 });
        const other = counter({ limit: hasQuotaLeft ? 5 : 0, leasable: false });
        while ((await readCount(memory, quota)) - (await readCount(store, quota)) < 3) {
          await verdictOf(store.decide([[quota]]));
        }
        const used = await readCount(store, quota);

        hold(true);
        const decision = verdictOf(store.decide([[quota, other]]));
        await flushPromises();
        const overlapAnswer = overlaps[overlap](isolate, quota);
        for (const choice of order) {
          await flushPromises();
          waiting.splice(choice % Math.max(1, waiting.length), 1)[0]?.();
        }
        hold(false);
        while (waiting.length > 0) {
          waiting.shift()?.();
          await flushPromises();
        }
        const [{ groups }, answer] = await Promise.all([decision, overlapAnswer]);
        expect(groups[0]?.admitted, `${order}`).toBe(hasQuotaLeft);
        expect(groups[0]?.tallies).toHaveLength(2);

        // After all unused quota is returned, the store's count is exactly the quota used.
        for (const pastMs of [6000, 12_000]) {
          at(pastMs);
          for (let call = 0; call < 3; call++)
            await verdictOf(store.decide([[counter({ leasable: false })]]));
        }
        at(0);
        const taken = hasQuotaLeft ? 1 : 0;
        const tier = typeof answer === "object" && "groups" in answer && answer.groups[0]?.admitted;
        const expected = {
          "a refund": used + taken - 2,
          "a charge": used + taken + 2,
          "a reset": 0,
          "a decision for another tier": used + taken + (tier ? 1 : 0),
          "a decision with a larger cost": used + taken + (tier ? 20 : 0),
        }[overlap];
        const left = await readCount(memory, quota);
        if (overlap === "a reset") expect(left, `${order}`).toBeLessThanOrEqual(used + taken);
        else expect(left, `${order}`).toBe(expected);
      }
    },
  );
});
