import type { Config } from "../config/schema.ts";
import type { StoreSettings } from "../config/settings.ts";
import type { CounterObject } from "./counter-object.ts";
import { durableObjectStore } from "./durable-object.ts";
import { memoryStore } from "./memory.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";
import { upstashStore } from "./upstash.ts";

/** The store that the settings ask for; one that cannot be had decides nothing. */
export function createStore(settings: StoreSettings, config: Config): Store {
  const { clock, prefix, timeoutMs } = config;
  switch (settings.kind) {
    case "upstash":
      return upstashStore({ url: settings.url, token: settings.token, clock, timeoutMs });
    case "durable-object": {
      const namespace = settings.namespace as DurableObjectNamespace<CounterObject>;
      return durableObjectStore({ namespace, prefix, timeoutMs });
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
