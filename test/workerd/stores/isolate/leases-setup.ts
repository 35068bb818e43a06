import { afterEach, beforeEach, vi } from "vitest";
import type { Counter } from "../../../../src/engine/counter.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { GroupAnswer, Store } from "../../../../src/stores/store.ts";
import { counter as anyCounter } from "../../../suite/counters.ts";
import { NOW } from "../../../suite/driver.ts";

export const MINUTE = 60_000;
export const TIMEOUT_MS = 1000;

/** Has the clock stand at NOW when each test of a file begins. */
export function standStill(): void {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
}

export function at(pastMs: number): void {
  vi.setSystemTime(NOW + pastMs);
}

export function counter(fields: Partial<Counter> = {}): Counter {
  return anyCounter({ limit: 1000, leasable: true, ...fields });
}

interface Options {
  maxLeases?: number;
  /** The store's clock is ahead of ours by so much. */
  skewMs?: number;
  /** What a call takes, there and back. */
  roundTripMs?: number;
}

/** An isolate: leases over a store that others may use as well. */
export function setUp(
  { maxLeases, skewMs = 0, roundTripMs = 0 }: Options = {},
  memory = createMemoryStore(),
) {
  const clock = () => Date.now() + skewMs;
  const behind: Store = {
    async decide(groups, now, unused) {
      vi.setSystemTime(Date.now() + roundTripMs / 2);
      const verdict = await memory.decide(groups, now ?? clock(), unused);
      vi.setSystemTime(Date.now() + roundTripMs / 2);
      return verdict;
    },
    adjust: (counters, now) => memory.adjust(counters, now ?? clock()),
    reset: (counters, now) => memory.reset(counters, now ?? clock()),
  };
  const { decide: answer } = behind;
  const asked = vi.spyOn(behind, "decide");
  const tasks: Promise<unknown>[] = [];
  const store = withLeases(behind, {
    timeoutMs: TIMEOUT_MS,
    background: (task) => tasks.push(task),
    ...(maxLeases !== undefined && { maxLeases }),
  });

  async function ask(...group: Counter[]): Promise<GroupAnswer> {
    const { groups } = await store.decide([group]);
    return groups[0] as GroupAnswer;
  }

  /** How many of so many requests are admitted, one after the other. */
  async function admitted(requests: number, ...group: Counter[]): Promise<number> {
    let count = 0;
    for (let request = 0; request < requests; request++) {
      if ((await ask(...group)).admitted) count++;
    }
    return count;
  }

  /** How many calls something takes. */
  async function callsOf(action: () => Promise<unknown>): Promise<number> {
    const before = asked.mock.calls.length;
    await action();
    return asked.mock.calls.length - before;
  }

  /** What the store has charged. */
  async function charged(quota: Counter): Promise<number> {
    const { groups } = await memory.decide([[{ ...quota, cost: 0 }]], clock());
    return groups[0]?.tallies[0]?.count ?? 0;
  }

  /** What has been used: what is charged, but for what lies here. */
  async function used(quota: Counter): Promise<number | undefined> {
    return (await ask({ ...quota, cost: 0 })).tallies[0]?.count;
  }

  /** Requests until as much quota as this lies here. @returns how many */
  async function stockUp(quota: Counter, atLeast: number): Promise<number> {
    for (let sent = 1; sent <= 500; sent++) {
      await ask(quota);
      if ((await charged(quota)) - ((await used(quota)) as number) >= atLeast) return sent;
    }
    throw new Error(`${atLeast} never lay here`);
  }

  /** Requests until none lies here, so that the next one asks. @returns how many */
  async function useUp(quota: Counter): Promise<number> {
    for (let sent = 0; sent <= 500; sent++) {
      if ((await charged(quota)) === (await used(quota))) return sent;
      await ask(quota);
    }
    throw new Error("some always lay here");
  }

  /** Charges all that is left of a counter, as others do. */
  async function useUpElsewhere(quota: Counter): Promise<void> {
    const cost = quota.ceiling - (await charged(quota));
    await memory.adjust([{ ...quota, cost }], clock());
  }

  /** The blocks that were asked for, in order; undefined where there was none. */
  const blocks = () =>
    asked.mock.calls.flatMap(([groups]) => groups.flat().map((each) => each.block));
  /** What was given back with each call. */
  const givenBack = () => asked.mock.calls.map(([, , unused = []]) => unused);

  const observe = { blocks, givenBack, charged, used, callsOf };
  return {
    store,
    behind,
    answer,
    asked,
    tasks,
    memory,
    ask,
    admitted,
    stockUp,
    useUp,
    useUpElsewhere,
    ...observe,
  };
}

/** Answers the next call that asks for a block, or any at all, only when it is told to. */
export function holdNext({ asked, answer }: Pick<ReturnType<typeof setUp>, "asked" | "answer">) {
  const { promise: released, resolve: release, reject: fail } = Promise.withResolvers<void>();
  asked.mockImplementationOnce(async (...args) => {
    const verdict = await answer(...args);
    await released;
    return verdict;
  });
  return { release: () => release(), fail };
}

/** Lets everything go on that waits for nothing but promises. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}
