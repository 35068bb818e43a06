import { waitUntil } from "cloudflare:workers";
import type { StoreBinding } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { type BreakerScope, type BreakerState, withBreaker } from "./breaker.ts";
import { withDeadline } from "./deadline.ts";
import type { CounterObject } from "./durable-object/counter-object.ts";
import { createDurableObjectStore } from "./durable-object/durable-object-store.ts";
import { withDenialCache } from "./isolate/with-denial-cache.ts";
import { withLeases } from "./isolate/with-leases.ts";
import { withKeepAlive } from "./keep-alive.ts";
import { createMemoryStore } from "./memory-store.ts";
import { isShadow, withShadowsApart } from "./shadow-groups.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";
import { createUpstashStore } from "./upstash/upstash-store.ts";

export interface StoreOptions extends Pick<Config, "clock" | "prefix" | "timeoutMs"> {
  /** Called when the store, or an object of it, is no longer called, and when it is again. */
  readonly onBreaker?: (state: BreakerState, scope: BreakerScope) => void;
}

/** The store that the settings ask for; one that cannot be had decides nothing. */
export function createStore(settings: StoreBinding, options: StoreOptions): Store {
  const { clock, prefix, timeoutMs } = options;
  switch (settings.kind) {
    case "upstash": {
      const { url, token } = settings;
      return atEdge(createUpstashStore({ url, token, clock, timeoutMs }), options, 1);
    }
    case "durable-object": {
      const namespace = settings.namespace as DurableObjectNamespace<CounterObject>;
      const objects = createDurableObjectStore({ namespace, prefix, timeoutMs });
      const apart = withShadowsApart(objects, { timeoutMs, background: waitUntil });
      return atEdge(apart, options, OBJECTS_TO_FAIL);
    }
    case "memory":
      return createMemoryStore();
    case "misconfigured": {
      const fail = async () => {
        throw new StoreError("misconfigured", settings.fault);
      };
      return { decide: fail, adjust: fail, reset: fail };
    }
  }
}

/** Durable Objects fail one by one: this many must, for the platform to be down. */
const OBJECTS_TO_FAIL = 3;

/**
 * A store that is far away: called no more often than needed, not waited for too long, left alone
 * while it is down, and called to the end though a client hangs up.
 */
function atEdge(store: Store, { timeoutMs, onBreaker }: StoreOptions, clients: number): Store {
  const inTime = withKeepAlive(withDeadline(store, timeoutMs), waitUntil);
  const enforced = withBreaker(inTime, {
    timeoutMs,
    clients,
    ...(onBreaker && { onChange: onBreaker }),
  });
  // One of their own, or failures of rules in shadow mode could leave enforced rules undecided.
  const trial = withBreaker(inTime, { timeoutMs, clients });
  const reliable: Store = {
    ...enforced,
    decide(groups, now, unused) {
      const isTrial = groups.length > 0 && groups.every(isShadow);
      return (isTrial ? trial : enforced).decide(groups, now, unused);
    },
    adjust: (counters, now) => (isShadow(counters) ? trial : enforced).adjust(counters, now),
  };
  return withLeases(withDenialCache(reliable), { timeoutMs, background: waitUntil });
}
