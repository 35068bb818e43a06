import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand, Tally } from "../../../../src/engine/counter.ts";
import { chargedWindowOf } from "../../../../src/limiter/decision.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import type { Answer, Store } from "../../../../src/stores/store.ts";
import { counter } from "../../../suite/counters.ts";
import { drawn } from "../../../suite/runs.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import { withDeadline } from "../../../suite/wrappers.ts";
import { type Namespace, passTime, useVirtualTime, wait, withObjects } from "./objects-in-one.ts";

// Tests a decision over two objects. For each call that the decision makes, a fault can occur
// before or after the call takes effect. The tests enumerate every point at which the decision can
// be interrupted, and all pairs of these points. The objects are real, but share the storage of one
// object, in which every counter has its own key. Time is virtual.

const KINDS = ["throws", "answers late", "never returns", "loses its client"] as const;

interface Fault {
  readonly call: number;
  readonly side: "before" | "after";
  readonly kind: (typeof KINDS)[number];
}

/**
 * The indexes of a decision's calls. The first two calls decide. Up to two more calls release the
 * holds.
 */
const CALLS = [0, 1, 2, 3];

const SINGLE: Fault[][] = CALLS.flatMap((call) =>
  (["before", "after"] as const).flatMap((side) => KINDS.map((kind) => [{ call, side, kind }])),
);
const DOUBLE: Fault[][] = SINGLE.flatMap(([first]) =>
  SINGLE.flatMap(([second]) =>
    first && second && first.call < second.call ? [[first, second]] : [],
  ),
);

/** The deadline of the decision with faults, in milliseconds. */
const VICTIM_MS = 200;
/** The deadline of decisions without faults, in milliseconds. */
const HONEST_MS = 2000;

const PREFIX = "two-phase";

function honestStore(namespace: Namespace): Store {
  const options = { namespace, prefix: PREFIX, timeoutMs: HONEST_MS, background: () => {} };
  return withDeadline(createDurableObjectStore(options), HONEST_MS);
}

it("a denial says that slots may be taken if an object has restarted and lost its hold", () =>
  withObjects(async (objects) => {
    const own = counter({ identity: "own", limit: 3, slot: 1 });
    const shared = counter({ identity: "shared", limit: 1, slot: 2, reach: 9 });
    const { restart } = objects;
    const store = honestStore({
      getByName: (name: string) => {
        const object = objects.getByName(name);
        return new Proxy(object, {
          get: (target, method) =>
            method === "endHold"
              ? (id: string, keep: boolean) => {
                  restart();
                  return objects.getByName(name).endHold(id, keep);
                }
              : Reflect.get(target, method).bind(target),
        });
      },
      restart,
    } as unknown as Namespace);
    await verdictOf(store.decide([[{ ...shared, slot: 3 }]]));
    const { groups } = await verdictOf(store.decide([[own, shared]]));
    expect(groups[0]).toMatchObject({ admitted: false, mayHold: true });
  }));

type Method = "run" | "endHold";

/**
 * Creates a store for one request. Its calls have these faults, and the request's client may hang
 * up.
 */
