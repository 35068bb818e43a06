import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { type Demand, windowAt } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { type Store, StoreError } from "../../../../src/stores/store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { propertyRuns, runs } from "../../../suite/runs.ts";
import { answersFrom, verdictOf } from "../../../suite/verdict.ts";
import { counter, flushPromises, leasesOver, stopClock } from "./leases-setup.ts";

// Many isolates call one store. The calls and their answers arrive in any order, and a call can
// fail before or after the store has charged. No window may ever admit more than its limit.

const WINDOW_MS = 10_000;

stopClock();

/** A message between an isolate and the store. A test delivers it or lets it fail. */
interface Message {
  deliver(): Promise<void>;
  fail(): void;
}

/** Wraps a store so that calls and answers arrive only when a test delivers them. */
function distantStore(store: Store, clock: () => number) {
  const messages: Message[] = [];

  function call<Answer>(action: () => Promise<Answer>): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const leave = (self: Message) => messages.splice(messages.indexOf(self), 1);
    const fail = (self: Message) => {
      leave(self);
      reject(new StoreError("timeout", "lost in transit"));
    };
    const back = (answer: Answer): Message => {
      const self: Message = {
        async deliver() {
          leave(self);
          resolve(answer);
        },
        fail: () => fail(self),
      };
      return self;
    };
    const there: Message = {
      async deliver() {
        leave(there);
        messages.push(back(await action()));
      },
      fail: () => fail(there),
    };
    messages.push(there);
    return promise;
  }

  const far: Store = {
    decide: (groups, now, unused) =>
      answersFrom(
        groups,
        call(() => verdictOf(store.decide(groups, now ?? clock(), unused))),
      ),
    adjust: (counters, now, unused) => call(() => store.adjust(counters, now ?? clock(), unused)),
    reset: (counters, now) => call(() => store.reset(counters, now ?? clock())),
  };
  return { far, messages };
}

type Step =
  | {
      readonly kind: "request";
      readonly isolate: number;
      readonly counters: readonly CounterRequest[];
      readonly inOwnGroups: boolean;
    }
  | { readonly kind: "deliver"; readonly at: number; readonly times: number }
  | { readonly kind: "fail"; readonly at: number }
  | { readonly kind: "pass"; readonly ms: number };

interface CounterRequest {
  readonly counter: number;
  readonly cost: number;
  readonly checkOnly: boolean;
  readonly otherTier: boolean;
}

interface Scenario {
  readonly limits: readonly number[];
  /**
   * The error of each isolate's clock, in milliseconds. The store's clock has the error of the
   * first isolate.
   */
  readonly skews: readonly number[];
  readonly hasDenials: boolean;
  /** Whether the isolates' clocks determine the windows, instead of the store's clock. */
  readonly isGiven: boolean;
  readonly startMs: number;
  readonly steps: readonly Step[];
}

const COUNTERS = 3;

const counterRequest: fc.Arbitrary<CounterRequest> = fc.record({
  counter: fc.nat({ max: COUNTERS - 1 }),
  cost: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, fc.integer({ min: 0, max: 6 })),
  checkOnly: fc.nat({ max: 9 }).map((one) => one === 0),
  otherTier: fc.nat({ max: 9 }).map((one) => one === 0),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("request" as const),
      isolate: fc.nat({ max: 3 }),
      counters: fc.uniqueArray(counterRequest, {
        minLength: 1,
        maxLength: COUNTERS,
        selector: (one) => one.counter,
      }),
      inOwnGroups: fc.boolean(),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      kind: fc.constant("deliver" as const),
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
  // Requests come in bursts, because only busy counters have leases.
  steps: fc
    .array(fc.tuple(step, fc.constantFrom(1, 1, 2, 8, 20)), { minLength: 20, maxLength: 60 })
    .map((bursts) => bursts.flatMap(([one, times]) => Array<Step>(times).fill(one))),
});

interface Isolate {
  readonly store: Store;
  readonly clock: () => number;
}

/**
 * An admitted request, with the times of its call and of its answer by the clock that determines
 * the windows.
 */
interface Admission {
  readonly counter: Demand;
  readonly from: number;
  readonly to: number;
}

