import { waitUntil } from "cloudflare:workers";
import type { StoreBinding } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { aroundCalls } from "./around-calls.ts";
import { type EntryStore, withBatches } from "./batch.ts";
import { Breaker, type BreakerScope, type BreakerState, withBreaker } from "./breaker.ts";
import { withDeadline } from "./deadline.ts";
import type { CounterObject } from "./durable-object/counter-object.ts";
import { createDurableObjectStore } from "./durable-object/durable-object-store.ts";
import { decisiveRole, type GroupRole, roleOf } from "./group-roles.ts";
import { withDenialCache } from "./isolate/with-denial-cache.ts";
import { withLeases } from "./isolate/with-leases.ts";
import { withKeepAlive } from "./keep-alive.ts";
import { createMemoryStore } from "./memory-store.ts";
import { withCallsByObject, withSeparateGroups } from "./separate-groups.ts";
import { withSpans } from "./spans.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";
import { billedCommands } from "./upstash/billed-commands.ts";
import { createUpstashEntries } from "./upstash/upstash-store.ts";
import { type StoreMeter, withMeasuredCommands, withMeasurement } from "./with-measurement.ts";

export interface StoreOptions extends Pick<Config, "clock" | "prefix" | "timeoutMs"> {
  /** Called when the breaker stops or resumes the calls to the store or to one of its objects. */
  readonly onBreaker?: (state: BreakerState, scope: BreakerScope) => void;
  /** Records the calls to the store; undefined if nothing is measured. */
  readonly meter?: StoreMeter | undefined;
}

/**
 * Creates the store that a Worker's bindings name. If the bindings are misconfigured, every call to
 * the store fails.
 *
 * To add a store:
 *
 * 1. implement `Store` (store.ts) in a folder next to this file, and test it with test/suite/;
 * 2. add its kind to `StoreBinding`, and detect its bindings (config/store-binding.ts);
 * 3. add a case below. If a decision takes a network call, wrap the store as `withBatchedCalls` does.
 *
 * @param binding the store's kind, with the bindings and secrets that it needs
 */
export function createStore(binding: StoreBinding, options: StoreOptions): Store {
  const { clock, prefix, timeoutMs } = options;
  switch (binding.kind) {
    case "upstash": {
      const { url, token } = binding;
      const entries = createUpstashEntries({ url, token, clock, timeoutMs });
      return withMemory(withBatchedCalls(entries, options), options);
    }
    case "durable-object": {
      const namespace = binding.namespace as DurableObjectNamespace<CounterObject>;
      const objects = createDurableObjectStore({ namespace, prefix, timeoutMs });
      const separate = { timeoutMs, background: waitUntil };
      const store = withSeparateGroups(inTime(objects, options), separate);
      return withMemory(withCallsByObject(withBreakers(store, options)), options);
    }
    case "memory":
      return createMemoryStore();
    case "misconfigured": {
      const fail = async () => {
        throw new StoreError("misconfigured", binding.fault);
      };
      return { decide: fail, adjust: fail, reset: fail };
    }
  }
}

/** The number of clients whose objects must fail before the breaker opens for all objects. */
const FAILING_CLIENTS = 3;

/**
 * Wraps a store of entries whose calls travel together. The breaker stops the calls while the store fails. It
 * counts calls, whatever the number of entries in them.
 */
function withBatchedCalls(
  entries: EntryStore,
  { clock, timeoutMs, meter, onBreaker }: StoreOptions,
): Store {
  const limited = withDeadline(entries, timeoutMs);
  const measured = meter ? withMeasuredCommands(limited, meter, billedCommands(clock)) : limited;
  const breaker = new Breaker({ timeoutMs, ...(onBreaker && { onChange: onBreaker }) });
  const reliable = aroundCalls(withSpans(measured), (call) => breaker.run([], call));
  return withKeepAlive(withBatches(reliable, { timeoutMs, keepAlive: waitUntil }), waitUntil);
}

/** Wraps a store of objects with the deadline of each call, and with the measurement of the calls. */
function inTime(store: Store, { timeoutMs, meter }: StoreOptions): Store {
  const limited = withDeadline(store, timeoutMs);
  return meter ? withMeasurement(limited, meter) : limited;
}

/**
 * Wraps a store of objects. The breaker stops the calls while objects fail, and the keep-alive lets calls run
 * to their end after a client has hung up.
 *
 * @param store a store with a deadline for each call
 */
function withBreakers(store: Store, { timeoutMs, onBreaker }: StoreOptions): Store {
  const clients = FAILING_CLIENTS;
  const kept = withKeepAlive(withSpans(store), waitUntil);
  const enforced = withBreaker(kept, {
    timeoutMs,
    clients,
    ...(onBreaker && { onChange: onBreaker }),
  });
  // Rules in other modes have their own breakers, because their failures must not leave enforced
  // rules undecided.
  const dependent = withBreaker(kept, { timeoutMs, clients });
  const shadow = withBreaker(kept, { timeoutMs, clients });
  const breakers: Record<GroupRole, Store> = { enforced, dependent, shadow };
  return {
    ...enforced,
    decide: (groups, now, unused) => breakers[decisiveRole(groups)].decide(groups, now, unused),
    adjust: (counters, now) => breakers[roleOf(counters)].adjust(counters, now),
  };
}

/** Wraps a store with leases and the denial cache, which decide most requests without a call. */
function withMemory(store: Store, { timeoutMs }: StoreOptions): Store {
  return withLeases(withDenialCache(store), { timeoutMs, background: waitUntil });
}
