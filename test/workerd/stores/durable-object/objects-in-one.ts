import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { CounterObject } from "../../../../src/stores/durable-object/counter-object.ts";

export type Namespace = DurableObjectNamespace<CounterObject>;

/**
 * Runs a task within a Durable Object, with any number of real counter objects over its storage, in
 * which every counter has a key of its own. So calls of objects take no time but the clock's, which may
 * be virtual; see {@link useVirtualTime}.
 */
export function withObjects<Result>(
  task: (objects: Namespace) => Promise<Result>,
): Promise<Result> {
  const stub = env.COUNTERS.getByName(crypto.randomUUID());
  return runInDurableObject(stub, (_, state) => {
    const objects = new Map<string, CounterObject>();
    const getByName = (name: string) => {
      const object = objects.get(name) ?? new CounterObject(state, {});
      objects.set(name, object);
      return object;
    };
    return task({ getByName } as unknown as Namespace);
  });
}

const DAY = 24 * 3_600_000;

/** From tomorrow's noon on: no window ends meanwhile, and no alarm is due by the machine's clock. */
export function useVirtualTime(): void {
  const now = Math.ceil(Date.now() / DAY) * DAY + DAY / 2;
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"], now });
}

/** Lets virtual time go on until a task has ended. */
export async function passTime<Result>(stepMs: number, task: Promise<Result>): Promise<Result> {
  let isOver = false;
  const ended = task.finally(() => {
    isOver = true;
  });
  // Its failure is the caller's, whenever it comes.
  ended.catch(() => {});
  while (!isOver) await vi.advanceTimersByTimeAsync(stepMs);
  return ended;
}

export const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
