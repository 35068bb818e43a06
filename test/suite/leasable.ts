import type { Counter } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";

/** Returns a store that marks the same counters as leasable as limiter/counters.ts does. */
export function leasable(store: Store): Store {
  const mark = (counter: Counter): Counter => {
    const { rollsOver, banMs, alternative } = counter;
    return rollsOver || banMs !== undefined || alternative
      ? counter
      : { ...counter, leasable: true };
  };
  return {
    decide: (groups, now, unused) =>
      store.decide(
        groups.map((group) => group.map(mark)),
        now,
        unused,
      ),
    adjust: (counters, now) => store.adjust(counters.map(mark), now),
    reset: (counters, now) => store.reset(counters.map(mark), now),
  };
}
