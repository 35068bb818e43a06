import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Counter, windowAt } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { StoreError } from "../../../../src/stores/store-error.ts";
import { counter } from "../../../suite/counters.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";

// Many isolates over one store, with calls that reach it in any order, are answered in any order, and
// fail before or after they are charged. Whatever happens, no window may admit more than its limit.

const TIMEOUT_MS = 1000;
const WINDOW_MS = 10_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

/** Lets everything go on that waits for nothing but promises. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 40; turn++) await Promise.resolve();
}

/** What is under way: each is to be moved on, or to fail. */
interface UnderWay {
  move(): Promise<void>;
  fail(): void;
}

/** A store that calls reach, and whose answers come back, only when a test says so. */
function farAway(store: Store, clock: () => number) {
  const underWay: UnderWay[] = [];

  function call<Answer>(action: () => Promise<Answer>): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const leave = (self: UnderWay) => underWay.splice(underWay.indexOf(self), 1);
    const fail = (self: UnderWay) => {
      leave(self);
      reject(new StoreError("timeout", "lost on the way"));
    };
    const back = (answer: Answer): UnderWay => {
      const self: UnderWay = {
        async move() {
          leave(self);
          resolve(answer);
        },
        fail: () => fail(self),
      };
      return self;
    };
    const there: UnderWay = {
      async move() {
        leave(there);
        underWay.push(back(await action()));
      },
      fail: () => fail(there),
    };
    underWay.push(there);
    return promise;
  }

  const far: Store = {
    decide: (groups, now, unused) => call(() => store.decide(groups, now ?? clock(), unused)),
    adjust: (counters, now) => call(() => store.adjust(counters, now ?? clock())),
    reset: (counters, now) => call(() => store.reset(counters, now ?? clock())),
  };
  return { far, underWay };
}

type Step =
  | {
      readonly kind: "ask";
      readonly isolate: number;
      readonly asks: readonly Ask[];
      readonly apart: boolean;
    }
  | { readonly kind: "move"; readonly at: number; readonly times: number }
  | { readonly kind: "fail"; readonly at: number }
  | { readonly kind: "pass"; readonly ms: number };

interface Ask {
  readonly counter: number;
  readonly cost: number;
  readonly checkOnly: boolean;
  readonly otherTier: boolean;
}

interface Scenario {
  readonly limits: readonly number[];
  /** Each isolate's clock is off by so much; the store's by the first of them, where it counts. */
  readonly skews: readonly number[];
  readonly hasDenials: boolean;
  /** Whether the isolates' clocks place the windows, or the store's. */
  readonly isGiven: boolean;
  readonly startMs: number;
  readonly steps: readonly Step[];
}

const COUNTERS = 3;

const ask: fc.Arbitrary<Ask> = fc.record({
  counter: fc.nat({ max: COUNTERS - 1 }),
  cost: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, fc.integer({ min: 0, max: 6 })),
  checkOnly: fc.nat({ max: 9 }).map((one) => one === 0),
  otherTier: fc.nat({ max: 9 }).map((one) => one === 0),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      isolate: fc.nat({ max: 3 }),
      asks: fc.uniqueArray(ask, {
        minLength: 1,
        maxLength: COUNTERS,
        selector: (one) => one.counter,
      }),
      apart: fc.boolean(),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant("move" as const),
      at: fc.nat({ max: 99 }),
      times: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("fail" as const), at: fc.nat({ max: 99 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(1, 20, 300, 1000, 5000, WINDOW_MS),
    }),
  },
);

const scenario: fc.Arbitrary<Scenario> = fc.record({
  limits: fc.array(fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 20, max: 150 })), {
    minLength: COUNTERS,
    maxLength: COUNTERS,
  }),
  skews: fc.array(fc.constantFrom(0, 0, 3, -40, 900, -20_000), { minLength: 4, maxLength: 4 }),
  hasDenials: fc.boolean(),
  isGiven: fc.boolean(),
  startMs: fc.nat({ max: WINDOW_MS - 1 }),
  // Busy counters have leases, so requests come in bursts.
  steps: fc
    .array(fc.tuple(step, fc.constantFrom(1, 1, 2, 8, 20)), { minLength: 20, maxLength: 60 })
    .map((bursts) => bursts.flatMap(([one, times]) => Array<Step>(times).fill(one))),
});

