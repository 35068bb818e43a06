import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { storeCost } from "../../../src/admin/dashboard/cost.ts";
import type { Demand } from "../../../src/engine/counter.ts";
import { SHARED_REACH } from "../../../src/request/identity.ts";
import { Recorder } from "../../../src/statistics/recorder.ts";
import { addStoreSums, noStoreSums } from "../../../src/statistics/sums.ts";
import { createStore } from "../../../src/stores/create-store.ts";
import type { CounterObject } from "../../../src/stores/durable-object/counter-object.ts";
import type { Store } from "../../../src/stores/store.ts";
import { counter } from "../../suite/counters.ts";
import { HOUR } from "../../suite/driver.ts";
import { verdictOf } from "../../suite/verdict.ts";

type Method = (...args: unknown[]) => Promise<unknown>;

/** Creates an isolate with Durable Objects. @param call makes each call to an object */
function isolate(
  call: (method: Method) => Promise<unknown> = (method) => method(),
  timeoutMs = 5000,
) {
  const called: string[] = [];
  const namespace = {
    getByName(name: string) {
      const stub = env.COUNTERS.getByName(name) as unknown as Record<string, Method>;
      const methodOf =
        (method: string) =>
        (...args: unknown[]) => {
          called.push(method);
          return call(() => stub[method]?.(...args) as Promise<unknown>);
        };
      return new Proxy({}, { get: (_, method: string) => methodOf(method) });
    },
  } as unknown as DurableObjectNamespace<CounterObject>;
  const recorder = new Recorder({ background: () => {} });
  const store = createStore(
    { kind: "durable-object", namespace },
    { clock: "edge", prefix: crypto.randomUUID(), timeoutMs, meter: recorder },
  );
  const total = noStoreSums();
  const sums = () => {
    for (const { store: added } of recorder.take().minutes) addStoreSums(total, added);
    return total;
  };
  return { store, called, sums };
}

const decide = (store: Store, ...group: Demand[]) => verdictOf(store.decide([group]));

describe("the figures of Durable Objects", () => {
  it("count each of the six calls of a decision on an address and two shared keys", async () => {
    const { store, called, sums } = isolate();
    const shared = [1, 2].map((more) => counter({ reach: SHARED_REACH + more }));
    await decide(store, counter(), ...shared);
    await vi.waitUntil(() => sums().calls >= 6);
    expect([...called].sort()).toEqual(["endHold", "endHold", "run", "run", "run", "run"]);
    const { calls, failures, latency } = sums();
    expect({ calls, failures }).toEqual({ calls: 6, failures: 0 });
    expect(latency.reduce((sum, each) => sum + each)).toBe(6);
  });

  it("count each of the three calls of a decision on an address and a shared key", async () => {
    const { store, called, sums } = isolate();
    await decide(store, counter(), counter({ reach: SHARED_REACH }));
    await vi.waitUntil(() => sums().calls >= 3);
    expect([...called].sort()).toEqual(["endHold", "run", "run"]);
    expect(sums()).toMatchObject({ calls: 3, failures: 0 });
  });

  it("count a call once that decides many requests of a burst", async () => {
    const { store, called, sums } = isolate();
    const quota = counter({ limit: 100 });
    await Promise.all(Array.from({ length: 64 }, () => decide(store, quota)));
    expect(called.length).toBeLessThanOrEqual(5);
    const store64 = sums();
    expect(store64.calls).toBe(called.length);
    expect(storeCost(store64, "durable-object")?.count).toBe(called.length);
  });

  it("count a few calls for a thousand requests of a client under a sliding window", async () => {
    const { store, called, sums } = isolate();
    const each = counter({ limit: 50, subWindows: 10, windowMs: HOUR });
    const all = Array.from({ length: 1000 }, () => decide(store, each));
    const admitted = (await Promise.all(all)).filter(({ groups }) => groups[0]?.admitted);
    expect(admitted).toHaveLength(50);
    expect(called.length).toBeLessThanOrEqual(5);
    expect(sums().calls).toBe(called.length);
  });

  it("count charges, refunds, returns and resets", async () => {
    const { store, called, sums } = isolate();
    const [one, other] = [counter(), counter()];
    await decide(store, one);
    await store.adjust([
      { ...one, cost: 2 },
      { ...other, cost: 1 },
    ]);
    await store.adjust([], undefined, [{ counter: one, quota: 1, window: 0 }]);
    await store.reset([one, other]);
    expect(called).toEqual(Array(6).fill("run"));
    expect(sums()).toMatchObject({ calls: 6, failures: 0 });
  });

  const ofBurst = (one: Demand): Record<string, (store: Store) => Promise<unknown>> => ({
    "charges after responses": (store) => store.adjust([{ ...one, cost: 2 }]),
    "renewals of slots": (store) => store.adjust([{ ...one, slot: 1, cost: 0 }]),
    returns: (store) => store.adjust([], undefined, [{ counter: one, quota: 1, window: 0 }]),
    resets: (store) => store.reset([one]),
  });

  it.each(Object.keys(ofBurst(counter())))("count few calls for a burst of %s", async (work) => {
    const { store, called, sums } = isolate();
    const run = ofBurst(counter({ limit: 100 }))[work] as (store: Store) => Promise<unknown>;
    await Promise.all(Array.from({ length: 64 }, () => run(store)));
    expect(called.length).toBeLessThanOrEqual(9);
    expect(sums().calls).toBe(called.length);
  });

  it("have the failure of each call, and none for calls that the breaker stops", async () => {
    const lost = () => Promise.reject(new Error("Network connection lost."));
    const { store, called, sums } = isolate(lost);
    const quota = counter();
    for (let request = 1; request <= 9; request++) await decide(store, quota).catch(() => {});
    expect(called).toHaveLength(5);
    expect(sums()).toMatchObject({ calls: 5, failures: 5 });
  });

  it("have a call without an answer as a failure that took the deadline", async () => {
    const { store, sums } = isolate(() => new Promise(() => {}), 50);
    await expect(decide(store, counter())).rejects.toThrow();
    await vi.waitUntil(() => sums().calls > 0);
    expect(sums()).toMatchObject({ calls: 1, failures: 1 });
    expect(sums().latencyMs).toBeGreaterThanOrEqual(50);
  });
});