function storeWith(objects: Namespace, faults: readonly Fault[]) {
  const tasks = new Set<Promise<unknown>>();
  /** The objects to which a release of a hold was sent, and the objects that received a release. */
  const [released, reached] = [new Set<string>(), new Set<string>()];
  const hit = Promise.withResolvers<void>();
  const never = new Promise<never>(() => {});
  let [calls, hasClient] = [0, true];
  // If the client hangs up, the Workers runtime cancels the request, unless `waitUntil` has a
  // pending task.
  const isAlive = () => hasClient || tasks.size > 0;

  async function meet(kind: Fault["kind"] | undefined): Promise<void> {
    if (!kind) return;
    hit.resolve();
    if (kind === "throws") throw new Error("Network connection lost.");
    if (kind === "answers late") await wait(1.5 * VICTIM_MS);
    if (kind === "never returns") await never;
    if (kind === "loses its client") hasClient = false;
    if (!isAlive()) await never;
  }

  async function through<Result>(name: string, method: Method, keep: unknown, run: () => Result) {
    const call = calls++;
    // The call is sent before it can fail, and before its client can hang up.
    await null;
    const at = (side: Fault["side"]) => {
      return faults.find((fault) => fault.call === call && fault.side === side)?.kind;
    };
    if (!isAlive()) await never;
    const isRelease = method === "endHold" && keep === false;
    if (isRelease) released.add(name);
    await meet(at("before"));
    if (isRelease) reached.add(name);
    const result = await run();
    await meet(at("after"));
    return result;
  }

  const namespace = {
    getByName(name: string) {
      const object = objects.getByName(name);
      const method =
        (which: Method) =>
        (...args: never[]) => {
          const call = object[which] as (...args: never[]) => unknown;
          return through(name, which, args[1], () => call.apply(object, args));
        };
      return {
        run: method("run"),
        endHold: method("endHold"),
      };
    },
  } as unknown as Namespace;
  const background = (task: Promise<unknown>) => {
    tasks.add(task);
    task.finally(() => tasks.delete(task));
  };
  const store = createDurableObjectStore({
    namespace,
    prefix: PREFIX,
    timeoutMs: VICTIM_MS,
    background,
  });
  return {
    store: withDeadline(store, VICTIM_MS),
    hit: hit.promise,
    /** Whether an object may still have a charge, because it never received the release. */
    mayStayCharged: ({ identity }: Demand) => {
      const name = `${PREFIX}:${identity}`;
      return released.has(name) && !reached.has(name);
    },
    /** Waits until the background tasks have ended, for a limited time. */
    tasksEnded: () => Promise.race([Promise.all(tasks), wait(6 * VICTIM_MS)]),
  };
}

type Outcome = "allowed" | "denied" | "undecided" | "none";

async function outcomeOf(store: Store, ...group: Demand[]): Promise<Outcome> {
  try {
    const { groups } = await verdictOf(store.decide([group]));
    return groups[0]?.admitted ? "allowed" : "denied";
  } catch {
    return "undecided";
  }
}

async function usedOf(honest: Store, quota: Demand): Promise<number> {
  const check = { ...quota, cost: 0, checkOnly: true };
  const { groups } = await verdictOf(honest.decide([[check]]));
  return groups[0]?.tallies[0]?.count as number;
}

/** The limits of the two counters, in the order in which their objects are called. */
type Limits = readonly [number, number];

const CASES: Record<string, Limits> = {
  "is admitted": [3, 3],
  "is admitted with the last quota": [1, 1],
  "is denied by the first": [0, 3],
  "is denied by the second": [1, 0],
};

async function run(objects: Namespace, limits: Limits, faults: readonly Fault[]): Promise<void> {
  const honest = honestStore(objects);
  const name = JSON.stringify({ limits, faults });
  const windowMs = 24 * 3_600_000;
  const [first, second] = limits.map((limit, index) =>
    counter({ limit, windowMs, identity: `${"ab"[index]}${crypto.randomUUID()}` }),
  ) as [Demand, Demand];
  const { store, hit, mayStayCharged, tasksEnded } = storeWith(objects, faults);

  const victim = Promise.race([
    outcomeOf(store, first, second),
    wait(6 * VICTIM_MS).then((): Outcome => "none"),
  ]);
  await Promise.race([hit, victim]);
  // Another client sends a request at the time of the fault.
  const startedAt = Date.now();
  const third = await outcomeOf(honest, first);
  const thirdTookMs = Date.now() - startedAt;
  const outcome = await victim;
  await tasksEnded();

  const admitted: Limits = [outcome, third].reduce<Limits>(
    ([a, b], each, at) => (each === "allowed" ? [a + 1, at === 0 ? b + 1 : b] : [a, b]),
    [0, 0],
  );
  expect(third, `${name}: a third client is decided`).not.toBe("undecided");
  expect(thirdTookMs, `${name}: a third client waits`).toBe(0);
  const used = [await usedOf(honest, first), await usedOf(honest, second)];
  // A release whose call throws is repeated once.
  const isRepeated = faults.length === 1 && faults[0]?.kind === "throws";
  for (const [index, quota] of [first, second].entries()) {
    const count = admitted[index] as number;
    expect(count, `${name}: admitted by ${index}`).toBeLessThanOrEqual(quota.limit);
    expect(used[index], `${name}: charged to ${index}`).toBeGreaterThanOrEqual(count);
    const kept = mayStayCharged(quota) && !isRepeated ? 1 : 0;
    expect(used[index], `${name}: charged to ${index}`).toBeLessThanOrEqual(count + kept);
  }
  const verdict = Math.min(...limits) === 0 ? "denied" : "allowed";
  // Whether the other client took the last quota before the decision with faults could take it.
  const isOvertaken = third === "allowed" && limits[0] === 1;
  const lastCall = limits[0] === 0 ? 0 : 1;
  const isDecided = faults.every(
    ({ call, kind }) => call > lastCall || kind === "loses its client",
  );
  if (isOvertaken) expect(outcome, name).not.toBe("allowed");
  else expect(isDecided ? [verdict] : [verdict, "undecided"], name).toContain(outcome);
  // Further requests use up exactly the quota left.
  const left = Math.min(...limits.map((limit, index) => limit - (used[index] as number)));
  let more = 0;
  for (let attempt = 0; attempt <= left; attempt++) {
    const last = await outcomeOf(honest, first, second);
    expect(last, `${name}: afterwards`).not.toBe("undecided");
    if (last === "allowed") more++;
  }
  expect(more, `${name}: left`).toBe(Math.max(0, left));
}

