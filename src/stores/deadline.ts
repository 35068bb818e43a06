import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/**
 * A store that is waited for no longer than `timeoutMs`; then it fails with `timeout`. What was asked
 * may still be charged.
 */
export function withDeadline(store: Store, timeoutMs: number): Store {
  async function inTime<Result>(call: () => Promise<Result>): Promise<Result> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      reject(new StoreError("timeout", `no decision within ${timeoutMs} ms`));
    }, timeoutMs);
    try {
      return await Promise.race([call(), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    decide: (groups, now, unused) => inTime(() => store.decide(groups, now, unused)),
    adjust: (counters, now) => inTime(() => store.adjust(counters, now)),
    reset: (counters, now) => inTime(() => store.reset(counters, now)),
  };
}
