import { waitUntil } from "cloudflare:workers";
import type { StoreBinding } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { type Entry, withBatches } from "./batch.ts";
import { Breaker, type BreakerScope, type BreakerState } from "./breaker.ts";
import { callMaker, objectMeter, type StoreMeter, withKeepAlive } from "./calls.ts";
import { type OnCrossing, withCrossings } from "./crossings.ts";
import type { CounterObject } from "./durable-object/counter-object.ts";
import { createDurableObjectStore } from "./durable-object/durable-object-store.ts";
import { withDenialCache } from "./isolate/denial-cache.ts";
import { withLeases } from "./isolate/leases.ts";
import { createMemoryStore } from "./memory-store.ts";
import { type Store, StoreError } from "./store.ts";
import { createUpstashEntries } from "./upstash/upstash-store.ts";

export interface StoreOptions extends Pick<Config, "clock" | "prefix" | "timeoutMs"> {
  /** Called when the breaker stops or resumes the calls to the store or to one of its objects. */
  readonly onBreaker?: (state: BreakerState, scope: BreakerScope) => void;
  /** Tells that a client has used a share of its quota; undefined if no rule has `notify`. */
  readonly onCrossing?: OnCrossing | undefined;
  /** Records the calls to the store; undefined if nothing is measured. */
  readonly meter?: StoreMeter | undefined;
}

/**
 * Creates the store that a Worker's bindings name. If the bindings are misconfigured, every call to
 * the store fails. ARCHITECTURE.md says how to add a store.
 */
export function createStore(binding: StoreBinding, options: StoreOptions): Store {
  switch (binding.kind) {
    case "upstash":
      return withMemory(createBatchedUpstash(binding, options), options);
    case "durable-object":
      return withMemory(createObjectStore(binding.namespace, options), options);
    case "memory":
      return withEvents(createMemoryStore(), options);
    case "misconfigured": {
      const fail = () => Promise.reject(new StoreError("misconfigured", binding.fault));
      return { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };
    }
  }
}

/** The calls to Upstash travel in batches. The breaker counts a batch as one call. */
function createBatchedUpstash(
  { url, token }: Extract<StoreBinding, { kind: "upstash" }>,
  { clock = "edge", timeoutMs, meter, onBreaker: onChange }: StoreOptions,
): Store {
  const upstash = createUpstashEntries({ url, token, clock, timeoutMs });
  const breaker = new Breaker({ timeoutMs, ...(onChange && { onChange }) });
  const makeCall = callMaker({ timeoutMs, meter, breakerOf: () => breaker });
  const run = async (entries: readonly Entry[]) => {
    const called = await makeCall(
      [],
      () => upstash.call(entries),
      ({ commands }) => commands,
    );
    return called.answers;
  };
  return withKeepAlive(withBatches({ run }, { timeoutMs, keepAlive: waitUntil }));
}

/** The number of clients whose objects must fail before the breaker opens for all objects. */
const FAILING_CLIENTS = 3;

function createObjectStore(
  namespace: unknown,
  { prefix, timeoutMs, meter, onBreaker: onChange }: StoreOptions,
): Store {
  const clients = FAILING_CLIENTS;
  const enforced = new Breaker({ timeoutMs, clients, ...(onChange && { onChange }) });
  // Each other mode has a separate breaker, because its failures must not leave enforced rules
  // undecided.
  const marks = new Breaker({ timeoutMs, clients });
  const shadow = new Breaker({ timeoutMs, clients });
  const makeCall = callMaker({
    timeoutMs,
    breakerOf: ([first]) => (first?.shadow ? shadow : first?.marks ? marks : enforced),
  });
  return createDurableObjectStore({
    namespace: namespace as DurableObjectNamespace<CounterObject>,
    prefix,
    timeoutMs,
    makeCall,
    ...(meter && { measure: objectMeter(meter, timeoutMs) }),
  });
}

/** Wraps a store with leases and the denial cache, which decide most requests without a call. */
function withMemory(store: Store, options: StoreOptions): Store {
  const { timeoutMs } = options;
  return withLeases(withDenialCache(withEvents(store, options)), {
    timeoutMs,
    background: waitUntil,
  });
}

function withEvents(store: Store, { onCrossing }: StoreOptions): Store {
  return onCrossing ? withCrossings(store, onCrossing) : store;
}