interface Isolate {
  readonly store: Store;
  readonly clock: () => number;
}

/** What was admitted: when it was asked and told, by the clock that places the windows. */
interface Admission {
  readonly counter: Counter;
  readonly from: number;
  readonly to: number;
}

async function play({ limits, skews, hasDenials, isGiven, startMs, steps }: Scenario) {
  vi.setSystemTime(NOW + startMs);
  const storeClock = () => Date.now() + (skews[0] as number);
  const { far, underWay } = farAway(createMemoryStore(), storeClock);
  const background = (task: Promise<unknown>) => void task;
  const options = { timeoutMs: TIMEOUT_MS, background };
  const isolates = skews.map((skewMs): Isolate => {
    const clock = () => Date.now() + skewMs;
    return { store: withLeases(hasDenials ? withDenialCache(far) : far, options), clock };
  });
  const quotas = limits.map((limit) => counter({ limit, windowMs: WINDOW_MS, leasable: true }));
  const admissions: Admission[] = [];

  async function request({ store, clock }: Isolate, groups: Counter[][]): Promise<void> {
    const now = isGiven ? clock() : undefined;
    const from = now ?? storeClock();
    const verdict = await store.decide(groups, now).catch((error) => {
      expect(error).toBeInstanceOf(StoreError);
    });
    const to = now ?? storeClock();
    for (const [index, group] of groups.entries()) {
      if (!verdict?.groups[index]?.admitted) continue;
      for (const each of group) if (!each.checkOnly) admissions.push({ counter: each, from, to });
    }
  }

  for (const one of steps) {
    if (one.kind === "ask") {
      const counters = one.asks.map(({ counter: index, otherTier, ...asked }): Counter => {
        const quota = quotas[index] as Counter;
        const limit = otherTier ? Math.ceil(quota.limit / 3) : quota.limit;
        return { ...quota, ...asked, limit, ceiling: limit };
      });
      const groups = one.apart ? counters.map((each) => [each]) : [counters];
      void request(isolates[one.isolate % isolates.length] as Isolate, groups);
    } else if (one.kind === "pass") {
      vi.setSystemTime(Date.now() + one.ms);
    } else if (underWay.length > 0) {
      const next = () => underWay[one.at % underWay.length];
      if (one.kind === "fail") next()?.fail();
      else for (let moved = 0; moved < one.times; moved++) await next()?.move();
    }
    await settle();
  }
  while (underWay.length > 0) {
    await underWay[0]?.move();
    await settle();
  }
  return { quotas, admissions };
}

/** Checks each window of each counter, and of each tier of it. */
function expectWithinLimits(quotas: readonly Counter[], admissions: readonly Admission[]): void {
  for (const quota of quotas) {
    const own = admissions.filter((each) => each.counter.key === quota.key);
    const windows = new Set(own.map(({ from }) => windowAt(from, quota).index));
    for (const ceiling of new Set(own.map((each) => each.counter.ceiling))) {
      for (const window of windows) {
        // Who was asked in one window and told in the next may have been charged to either.
        const inside = own.filter(
          ({ counter: each, from, to }) =>
            each.ceiling <= ceiling &&
            windowAt(from, quota).index === window &&
            windowAt(to, quota).index === window,
        );
        const sum = inside.reduce((total, each) => total + each.counter.cost, 0);
        expect(sum, `of ${ceiling} in window ${window}`).toBeLessThanOrEqual(ceiling);
      }
    }
  }
}

