import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import type { Entry } from "../../../../src/stores/batch.ts";
import type { MakeCall } from "../../../../src/stores/calls.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { counter } from "../../../suite/counters.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import {
  kindOf,
  type Namespace,
  passTime,
  useVirtualTime,
  wait,
  withObjects,
} from "./objects-in-one.ts";

const TIMEOUT_MS = 1000;
const DAY = 24 * 3_600_000;

beforeEach(useVirtualTime);

afterEach(() => {
  vi.useRealTimers();
});

type Method = ReturnType<typeof kindOf> | "endHold";
type Meet = (method: Method, name: string, call: number) => Promise<void> | void;

/**
 * Runs a task. The task gets a store on Durable Objects, and the list of the calls that the store
 * has made to them. `meet` runs before each of these calls.
 */
function inStore<Result>(
  meet: Meet,
  task: (store: ReturnType<typeof createDurableObjectStore>, calls: Method[]) => Promise<Result>,
  makeCall?: MakeCall,
): Promise<Result> {
  return withObjects((objects) => {
    const calls: Method[] = [];
    const getByName = (name: string) => {
      const object = objects.getByName(name);
      const call = async (kind: Method) => meet(kind, name, calls.push(kind));
      return {
        run: async (entries: readonly Entry[]) => {
          await call(kindOf(entries));
          return object.run(entries);
        },
        endHold: async (id: string, keep: boolean) => {
          await call("endHold");
          return object.endHold(id, keep);
        },
      };
    };
    const store = createDurableObjectStore({
      namespace: { getByName } as unknown as Namespace,
      prefix: "denials",
      timeoutMs: TIMEOUT_MS,
      background: () => {},
      ...(makeCall && { makeCall }),
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

  it("of the last quota arrives at once although no hold is ever ended", async () => {
    const quotas = inOrder({ limit: 1 }, { limit: 1 }, { limit: 1 });
    const meet: Meet = (method) => (method === "endHold" ? new Promise(() => {}) : undefined);
    await inStore(meet, async (store) => {
      await verdictOf(store.decide([quotas]));
      const startedAt = Date.now();
      const verdicts = await Promise.all(
        Array.from({ length: 20 }, () => verdictOf(store.decide([[quotas[0] as Demand]]))),
      );
      for (const { groups } of verdicts) expect(groups[0]?.admitted).toBe(false);
      expect(Date.now() - startedAt).toBe(0);
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

it("a decision leaves no rejection unhandled if its deadline has passed before its first call", async () => {
  const unhandled = vi.fn();
  addEventListener("unhandledrejection", unhandled);
  const meet: Meet = (method) => (method === "endHold" ? wait(100) : undefined);
  const afterDeadline: MakeCall = (_, call) => wait(2 * TIMEOUT_MS).then(call);
  const decide = async (store: Store) => {
    const failed = expect(verdictOf(store.decide([inOrder({}, {})]))).rejects;
    await failed.toMatchObject({ failure: "timeout" });
    await wait(TIMEOUT_MS);
  };
  await inStore(meet, decide, afterDeadline);
  vi.useRealTimers();
  await scheduler.wait(0);
  removeEventListener("unhandledrejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});
