import { describe, expect, it } from "vitest";
import type { Counter } from "../../../../src/engine/counter.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { at, counter, settle, standStill, TIMEOUT_MS } from "./leases-setup.ts";

standStill();

/** An isolate whose store's calls wait, before and after they are done, until they are let go on. */
function stepped() {
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
  const behind: Store = {
    decide: (groups, now, unused) => around(() => memory.decide(groups, now, unused)),
    adjust: (counters, now) => around(() => memory.adjust(counters, now)),
    reset: (counters, now) => around(() => memory.reset(counters, now)),
  };
  const store = withLeases(behind, { timeoutMs: TIMEOUT_MS, background: (task) => void task });
  const countIn = async (where: Store, quota: Counter) =>
    (await where.decide([[{ ...quota, cost: 0 }]])).groups[0]?.tallies[0]?.count as number;
  return { memory, store, waiting, hold: (held: boolean) => (isHeld = held), countIn };
}

/** What may come between a decision's taking of leased quota and its answer. */
const crossings = {
  "a refund": ({ store }: ReturnType<typeof stepped>, quota: Counter) =>
    store.adjust([{ ...quota, cost: -2 }]),
  "a charge": ({ store }: ReturnType<typeof stepped>, quota: Counter) =>
    store.adjust([{ ...quota, cost: 2 }]),
  "a reset": ({ store }: ReturnType<typeof stepped>, quota: Counter) => store.reset([quota]),
  "another tier": ({ store }: ReturnType<typeof stepped>, quota: Counter) =>
    store.decide([[{ ...quota, ceiling: 90 }]]),
  "a larger cost": ({ store }: ReturnType<typeof stepped>, quota: Counter) =>
    store.decide([[{ ...quota, cost: 20 }]]),
} as const;

/** In which order two operations' steps are let go on: every choice at each of six steps. */
const orders = Array.from({ length: 64 }, (_, bits) =>
  Array.from({ length: 6 }, (_, step) => (bits >> step) & 1),
);

const cases = (Object.keys(crossings) as (keyof typeof crossings)[]).flatMap((crossing) =>
  [true, false].map((hasRoom) => ({ crossing, hasRoom })),
);

describe("a decision in flight on two counters, one of them leased", () => {
  it.each(cases)(
    "beside $crossing, with room in the other: $hasRoom",
    async ({ crossing, hasRoom }) => {
      for (const order of orders) {
        const isolate = stepped();
        const { memory, store, waiting, hold, countIn } = isolate;
        const quota = counter({ limit: 100 });
        const other = counter({ limit: hasRoom ? 5 : 0, leasable: false });
        while ((await countIn(memory, quota)) - (await countIn(store, quota)) < 3) {
          await store.decide([[quota]]);
        }
        const used = await countIn(store, quota);

        hold(true);
        const decision = store.decide([[quota, other]]);
        await settle();
        const crossed = crossings[crossing](isolate, quota);
        for (const choice of order) {
          await settle();
          waiting.splice(choice % Math.max(1, waiting.length), 1)[0]?.();
        }
        hold(false);
        while (waiting.length > 0) {
          waiting.shift()?.();
          await settle();
        }
        const [{ groups }, answer] = await Promise.all([decision, crossed]);
        expect(groups[0]?.admitted, `${order}`).toBe(hasRoom);
        expect(groups[0]?.tallies).toHaveLength(2);

        // Once all that is unused has gone back, the store knows what was used, and no more.
        for (const pastMs of [6000, 12_000]) {
          at(pastMs);
          for (let call = 0; call < 3; call++) await store.decide([[counter({ leasable: false })]]);
        }
        at(0);
        const taken = hasRoom ? 1 : 0;
        const tier = typeof answer === "object" && "groups" in answer && answer.groups[0]?.admitted;
        const expected = {
          "a refund": used + taken - 2,
          "a charge": used + taken + 2,
          "a reset": 0,
          "another tier": used + taken + (tier ? 1 : 0),
          "a larger cost": used + taken + (tier ? 20 : 0),
        }[crossing];
        const left = await countIn(memory, quota);
        if (crossing === "a reset") expect(left, `${order}`).toBeLessThanOrEqual(used + taken);
        else expect(left, `${order}`).toBe(expected);
      }
    },
  );
});
