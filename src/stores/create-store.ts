import { waitUntil } from "cloudflare:workers";
import type { StoreBinding } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import { type BreakerScope, type BreakerState, withBreaker } from "./breaker.ts";
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
import { createUpstashStore } from "./upstash/upstash-store.ts";
import { type CommandEstimate, type StoreMeter, withMeasurement } from "./with-measurement.ts";

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
 * 3. add a case below. If a decision takes a network call, pass the store to `withRemoteCalls`.
 *
 * @param binding the store's kind, with the bindings and secrets that it needs
 */
export function createStore(binding: StoreBinding, options: StoreOptions): Store {
  const { clock, prefix, timeoutMs } = options;
  switch (binding.kind) {
    case "upstash": {
      const { url, token } = binding;
      const store = createUpstashStore({ url, token, clock, timeoutMs });
      return withRemoteCalls(inTime(store, options, billedCommands(clock)), options, 1);
    }
    case "durable-object": {
      const namespace = binding.namespace as DurableObjectNamespace<CounterObject>;
      const objects = createDurableObjectStore({ namespace, prefix, timeoutMs });
      const separate = { timeoutMs, background: waitUntil };
      const store = withSeparateGroups(inTime(objects, options), separate);
      return withRemoteCalls(store, options, FAILING_CLIENTS);
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

/** Wraps a store with the deadline of each call, and with the measurement of the calls. */
function inTime(
  store: Store,
  { timeoutMs, meter }: StoreOptions,
  estimate?: CommandEstimate,
): Store {
  const limited = withDeadline(store, timeoutMs);
  return meter ? withMeasurement(limited, meter, estimate) : limited;
}

/**
 * Wraps a store that is called over a network. These are the wrappers, from the outermost to the
 * innermost:
 *
 * - leases and the denial cache decide most requests without a call;
 * - a call without enforced groups becomes a call for each object, if the store has objects;
 * - the breaker stops the calls while the store fails;
 * - the keep-alive lets calls run to their end after a client has hung up.
 *
 * @param store a store with a deadline for each call
 * @param clients the number of clients whose objects must fail before the breaker opens
 */
function withRemoteCalls(
  store: Store,
  { timeoutMs, onBreaker }: StoreOptions,
  clients: number,
): Store {
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
  const reliable: Store = {
    ...enforced,
    decide: (groups, now, unused) => breakers[decisiveRole(groups)].decide(groups, now, unused),
    adjust: (counters, now) => breakers[roleOf(counters)].adjust(counters, now),
  };
  const byObject = clients > 1 ? withCallsByObject(reliable) : reliable;
  return withLeases(withDenialCache(byObject), { timeoutMs, background: waitUntil });
}