describe("isolates that decide by leases", () => {
  it("together never admit more than a limit, whatever becomes of their calls", async () => {
    let admitted = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (one) => {
        const { quotas, admissions } = await play(one);
        expectWithinLimits(quotas, admissions);
        admitted += admissions.length;
      }),
      { seed: 20_260_105, numRuns: 1000 },
    );
    expect(admitted).toBeGreaterThan(50_000);
  }, 60_000);

  const races = fc.record({
    limit: fc.integer({ min: 1, max: 300 }),
    shared: fc.integer({ min: 1, max: 300 }),
    isolates: fc.integer({ min: 1, max: 6 }),
    hasDenials: fc.boolean(),
    order: fc.infiniteStream(fc.nat({ max: 999 })),
  });

  it("use all of a limit while they are busy, in whatever order they are answered", async () => {
    await fc.assert(
      fc.asyncProperty(races, async ({ limit, isolates: count, hasDenials, order }) => {
        vi.setSystemTime(NOW);
        const { far, underWay } = farAway(createMemoryStore(), () => Date.now());
        const options = {
          timeoutMs: TIMEOUT_MS,
          background: (task: Promise<unknown>) => void task,
        };
        const stores = Array.from({ length: count }, () =>
          withLeases(hasDenials ? withDenialCache(far) : far, options),
        );
        const quota = counter({ limit, windowMs: HOUR, leasable: true });
        const next = () => order.next().value ?? 0;
        let [admitted, lastAdmitted] = [0, true];
        // Each goes on until it is denied, and no isolate has quota any more.
        for (let round = 0; round < 600 && lastAdmitted; round++) {
          lastAdmitted = false;
          const waiting = stores.flatMap((store) =>
            Array.from({ length: 1 + (next() % 3) }, async () => {
              const { groups } = await store.decide([[quota]]);
              if (!groups[0]?.admitted) return;
              admitted++;
              lastAdmitted = true;
            }),
          );
          await settle();
          while (underWay.length > 0) {
            vi.setSystemTime(Date.now() + (next() % 30));
            await underWay[next() % underWay.length]?.move();
            await settle();
          }
          await Promise.all(waiting);
        }
        expect(admitted).toBe(limit);
      }),
      { seed: 20_260_106, numRuns: 60 },
    );
  }, 60_000);

  it("charge a group in all of its counters or in none", async () => {
    await fc.assert(
      fc.asyncProperty(races, async ({ limit, shared, isolates: count, hasDenials, order }) => {
        vi.setSystemTime(NOW);
        const memory = createMemoryStore();
        const { far, underWay } = farAway(memory, () => Date.now());
        const options = {
          timeoutMs: TIMEOUT_MS,
          background: (task: Promise<unknown>) => void task,
        };
        const stores = Array.from({ length: count }, () =>
          withLeases(hasDenials ? withDenialCache(far) : far, options),
        );
        const everyone = counter({ limit: shared, windowMs: HOUR, leasable: true });
        const clients = [1, 2, 3].map(() => counter({ limit, windowMs: HOUR, leasable: true }));
        const admitted = new Map(clients.map(({ key }) => [key, 0]));
        const next = () => order.next().value ?? 0;
        for (let round = 0; round < 60; round++) {
          for (const store of stores) {
            const client = clients[next() % clients.length] as Counter;
            void store.decide([[client, everyone]]).then(({ groups }) => {
              if (groups[0]?.admitted)
                admitted.set(client.key, (admitted.get(client.key) ?? 0) + 1);
            });
          }
          await settle();
          for (let moves = next() % 8; moves > 0 && underWay.length > 0; moves--) {
            vi.setSystemTime(Date.now() + (next() % 30));
            await underWay[next() % underWay.length]?.move();
            await settle();
          }
        }
        while (underWay.length > 0) {
          await underWay[0]?.move();
          await settle();
        }
        // What is given back of each counter leaves what was admitted.
        for (const store of stores) {
          for (const each of [everyone, ...clients]) {
            const back = store.adjust([{ ...each, cost: 0 }]);
            await settle();
            while (underWay.length > 0) {
              await underWay[0]?.move();
              await settle();
            }
            await back;
          }
        }
        const { groups } = await memory.decide([
          [everyone, ...clients].map((each) => ({ ...each, cost: 0 })),
        ]);
        const counts = groups[0]?.tallies.map((tally) => tally?.count);
        const each = clients.map(({ key }) => admitted.get(key) as number);
        expect(counts).toEqual([each.reduce((sum, one) => sum + one), ...each]);
        for (const one of each) expect(one).toBeLessThanOrEqual(limit);
        expect(counts?.[0]).toBeLessThanOrEqual(shared);
      }),
      { seed: 20_260_107, numRuns: 60 },
    );
  }, 60_000);
});
