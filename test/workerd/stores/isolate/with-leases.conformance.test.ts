import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { conformance } from "../../../suite/conformance.ts";
import { leasable } from "../../../suite/leasable.ts";
import { answersFrom, verdictOf } from "../../../suite/verdict.ts";

/**
 * Wraps a store with leases. Each decision waits for the block that it fetches in the background,
 * because the model compares exact figures. A block that arrived during an adjustment would make
 * the figures stale.
 */
function overStore(store: Store): Store {
  const tasks: Promise<unknown>[] = [];
  const background = (task: Promise<unknown>) => {
    tasks.push(task);
  };
  const leases = leasable(withLeases(store, { timeoutMs: 1000, background }));
  return {
    ...leases,
    decide(groups, now, unused) {
      const decided = verdictOf(leases.decide(groups, now, unused));
      const verdict = decided.finally(() => Promise.all(tasks.splice(0)));
      return answersFrom(groups, verdict);
    },
  };
}

conformance("leases", () => overStore(createMemoryStore()), { sequences: 3000, bans: true });

conformance("leases over a denial cache", () => overStore(withDenialCache(createMemoryStore())), {
  sequences: 2000,
  bans: true,
});