/** Runs all cases at the same time, each with its own clients. */
async function runAll(limits: Limits, all: readonly (readonly Fault[])[]): Promise<void> {
  await withObjects((objects) => {
    const runs = all.map((faults) => run(objects, limits, faults));
    return passTime(VICTIM_MS / 4, Promise.all(runs));
  });
}

describe.each(Object.entries(CASES))("a decision over two objects that %s", (_, limits) => {
  beforeEach(() => {
    useVirtualTime();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it("is correct without a fault", () => runAll(limits, [[]]));

  it("is correct with each fault", () => runAll(limits, SINGLE));

  it("is correct with each pair of faults", () => runAll(limits, drawn(DOUBLE)));
});

describe("the tallies of a decision over two objects", () => {
  beforeEach(useVirtualTime);

  afterEach(() => {
    vi.useRealTimers();
  });

  it("tells when all windows end by one clock, however long the calls take", () =>
    withObjects(async (objects) => {
      const getByName = (name: string) => {
        const object = objects.getByName(name);
        return {
          run: async (...args: Parameters<typeof object.run>) => {
            const results = await object.run(...args);
            await wait(50);
            return results;
          },
          endHold: (...args: Parameters<typeof object.endHold>) => object.endHold(...args),
        };
      };
      const counters = ["a", "b"].map((identity) => counter({ identity, windowMs: 60_000 }));
      const decided = honestStore({ getByName } as unknown as Namespace).decide([counters])[0];
      const { now, tallies } = await passTime(10, decided as NonNullable<typeof decided>);
      expect(tallies.map((tally) => (now + (tally?.resetMs ?? 0)) % 60_000)).toEqual([0, 0]);
    }));

  it("tells which sub-window was charged, although it is ahead of the clock of the object", () =>
    withObjects(async (objects) => {
      const [first, second] = ["a", "b"].map((identity) =>
        counter({ identity, windowMs: 1000, subWindows: 10 }),
      ) as [Demand, Demand];
      const store = honestStore({
        getByName: (name: string) => {
          const object = objects.getByName(name);
          return {
            run: async (...args: Parameters<typeof object.run>) => {
              const results = await object.run(...args);
              await wait(1000);
              return results;
            },
            endHold: (...args: Parameters<typeof object.endHold>) => object.endHold(...args),
          };
        },
      } as unknown as Namespace);
      const ahead = Date.now() + 8000;
      await passTime(10, Promise.all(store.decide([[second]], ahead)));
      const decided = store.decide([[first, second]])[0] as Promise<Answer>;
      const { now, tallies } = await passTime(10, decided);
      const window = Math.floor(ahead / 1000);
      expect(tallies[1]).toMatchObject({ count: 2, ring: { window } });
      expect(chargedWindowOf(second, tallies[1] as Tally, now)).toBe(window);
    }));
});
