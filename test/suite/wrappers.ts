import type { Counter } from "../../src/engine/counter.ts";
import { Breaker, type BreakerOptions } from "../../src/stores/breaker.ts";
import { inTime } from "../../src/stores/deadline.ts";
import type { Answer, Store } from "../../src/stores/store.ts";

/** Makes a call in some way. */
type MakeCall = <Result>(
  counters: readonly Counter[],
  call: () => Promise<Result>,
) => Promise<Result>;

/** Makes each call of a store in some way. All groups of a decision are one call for the first of them. */
export function withCalls(store: Store, makeCall: MakeCall): Store {
  return {
    decide(groups, now, unused) {
      const calls = makeCall(groups[0] ?? [], () => Promise.all(store.decide(groups, now, unused)));
      calls.catch(() => {});
      return groups.map((_, index) => calls.then((answers) => answers[index] as Answer));
    },
    adjust: (counters, ...rest) => makeCall(counters, () => store.adjust(counters, ...rest)),
    reset: (counters, ...rest) => makeCall(counters, () => store.reset(counters, ...rest)),
  };
}

export function withDeadline(store: Store, timeoutMs: number): Store {
  return withCalls(store, (_, call) => inTime(call, timeoutMs));
}

export function withBreaker(store: Store, options: BreakerOptions): Store {
  const breaker = new Breaker(options);
  return withCalls(store, (counters, call) => breaker.run(counters, call));
}
