import { waitUntil } from "cloudflare:workers";
import type { Config } from "../config/schema.ts";
import type { StoreSettings } from "../config/settings.ts";
import type { CounterObject } from "./counter-object.ts";
import { withDeadline } from "./deadline.ts";
import { denialCache } from "./denial-cache.ts";
import { durableObjectStore } from "./durable-object.ts";
import { leases } from "./leases.ts";
import { memoryStore } from "./memory.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";
import { upstashStore } from "./upstash.ts";

/** The store that the settings ask for; one that cannot be had decides nothing. */
export function createStore(settings: StoreSettings, config: Config): Store {
  const { clock, prefix, timeoutMs } = config;
  switch (settings.kind) {
    case "upstash": {
      const { url, token } = settings;
      return atEdge(upstashStore({ url, token, clock, timeoutMs }), timeoutMs);
    }
    case "durable-object": {
      const namespace = settings.namespace as DurableObjectNamespace<CounterObject>;
      return atEdge(durableObjectStore({ namespace, prefix, timeoutMs }), timeoutMs);
    }
    case "memory":
      return memoryStore();
    case "misconfigured": {
      const fail = async () => {
        throw new StoreError("misconfigured", settings.fault);
      };
      return { decide: fail, adjust: fail, reset: fail };
    }
  }
}

/** A store that is far away: asked no more often than needed, and not waited for too long. */
function atEdge(store: Store, timeoutMs: number): Store {
  return leases(denialCache(withDeadline(store, timeoutMs)), { timeoutMs, background: waitUntil });
}
