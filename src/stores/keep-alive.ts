import type { Store } from "./store.ts";

/** Keeps a task's invocation alive until the task has ended, though its client has hung up. */
export type KeepAlive = (task: Promise<unknown>) => void;

/**
 * A store whose calls run to their end, whatever becomes of the client.
 *
 * When a client hangs up, Workers cancels its invocation at the next `await`, unless a promise given to
 * `waitUntil` is pending. What stands before this store (breaker, denial cache, leases) only computes
 * when a call has ended, and begins the next call at once, so that it runs to its end too. Decisions
 * from memory do not come here, and pay nothing.
 */
export function withKeepAlive(store: Store, keepAlive: KeepAlive): Store {
  function kept<Result>(call: Promise<Result>): Promise<Result> {
    // The caller sees the failure; to the platform it would be one that nobody handles.
    keepAlive(call.catch(() => {}));
    return call;
  }

  return {
    decide: (groups, now, unused) => kept(store.decide(groups, now, unused)),
    adjust: (counters, now) => kept(store.adjust(counters, now)),
    reset: (counters, now) => kept(store.reset(counters, now)),
  };
}
