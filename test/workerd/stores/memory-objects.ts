import type { Entry } from "../../../src/stores/batch.ts";
import { inTime } from "../../../src/stores/deadline.ts";
import { createDurableObjectStore } from "../../../src/stores/durable-object/durable-object-store.ts";
import { withDenialCache } from "../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { NOW } from "../../suite/driver.ts";

const TIMEOUT_MS = 50;

/**
 * Creates a store of Durable Objects in memory, with all wrappers. Calls to the object `broken` run `fail`.
 */
export function storeThat(fail: () => Promise<never>) {
  const memory = createMemoryStore();
  /** The identities in each call. */
  const calls: string[][] = [];
  const tasks: Promise<unknown>[] = [];
  const background = (task: Promise<unknown>) => void tasks.push(task);
  const namespace = {
    getByName: (name: string) => ({
      async run(entries: readonly Entry[]) {
        const identity = name.slice(name.indexOf(":") + 1);
        calls.push(entries.flatMap(({ group }) => (group ? [identity] : [])));
        if (identity === "broken") await fail();
        const decided = entries.map(async ({ group, now = NOW, unused }) => {
          const answers = await Promise.all(memory.decide(group ? [group] : [], now, unused));
          return { parts: answers.map((answer) => ({ requests: 1, answer })), tallies: [] };
        });
        return Promise.all(decided);
      },
    }),
  };
  const objects = createDurableObjectStore({
    namespace: namespace as never,
    prefix: "test",
    timeoutMs: TIMEOUT_MS,
    background,
    makeCall: (_, call) => inTime(call, TIMEOUT_MS),
  });
  const store = withLeases(withDenialCache(objects), { timeoutMs: TIMEOUT_MS, background });
  return { store, memory, calls, tasks };
}
