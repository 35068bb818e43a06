import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import { type Namespace, passTime, useVirtualTime, wait, withObjects } from "./objects-in-one.ts";

const TIMEOUT_MS = 1000;
const DAY = 24 * 3_600_000;

beforeEach(useVirtualTime);

afterEach(() => {
  vi.useRealTimers();
});

type Method = "decide" | "hold" | "endHold" | "adjust";
type Meet = (method: Method, name: string, call: number) => Promise<void> | void;

/**
 * Runs a task. The task gets a store on Durable Objects, and the list of the calls that the store
 * has made to them. `meet` runs before each of these calls.
 */
function inStore<Result>(
  meet: Meet,
  task: (store: ReturnType<typeof createDurableObjectStore>, calls: Method[]) => Promise<Result>,
): Promise<Result> {
  return withObjects((objects) => {
    const calls: Method[] = [];
    const getByName = (name: string) => {
      const object = objects.getByName(name);
      const method =
        (which: Method | "run") =>
        async (...args: never[]) => {
          // A decision that needs only one object is a `run`.
          const kind = which === "run" ? "decide" : which;
          const number = calls.push(kind);
          await meet(kind, name, number);
          return (object[which] as (...args: never[]) => unknown).apply(object, args);
        };
      const [decide, hold] = [method("decide"), method("hold")];
      return {
        run: method("run"),
        decide,
        hold,
        endHold: method("endHold"),
        adjust: method("adjust"),
      };
    };
    const store = createDurableObjectStore({
      namespace: { getByName } as unknown as Namespace,
      prefix: "denials",
      timeoutMs: TIMEOUT_MS,
      background: () => {},
    });
    return passTime(10, task(store, calls));
  });
}

/** Creates counters whose objects are called in this order. */
function inOrder(...fields: Partial<Demand>[]): Demand[] {
  return fields.map((each, index) =>
    counter({ windowMs: DAY, identity: `${index}${crypto.randomUUID()}`, ...each }),
  );
}

describe("a denial by one of several objects", () => {
  const faults: [string, () => Promise<void>][] = [
    ["fails", () => Promise.reject(new Error("Network connection lost."))],
    ["never answers", () => new Promise(() => {})],
    ["answers late", () => wait(2 * TIMEOUT_MS)],
  ];

  it.each(faults)("stays a denial if a read of another object %s", async (_, fault) => {
    const [full, roomy] = inOrder({ limit: 0 }, {}) as [Demand, Demand];
    const meet: Meet = (_method, name) => (name.endsWith(roomy.identity) ? fault() : undefined);
    await inStore(meet, async (store) => {
      const startedAt = Date.now();
      const { groups } = await verdictOf(store.decide([[roomy, full]]));
      expect(groups).toMatchObject([{ admitted: false, tallies: [undefined, { count: 0 }] }]);
      expect(Date.now() - startedAt).toBeLessThanOrEqual(TIMEOUT_MS / 4 + 10);
    });
  });

  it.each(faults)("stays a denial if the release of another object's hold %s", async (_, fault) => {
    const [roomy, full] = inOrder({}, { limit: 0 }) as [Demand, Demand];
    const meet: Meet = (method) => (method === "endHold" ? fault() : undefined);
    await inStore(meet, async (store) => {
      const startedAt = Date.now();
      const { groups } = await verdictOf(store.decide([[roomy, full]]));
      expect(groups).toMatchObject([{ admitted: false, tallies: [{ count: 0 }, { count: 0 }] }]);
      expect(Date.now() - startedAt).toBeLessThanOrEqual(TIMEOUT_MS / 4 + 10);
    });
  });

  it("arrives well within the deadline although no hold is ever ended", async () => {
    const quotas = inOrder({ limit: 1 }, { limit: 1 }, { limit: 1 });
    const meet: Meet = (method) => (method === "endHold" ? new Promise(() => {}) : undefined);
    await inStore(meet, async (store) => {
      await verdictOf(store.decide([quotas]));
      const startedAt = Date.now();
      const verdicts = await Promise.all(
        Array.from({ length: 20 }, () => verdictOf(store.decide([[quotas[0] as Demand]]))),
      );
      for (const { groups } of verdicts) expect(groups[0]?.admitted).toBe(false);
      expect(Date.now() - startedAt).toBeLessThanOrEqual(TIMEOUT_MS / 4 + 10);
    });
  });

  it("calls no further object after the deadline, and releases a late hold", async () => {
    const quotas = inOrder({}, {}, {});
    const meet: Meet = (method, _name, call) =>
      method === "hold" && call === 1 ? wait(2 * TIMEOUT_MS) : undefined;
    await inStore(meet, async (store, calls) => {
      await expect(verdictOf(store.decide([quotas]))).rejects.toMatchObject({ failure: "timeout" });
      await wait(3 * TIMEOUT_MS);
      expect(calls).toEqual(["hold", "endHold"]);
      const verdict = await verdictOf(store.decide(quotas.map((each) => [{ ...each, cost: 0 }])));
      expect(verdict.groups.map(({ tallies }) => tallies[0]?.count)).toEqual([0, 0, 0]);
    });
  });
});

