import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/**
 * Wraps a store so that a call fails with `timeout` after `timeoutMs`. The store may still finish
 * that call and charge its counters.
 */
export function withDeadline(store: Store, timeoutMs: number): Store {
  async function limit<Result>(call: () => Promise<Result>): Promise<Result> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    // `weir doctor` loads this file in Node 20, which has no Promise.withResolvers.
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new StoreError("timeout", `no decision within ${timeoutMs} ms`));
      }, timeoutMs);
    });
    try {
      return await Promise.race([call(), timeout]);
    } finally {
      clearTimeout(timer as ReturnType<typeof setTimeout>);
    }
  }

  return {
    decide: (groups, now, unused) => limit(() => store.decide(groups, now, unused)),
    adjust: (counters, now) => limit(() => store.adjust(counters, now)),
    reset: (counters, now) => limit(() => store.reset(counters, now)),
  };
}