async function play({ limits, skews, hasDenials, isGiven, startMs, steps }: Scenario) {
  vi.setSystemTime(NOW + startMs);
  const storeClock = () => Date.now() + (skews[0] as number);
  const { far, messages } = distantStore(createMemoryStore(), storeClock);
  const isolates = skews.map((skewMs): Isolate => {
    const clock = () => Date.now() + skewMs;
    return { store: leasesOver(hasDenials ? withDenialCache(far) : far), clock };
  });
  const quotas = limits.map((limit) => counter({ limit, windowMs: WINDOW_MS }));
  const admissions: Admission[] = [];

  async function request({ store, clock }: Isolate, groups: Demand[][]): Promise<void> {
    const now = isGiven ? clock() : undefined;
    const from = now ?? storeClock();
    const verdict = await verdictOf(store.decide(groups, now)).catch((error) => {
      expect(error).toBeInstanceOf(StoreError);
    });
    const to = now ?? storeClock();
    for (const [index, group] of groups.entries()) {
      if (!verdict?.groups[index]?.admitted) continue;
      for (const each of group) if (!each.checkOnly) admissions.push({ counter: each, from, to });
    }
  }

  for (const one of steps) {
    if (one.kind === "request") {
      const counters = one.counters.map(({ counter: index, otherTier, ...requested }): Demand => {
        const quota = quotas[index] as Demand;
        const limit = otherTier ? Math.ceil(quota.limit / 3) : quota.limit;
        return { ...quota, ...requested, limit, ceiling: limit };
      });
      const groups = one.inOwnGroups ? counters.map((each) => [each]) : [counters];
      void request(isolates[one.isolate % isolates.length] as Isolate, groups);
    } else if (one.kind === "pass") {
      vi.setSystemTime(Date.now() + one.ms);
    } else if (messages.length > 0) {
      const next = () => messages[one.at % messages.length];
      if (one.kind === "fail") next()?.fail();
      else for (let moved = 0; moved < one.times; moved++) await next()?.deliver();
    }
    await flushPromises();
  }
  while (messages.length > 0) {
    await messages[0]?.deliver();
    await flushPromises();
  }
  return { quotas, admissions };
}

/**
 * Checks each window of each counter, for each of the counter's tiers: the costs of the admitted
 * requests must add up to at most the limit.
 */
function expectWithinLimits(quotas: readonly Demand[], admissions: readonly Admission[]): void {
  for (const quota of quotas) {
    const own = admissions.filter((each) => each.counter.key === quota.key);
    const windows = new Set(own.map(({ from }) => windowAt(from, quota).index));
    for (const ceiling of new Set(own.map((each) => each.counter.ceiling))) {
      for (const window of windows) {
        // A request that spans two windows is left out, because it may have been charged to either
        // window.
        const inside = own.filter(
          ({ counter: each, from, to }) =>
            each.ceiling <= ceiling &&
            windowAt(from, quota).index === window &&
            windowAt(to, quota).index === window,
        );
        const sum = inside.reduce((total, each) => total + each.counter.cost, 0);
        expect(sum, `limit ${ceiling} in window ${window}`).toBeLessThanOrEqual(ceiling);
      }
    }
  }
}

describe("isolates with leases", () => {
  it("together never admit more than a limit, even if calls fail or are reordered", async () => {
    let admitted = 0;
    await fc.assert(
      fc.asyncProperty(scenario, async (one) => {
        const { quotas, admissions } = await play(one);
        expectWithinLimits(quotas, admissions);
        admitted += admissions.length;
      }),
      propertyRuns(1000),
    );
    expect(admitted).toBeGreaterThan(runs(50_000));
  });

  const races = fc.record({
    limit: fc.integer({ min: 1, max: 300 }),
    shared: fc.integer({ min: 1, max: 300 }),
    isolates: fc.integer({ min: 1, max: 6 }),
    hasDenials: fc.boolean(),
    order: fc.infiniteStream(fc.nat({ max: 999 })),
  });

  it("together admit exactly the limit while they are busy, whatever the order of the answers", async () => {
    await fc.assert(
      fc.asyncProperty(races, async ({ limit, isolates: count, hasDenials, order }) => {
        vi.setSystemTime(NOW);
        const { far, messages } = distantStore(createMemoryStore(), () => Date.now());
        const stores = Array.from({ length: count }, () =>
          leasesOver(hasDenials ? withDenialCache(far) : far),
        );
        const quota = counter({ limit, windowMs: HOUR });
        const next = () => order.next().value ?? 0;
        let [admitted, lastAdmitted] = [0, true];
        // All isolates send requests until the store denies all requests of a round.
        for (let round = 0; round < 600 && lastAdmitted; round++) {
          lastAdmitted = false;
          const waiting = stores.flatMap((store) =>
            Array.from({ length: 1 + (next() % 3) }, async () => {
              const { groups } = await verdictOf(store.decide([[quota]]));
              if (!groups[0]?.admitted) return;
              admitted++;
              lastAdmitted = true;
            }),
          );
          await flushPromises();
          while (messages.length > 0) {
            vi.setSystemTime(Date.now() + (next() % 30));
            await messages[next() % messages.length]?.deliver();
            await flushPromises();
          }
          await Promise.all(waiting);
        }
        expect(admitted).toBe(limit);
      }),
      propertyRuns(60),
    );
  });

  it("charge all counters of a group or none", async () => {
    await fc.assert(
      fc.asyncProperty(races, async ({ limit, shared, isolates: count, hasDenials, order }) => {
        vi.setSystemTime(NOW);
        const memory = createMemoryStore();
        const { far, messages } = distantStore(memory, () => Date.now());
        const stores = Array.from({ length: count }, () =>
          leasesOver(hasDenials ? withDenialCache(far) : far),
        );
        const everyone = counter({ limit: shared, windowMs: HOUR });
        const clients = [1, 2, 3].map(() => counter({ limit, windowMs: HOUR }));
        const admitted = new Map(clients.map(({ key }) => [key, 0]));
        const next = () => order.next().value ?? 0;
        for (let round = 0; round < 60; round++) {
          for (const store of stores) {
            const client = clients[next() % clients.length] as Demand;
            void verdictOf(store.decide([[client, everyone]])).then(({ groups }) => {
              if (groups[0]?.admitted)
                admitted.set(client.key, (admitted.get(client.key) ?? 0) + 1);
            });
          }
          await flushPromises();
          for (let moves = next() % 8; moves > 0 && messages.length > 0; moves--) {
            vi.setSystemTime(Date.now() + (next() % 30));
            await messages[next() % messages.length]?.deliver();
            await flushPromises();
          }
        }
        while (messages.length > 0) {
          await messages[0]?.deliver();
          await flushPromises();
        }
        // After all unspent quota is returned, the counts are those of the admitted requests.
        for (const store of stores) {
          for (const each of [everyone, ...clients]) {
            const adjusted = store.adjust([{ ...each, cost: 0 }]);
            await flushPromises();
            while (messages.length > 0) {
              await messages[0]?.deliver();
              await flushPromises();
            }
            await adjusted;
          }
        }
        const { groups } = await verdictOf(
          memory.decide([[everyone, ...clients].map((each) => ({ ...each, cost: 0 }))]),
        );
        const counts = groups[0]?.tallies.map((tally) => tally?.count);
        const each = clients.map(({ key }) => admitted.get(key) as number);
        expect(counts).toEqual([each.reduce((sum, one) => sum + one), ...each]);
        for (const one of each) expect(one).toBeLessThanOrEqual(limit);
        expect(counts?.[0]).toBeLessThanOrEqual(shared);
      }),
      propertyRuns(60),
    );
  });
});

