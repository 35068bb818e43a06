import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createStore } from "../../src/stores/create-store.ts";
import type { CounterObject } from "../../src/stores/durable-object/counter-object.ts";
import { IS_LONG, SEED } from "../suite/runs.ts";
import { simulate, TIMEOUT_MS, type World } from "../suite/slot-simulation.ts";
import { type Namespace, withObjects } from "./stores/durable-object/objects-in-one.ts";

const DAY = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    now: Math.ceil(Date.now() / DAY) * DAY + DAY / 2,
  });
});

afterEach(() => {
  vi.useRealTimers();
});

const pass: World["pass"] = async (ms) => {
  await vi.advanceTimersByTimeAsync(ms);
};

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** Creates isolates whose calls to real counter objects pass through a network with faults. */
function objectWorld(objects: Namespace): World {
  return {
    createStore: (net, prefix) => {
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
      const options = { clock: "edge", prefix, timeoutMs: TIMEOUT_MS } as const;
      return createStore({ kind: "durable-object", namespace }, options);
    },
    faults: {
      // All objects lose what they have in memory, such as open holds. Their storage stays.
      restarted: async () => {
        objects.restart();
        return async () => objects.restart();
      },
    },
    pass,
  };
}

const seeds = Array.from({ length: IS_LONG ? 500 : 20 }, (_, index) => SEED + index);

it("after faults of Durable Objects, no slot is taken that nobody has", async () => {
  const wrong = await withObjects(async (objects) => {
    const found: string[] = [];
    for (const seed of seeds) found.push(...(await simulate(objectWorld(objects), seed)));
    // All calls end before the object does.
    await pass(60 * TIMEOUT_MS);
    return found;
  });
  expect(wrong).toEqual([]);
}, 900_000);

it("without faults of the store in memory, no slot is taken that nobody has", async () => {
  const memory = createStore(
    { kind: "memory" },
    { clock: "edge", prefix: "", timeoutMs: TIMEOUT_MS },
  );
  const wrong: string[] = [];
  for (const seed of seeds)
    wrong.push(...(await simulate({ createStore: () => memory, pass }, seed)));
  expect(wrong).toEqual([]);
}, 900_000);
