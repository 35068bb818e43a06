import type { Counter } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";

/**
 * Wraps a store, and marks counters as leasable under the same conditions as limiter/counters.ts.
 */
export function leasable(store: Store): Store {
  const mark = <Each extends Counter>(counter: Each): Each => {
    const { rollsOver, ban, subWindows } = counter;
    return rollsOver || ban || subWindows ? counter : { ...counter, leasable: true };
  };
  return {
    decide: (groups, now, unused) =>
      store.decide(
        groups.map((group) => group.map(mark)),
        now,
        unused,
      ),
    adjust: (counters, now, unused) => store.adjust(counters.map(mark), now, unused),
    reset: (counters, now) => store.reset(counters.map(mark), now),
  };
}
