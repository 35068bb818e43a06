import { env } from "cloudflare:workers";
import { inject } from "vitest";
import { createDurableObjectStore } from "../../src/stores/durable-object/durable-object-store.ts";
import { createMemoryStore } from "../../src/stores/memory-store.ts";
import type { Store } from "../../src/stores/store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";

/** The deadline of these stores, in milliseconds. It is long enough for a busy machine. */
export const TIMEOUT_MS = 10_000;

/**
 * The kinds of stores. Each has a name for test titles, and a function that creates the store for a
 * prefix.
 */
export const EVERY_STORE: Readonly<Record<string, (prefix: string) => Store>> = {
  memory: () => createMemoryStore(),
  "Durable Objects": (prefix) =>
    createDurableObjectStore({ namespace: env.COUNTERS, prefix, timeoutMs: TIMEOUT_MS }),
  Redis: () => {
    const { restUrl: url, restToken: token } = inject("redis");
    return createUpstashStore({ url, token, clock: "edge", timeoutMs: TIMEOUT_MS });
  },
};

/** Returns a store that uses the time of `clock` in every call. The time is in milliseconds. */
export function withClock(store: Store, clock: () => number): Store {
  return {
    decide: (groups) => store.decide(groups, clock()),
    adjust: (counters, _, unused) => store.adjust(counters, clock(), unused),
    reset: (counters) => store.reset(counters, clock()),
  };
}
