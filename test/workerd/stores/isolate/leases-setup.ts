import { afterEach, beforeEach, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Answer, Store } from "../../../../src/stores/store.ts";
import { counter as anyCounter } from "../../../suite/counters.ts";
import { NOW } from "../../../suite/driver.ts";
import { answersFrom, verdictOf } from "../../../suite/verdict.ts";

export const MINUTE = 60_000;
export const TIMEOUT_MS = 1000;

/** Stops the clock at NOW in each test of a file. */
export function stopClock(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

/** Sets the clock to a number of milliseconds after NOW. */
export function at(pastMs: number): void {
  vi.setSystemTime(NOW + pastMs);
}

export function counter(fields: Partial<Demand> = {}): Demand {
  return anyCounter({ limit: 1000, leasable: true, ...fields });
}

/** Wraps a store with leases. Tests cannot wait for the background tasks. */
export function leasesOver(store: Store): Store {
  return withLeases(store, { timeoutMs: TIMEOUT_MS, background: (task) => void task });
}

/**
 * Sends requests one after the other, and sends each of them to all stores.
 *
 * @returns how often the stores admitted a request, in total
 */
export async function countAdmitted(
  requests: number,
  quota: Demand,
  ...stores: readonly Store[]
): Promise<number> {
  let count = 0;
  for (let request = 0; request < requests; request++) {
    for (const store of stores)
      if ((await verdictOf(store.decide([[quota]]))).groups[0]?.admitted) count++;
  }
  return count;
}

/** Returns the count that a store reports to a request without a cost. */
export async function readCount(store: Store, quota: Demand): Promise<number> {
  const { groups } = await verdictOf(store.decide([[{ ...quota, cost: 0 }]]));
  return groups[0]?.tallies[0]?.count as number;
}

interface Options {
  readonly maxLeases?: number;
  /** The store's clock minus this isolate's, in milliseconds. */
  readonly skewMs?: number;
  /** The duration of a call to the store, in milliseconds. */
  readonly roundTripMs?: number;
}

/** Creates an isolate with leases over a store that other isolates may use too. */
export function setUp(
  { maxLeases, skewMs = 0, roundTripMs = 0 }: Options = {},
  memory = createMemoryStore(),
) {
  const clock = () => Date.now() + skewMs;
  const innerStore: Store = {
    decide(groups, now, unused) {
      vi.setSystemTime(Date.now() + roundTripMs / 2);
      const decided = verdictOf(memory.decide(groups, now ?? clock(), unused));
      const arrived = decided.finally(() => vi.setSystemTime(Date.now() + roundTripMs / 2));
      return answersFrom(groups, arrived);
    },
    adjust: (counters, now, unused) => memory.adjust(counters, now ?? clock(), unused),
    reset: (counters, now) => memory.reset(counters, now ?? clock()),
  };
  const answer = innerStore.decide;
  const decideSpy = vi.spyOn(innerStore, "decide");
  const tasks: Promise<unknown>[] = [];
  const store = withLeases(innerStore, {
    timeoutMs: TIMEOUT_MS,
    background: (task) => tasks.push(task),
    ...(maxLeases !== undefined && { maxLeases }),
  });

  async function decide(...group: Demand[]): Promise<Answer> {
    const { groups } = await verdictOf(store.decide([group]));
    return groups[0] as Answer;
  }

  /** Sends requests one after the other. @returns how many were admitted */
  async function admitted(requests: number, ...group: Demand[]): Promise<number> {
    let count = 0;
    for (let request = 0; request < requests; request++) {
      if ((await decide(...group)).admitted) count++;
    }
    return count;
  }

  /** Runs an action. @returns the number of calls to the store that it makes */
  async function callsOf(action: () => Promise<unknown>): Promise<number> {
    const before = decideSpy.mock.calls.length;
    await action();
    return decideSpy.mock.calls.length - before;
  }

  /** Returns the count in the store. */
  async function charged(quota: Demand): Promise<number> {
    const { groups } = await verdictOf(memory.decide([[{ ...quota, cost: 0 }]], clock()));
    return groups[0]?.tallies[0]?.count ?? 0;
  }

  /** Returns the count that a caller sees: the store's count minus this isolate's unspent quota. */
  async function used(quota: Demand): Promise<number | undefined> {
    return (await decide({ ...quota, cost: 0 })).tallies[0]?.count;
  }

  /** Sends requests until the lease has enough unspent quota. @returns how many it sent */
  async function fillLease(quota: Demand, atLeast: number): Promise<number> {
    for (let sent = 1; sent <= 500; sent++) {
      await decide(quota);
      if ((await charged(quota)) - ((await used(quota)) as number) >= atLeast) return sent;
    }
    throw new Error(`the lease never had ${atLeast} of unspent quota`);
  }

  /** Sends requests until the lease is empty. The next request then calls the store. */
  async function emptyLease(quota: Demand): Promise<number> {
    for (let sent = 0; sent <= 500; sent++) {
      if ((await charged(quota)) === (await used(quota))) return sent;
      await decide(quota);
    }
    throw new Error("the lease was never empty");
  }

  /** Charges all quota left in the store, as other isolates do. */
  async function exhaustElsewhere(quota: Demand): Promise<void> {
    const cost = quota.ceiling - (await charged(quota));
    await memory.adjust([{ ...quota, cost }], clock());
  }

  /** Returns the requested blocks in order, with undefined for each request without a block. */
  const blocks = () =>
    decideSpy.mock.calls.flatMap(([groups]) => groups.flat().map((each) => each.block));
  /** Lists the quota that each call returned to the store. */
  const returns = () => decideSpy.mock.calls.map(([, , unused = []]) => unused);

  const observe = { blocks, returns, charged, used, callsOf };
  return {
    store,
    innerStore,
    answer,
    decideSpy,
    tasks,
    memory,
    decide,
    admitted,
    fillLease,
    emptyLease,
    exhaustElsewhere,
    ...observe,
  };
}

/**
 * Delays the answer to the next call until `release` is called. `fail` replaces the answer by an
 * error.
 */
export function holdNextAnswer({
  decideSpy,
  answer,
}: Pick<ReturnType<typeof setUp>, "decideSpy" | "answer">) {
  const { promise: released, resolve: release, reject: fail } = Promise.withResolvers<void>();
  decideSpy.mockImplementationOnce((...args) =>
    answer(...args).map((answered) => released.then(() => answered)),
  );
  return { release: () => release(), fail };
}

/** Runs all code that waits only for promises that are already resolved. */
export async function flushPromises(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}
