import { afterAll, beforeAll, it } from "vitest";
import { type Entry, type EntryAnswer, withBatches } from "../../src/stores/batch.ts";
import { Breaker } from "../../src/stores/breaker.ts";
import { createStore } from "../../src/stores/create-store.ts";
import { inTime } from "../../src/stores/deadline.ts";
import type { CounterObject } from "../../src/stores/durable-object/counter-object.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import { type Answer, StoreError } from "../../src/stores/store.ts";
import { expectBounds, time, type World } from "../suite/sliding-simulation.ts";
import { type Namespace, withObjects } from "./stores/durable-object/objects-in-one.ts";

let restore = () => {};

beforeAll(() => {
  restore = time.install();
});

afterAll(() => restore());

/** Returns isolates whose calls to real counter objects pass through a network with faults. */
function objectWorld(objects: Namespace): World {
  type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;
  return {
    // By the isolates' clocks, objects would remove rows a second after their end by any of these clocks.
    clocks: ["store"],
    restart: () => objects.restart(),
    createStore(net, options) {
      const getByName = (name: string) =>
        new Proxy({} as Methods, {
          get:
            (_, method: string) =>
            (...args: unknown[]) =>
              net.call(
                async () => (objects.getByName(name) as unknown as Methods)[method]?.(...args),
                () => new Error("Network connection lost."),
              ),
        });
      const namespace = { getByName } as unknown as DurableObjectNamespace<CounterObject>;
      return createStore({ kind: "durable-object", namespace }, options);
    },
  };
}

/** Returns isolates whose batches are carried out by the engine, with the wrappers of the store in Upstash. */
function engineWorld(): World {
  const memory = createMemoryStore();
  const decide = async ({ group = [], now }: Entry) =>
    (await memory.decide([group], now)[0]) as Answer;
  async function carryOut(entry: Entry): Promise<EntryAnswer[]> {
    const { now, adjusted, group, times } = entry;
    const tallies = await memory.adjust(adjusted, now);
    return Promise.all(
      Array.from({ length: times }, async () => ({
        adjusted: tallies,
        ...(group && { decided: await decide(entry) }),
      })),
    );
  }
  return {
    clocks: ["store", "edge"],
    createStore(net, { timeoutMs }) {
      const breaker = new Breaker({ timeoutMs });
      const options = { timeoutMs, keepAlive: () => {}, background: () => {} };
      const run = (entries: readonly Entry[]) => {
        const call = () =>
          net.call(
            () => Promise.all(entries.map(carryOut)),
            () => new StoreError("unreachable", "no answer"),
          );
        return breaker.run([], () => inTime(call, timeoutMs));
      };
      return withLeases(withDenialCache(withBatches({ run }, options)), options);
    },
  };
}

it("no interval of a sliding window's length holds more than the limit, by the engine", async () => {
  await expectBounds(engineWorld(), 80);
}, 900_000);

it("no interval of a sliding window's length holds more than the limit, in Durable Objects", async () => {
  await withObjects((objects) => expectBounds(objectWorld(objects), 40));
}, 900_000);
