import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { type Entry, NOTHING } from "../../../../src/stores/batch.ts";
import {
  CounterObject,
  type TimedVerdict,
} from "../../../../src/stores/durable-object/counter-object.ts";
import { counter } from "../../../suite/counters.ts";

export type Namespace = DurableObjectNamespace<CounterObject> & {
  /** Restarts all objects: they lose what they have in memory. */
  readonly restart: () => void;
};

/**
 * Runs a task in a Durable Object, with any number of real counter objects that share its storage.
 * The objects can share the storage, because every counter has its own key. Calls to these objects
 * take no real time, so a test can use virtual time: see {@link useVirtualTime}.
 */
export function withObjects<Result>(
  task: (objects: Namespace) => Promise<Result>,
): Promise<Result> {
  const stub = env.COUNTERS.getByName(crypto.randomUUID());
  return runInDurableObject(stub, async (first, state) => {
    // Each object remembers whether its table exists, so the table must exist before all of them.
    await runIn(first, [counter()]);
    const objects = new Map<string, CounterObject>();
    // An object removes all storage when its last row is gone, but other objects may have rows.
    const keep = { value: async () => {} };
    Object.defineProperties(state.storage, { deleteAll: keep, deleteAlarm: keep });
    const getByName = (name: string) => {
      const object = objects.get(name) ?? new CounterObject(state, {});
      objects.set(name, object);
      return object;
    };
    const restart = () => objects.clear();
    return task({ getByName, restart } as unknown as Namespace);
  });
}

/** Decides a group in an object. */
export async function runIn(
  object: Pick<DurableObjectStub<CounterObject>, "run"> | CounterObject,
  group: readonly Demand[],
  fields: Partial<Entry> = {},
): Promise<TimedVerdict> {
  const [result] = await object.run([{ ...NOTHING, now: undefined, group, ...fields }]);
  return result?.parts[0]?.answer as TimedVerdict;
}

/** Returns what a call of `run` is for. */
export function kindOf([first]: readonly Entry[]): "hold" | "decide" | "adjust" | "return" {
  if (first?.hold && !first.hold.isFinal) return "hold";
  if (first?.group) return "decide";
  return first?.adjusted.length ? "adjust" : "return";
}

const DAY = 24 * 3_600_000;

/**
 * Starts virtual time at noon tomorrow, so that no window ends and no real alarm rings in a test.
 */
export function useVirtualTime(): void {
  const now = Math.ceil(Date.now() / DAY) * DAY + DAY / 2;
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now });
}

/** Advances virtual time until a task has ended. */
export async function passTime<Result>(stepMs: number, task: Promise<Result>): Promise<Result> {
  let isOver = false;
  const ended = task.finally(() => {
    isOver = true;
  });
  // The caller handles a failure of `task`.
  ended.catch(() => {});
  while (!isOver) await vi.advanceTimersByTimeAsync(stepMs);
  return ended;
}

export const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