interface Arrival {
  readonly cost: number;
  /** Whether the request also takes quota of a counter without a lease, which may deny it. */
  readonly takesBoth: boolean;
  /** How many messages arrive before the next request. */
  readonly messages: number;
  readonly order: number;
}

const arrivals = fc.record({
  limit: fc.integer({ min: 20, max: 300 }),
  otherLimit: fc.integer({ min: 0, max: 100 }),
  hasDenials: fc.boolean(),
  requests: fc
    .array(
      fc.tuple(
        fc.record({
          cost: fc.oneof(
            { weight: 4, arbitrary: fc.constant(1) },
            fc.integer({ min: 1, max: 8 }),
            fc.integer({ min: 10, max: 40 }),
          ),
          takesBoth: fc.nat({ max: 4 }).map((one) => one === 0),
          messages: fc.nat({ max: 3 }),
          order: fc.nat({ max: 99 }),
        }),
        fc.constantFrom(1, 1, 3, 8),
      ),
      { minLength: 10, maxLength: 60 },
    )
    .map((bursts) => bursts.flatMap(([one, times]) => Array<Arrival>(times).fill(one))),
});

describe("the only isolate of a client", () => {
  it("denies no request that fits beside all those that it admits, whatever the order of calls and answers", async () => {
    let denied = 0;
    await fc.assert(
      fc.asyncProperty(arrivals, async ({ limit, otherLimit, hasDenials, requests }) => {
        vi.setSystemTime(NOW);
        const { far, messages } = distantStore(createMemoryStore(), () => Date.now());
        const store = leasesOver(hasDenials ? withDenialCache(far) : far);
        const quota = counter({ limit, windowMs: HOUR });
        const other = counter({ limit: otherLimit, windowMs: HOUR, leasable: false });
        const decided: { cost: number; takesBoth: boolean; admitted: boolean }[] = [];
        const finish = async () => {
          while (messages.length > 0) {
            await messages[0]?.deliver();
            await flushPromises();
          }
        };
        for (const [index, { cost, takesBoth, messages: moves, order }] of requests.entries()) {
          // A call that takes longer than its deadline has failed, so all calls end after some requests.
          if (index % 8 === 0) await finish();
          const own = { ...quota, cost };
          const group = takesBoth ? [own, other] : [own];
          void verdictOf(store.decide([group])).then(({ groups }) => {
            decided.push({ cost, takesBoth, admitted: groups[0]?.admitted === true });
          });
          await flushPromises();
          for (let move = 0; move < moves && messages.length > 0; move++) {
            vi.setSystemTime(Date.now() + (order % 40));
            await messages[order % messages.length]?.deliver();
            await flushPromises();
          }
        }
        await finish();
        expect(decided).toHaveLength(requests.length);
        const admitted = decided.filter((one) => one.admitted);
        const left = limit - admitted.reduce((sum, { cost }) => sum + cost, 0);
        const otherLeft = otherLimit - admitted.filter(({ takesBoth }) => takesBoth).length;
        expect(left).toBeGreaterThanOrEqual(0);
        expect(otherLeft).toBeGreaterThanOrEqual(0);
        for (const one of decided) {
          if (one.admitted) continue;
          denied += 1;
          if (!one.takesBoth || otherLeft > 0) expect(one.cost).toBeGreaterThan(left);
        }
      }),
      propertyRuns(1000),
    );
    expect(denied).toBeGreaterThan(runs(1000));
  });
});
