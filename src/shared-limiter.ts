import { type Env, resolveBindings } from "./config/bindings.ts";
import type { Config } from "./config/schema.ts";
import { Limiter } from "./limiter/limiter.ts";
import { logBreaker, logMisconfigured } from "./log.ts";
import { createStore } from "./stores/create-store.ts";

/** A configuration's limiter in this isolate. */
export interface SharedLimiter {
  readonly limiter: Limiter;
  /** The secret with which identities are hashed; undefined if it is not set. */
  readonly keySecret: string | undefined;
}

const limiters = new WeakMap<Config, SharedLimiter>();

/**
 * Returns the limiter of a configuration. Gateway, middleware and service share it in an isolate, so that
 * they use the same leases, cached denials and breaker. The first call creates it, and logs which
 * bindings cannot work. Later calls ignore `env`: the bindings of an isolate never change.
 *
 * Between requests the limiter keeps plain values and no promise: workerd cancels a request that waits
 * for the I/O of another request.
 *
 * @param config the object that `defineConfig` returned, not a copy
 */
export function sharedLimiter(config: Config, env: Env): SharedLimiter {
  const existing = limiters.get(config);
  if (existing) return existing;
  const { store, nativeLimiter, keySecret, limiterFaults } = resolveBindings(config, env);
  for (const fault of limiterFaults) logMisconfigured(fault);
  const options = { ...config, onBreaker: logBreaker };
  const limiter = new Limiter(config, createStore(store, options), nativeLimiter);
  const shared: SharedLimiter = { limiter, keySecret };
  limiters.set(config, shared);
  return shared;
}