describe("two shards in objects", () => {
  const shardsOf = (...limits: number[]) => inOrder(...limits.map((limit) => ({ limit })));
  const either = ([one, alternative]: Demand[]) => ({
    ...(one as Demand),
    alternative: alternative as Demand,
  });

  it("together admit exactly their quota in a burst", async () => {
    const pair = either(shardsOf(10, 10));
    await inStore(
      () => {},
      async (store) => {
        const burst = (count: number) =>
          Promise.all(Array.from({ length: count }, () => verdictOf(store.decide([[pair]]))));
        const first = await burst(20);
        expect(first.filter(({ groups }) => groups[0]?.admitted)).toHaveLength(20);
        const second = await burst(40);
        expect(second.filter(({ groups }) => groups[0]?.admitted)).toHaveLength(0);
        expect(second[0]?.groups).toMatchObject([{ tallies: [{ count: 10 }] }]);
      },
    );
  });

  it("take one call for an admitted request, and two for a denied one", async () => {
    const pair = either(shardsOf(2, 1));
    await inStore(
      () => {},
      async (store, calls) => {
        const callsFor = async () => {
          const before = calls.length;
          const { groups } = await verdictOf(store.decide([[pair]]));
          return [groups[0]?.admitted, calls.length - before];
        };
        expect(await callsFor()).toEqual([true, 1]);
        // Each shard has quota for one more request. Either shard may now be called first.
        expect(await callsFor()).toEqual([true, 1]);
        expect(await callsFor()).toEqual([true, 1]);
        expect(await callsFor()).toEqual([false, 2]);
      },
    );
  });

  it("fill up evenly if the isolate knows their last counts", async () => {
    const shards = shardsOf(...Array.from({ length: 10 }, () => 100));
    await inStore(
      () => {},
      async (store) => {
        for (let request = 0; request < 700; request++) {
          const one = Math.floor(Math.random() * 10);
          const alternative = (one + 1 + Math.floor(Math.random() * 9)) % 10;
          await verdictOf(
            store.decide([[either([shards[one] as Demand, shards[alternative] as Demand])]]),
          );
        }
        const verdict = await verdictOf(store.decide(shards.map((each) => [{ ...each, cost: 0 }])));
        const counts = verdict.groups.map(({ tallies }) => tallies[0]?.count as number);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(15);
      },
    );
  });

  it("are both tried in a group with other objects, which is charged as a whole or not at all", async () => {
    const [global] = inOrder({ limit: 15, identity: "z" }) as [Demand];
    const pair = either(shardsOf(10, 10));
    await inStore(
      () => {},
      async (store) => {
        const verdicts = await Promise.all(
          Array.from({ length: 40 }, () => verdictOf(store.decide([[global, pair]]))),
        );
        const admitted = verdicts.filter(({ groups }) => groups[0]?.admitted);
        expect(admitted).toHaveLength(15);
        const [one, other, all] = [pair, pair.alternative, global].map(
          ({ alternative: _, ...each }: Demand) => each,
        );
        const verdict = await verdictOf(
          store.decide([one, other, all].map((each) => [{ ...(each as Demand), cost: 0 }])),
        );
        const [a = 0, b = 0, c] = verdict.groups.map(({ tallies }) => tallies[0]?.count);
        expect([a + b, c]).toEqual([15, 15]);
      },
    );
  });

  it("count a rule's windows in one shard, or in two if no shard has quota left for both", async () => {
    const [one, other] = ["a", "b"].map((shard) => `${shard}${crypto.randomUUID()}`);
    const windows = [60_000, DAY].map((windowMs) =>
      either([
        counter({ identity: one as string, windowMs, limit: 4 }),
        counter({ identity: other as string, windowMs, limit: 4 }),
      ]),
    );
    await inStore(
      () => {},
      async (store, calls) => {
        expect((await verdictOf(store.decide([windows]))).groups[0]?.admitted).toBe(true);
        expect(calls).toEqual(["decide"]);
        const [minute, day] = windows as [Demand, Demand];
        const { alternative: _, ...minuteInOne } = minute;
        await store.adjust([{ ...minuteInOne, cost: 4 }]);
        await store.adjust([{ ...(day.alternative as Demand), cost: 4 }]);
        // Only the second shard has quota left for the minute, and only the first shard has quota
        // left for the day.
        expect((await verdictOf(store.decide([windows]))).groups[0]?.admitted).toBe(true);
        calls.length = 0;
        await store.adjust([{ ...(minute.alternative as Demand), cost: 4 }]);
        const { groups } = await verdictOf(store.decide([windows]));
        expect(groups[0]).toMatchObject({ admitted: false });
        expect(calls.length).toBeLessThanOrEqual(8);
      },
    );
  });

  it("deny if one shard has no quota left and the other fails, and caches must ignore this denial", async () => {
    const [one, alternative] = shardsOf(2, 0) as [Demand, Demand];
    const pair = either([one, alternative]);
    const meet: Meet = (_method, name) => {
      if (name.endsWith(alternative.identity)) throw new Error("Network connection lost.");
    };
    await inStore(meet, async (store) => {
      expect((await verdictOf(store.decide([[pair]]))).groups[0]?.admitted).toBe(true);
      const full = { ...pair, cost: 2, alternative: { ...alternative, cost: 2 } };
      const uncertain = expect.objectContaining({ count: 1, isUncertain: true });
      expect((await verdictOf(store.decide([[full]]))).groups).toEqual([
        { now: expect.any(Number), admitted: false, tallies: [uncertain] },
      ]);
    });
  });
});
