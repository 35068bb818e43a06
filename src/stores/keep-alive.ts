import { aroundCalls } from "./around-calls.ts";

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
export function withKeepAlive<Calls extends object>(store: Calls, keepAlive: KeepAlive): Calls {
  return aroundCalls(store, (call) => {
    const result = call();
    // The caller handles a failure of the call. Without this `catch`, the platform would also
    // report it as unhandled.
    keepAlive(result.catch(() => {}));
    return result;
  });
}
