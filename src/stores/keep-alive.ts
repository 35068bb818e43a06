import type { Store } from "./store.ts";

/** Keeps an invocation alive until a task has ended, even if the client hangs up. */
export type KeepAlive = (task: Promise<unknown>) => void;

/**
 * Wraps a store so that its calls run to their end, even if the client hangs up.
 *
 * When a client hangs up, the Workers runtime cancels the invocation at its next `await`, unless a
 * promise passed to `waitUntil` is pending. The wrappers around this store (breaker, denial cache,
 * leases) await nothing between two calls: their code runs synchronously until it starts the next
 * call. So these wrappers run to their end as well. Decisions from memory do not reach this store
 * and cost nothing extra.
 */
export function withKeepAlive(store: Store, keepAlive: KeepAlive): Store {
  function protect<Result>(call: Promise<Result>): Promise<Result> {
    // The caller handles a failure of the call. Without this `catch`, the platform would also
    // report it as unhandled.
    keepAlive(call.catch(() => {}));
    return call;
  }

  return {
    decide: (groups, now, unused) => protect(store.decide(groups, now, unused)),
    adjust: (counters, now) => protect(store.adjust(counters, now)),
    reset: (counters, now) => protect(store.reset(counters, now)),
  };
}
