import { resolveBindings } from "./config/bindings.ts";
import type { Env } from "./config/env.ts";
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

/** A shared limiter, and the bindings from which it was created. */
interface LimiterOfEnv {
  readonly env: Env;
  readonly shared: SharedLimiter;
}

/**
 * The maximum number of limiters of a configuration. Each set of bindings has its own limiter.
 * Outside tests, an isolate has only one set of bindings. If there are more limiters than this
 * maximum, the oldest limiter is dropped.
 */
const MAX_LIMITERS = 8;

const limiters = new WeakMap<Config, LimiterOfEnv[]>();

/**
 * Returns the limiter of a configuration. All gateways, middlewares and services of an isolate
 * share it, so that they use the same leases, cached denials and breaker. The first call with these
 * bindings creates the limiter, and logs which bindings cannot work.
 *
 * Between requests the limiter keeps plain values and no promise, because workerd cancels a request
 * that waits for the I/O of another request.
 *
 * @param config the object that `defineConfig` returned, not a copy
 */
export function sharedLimiter(config: Config, env: Env): SharedLimiter {
  const existing = limiters.get(config) ?? [];
  const match = existing.find((each) => hasSameBindings(each.env, env));
  if (match) return match.shared;
  const bindings = resolveBindings(config, env);
  const { store, prefix, nativeLimiter, keySecret, limiterFaults } = bindings;
  for (const fault of limiterFaults) logMisconfigured(fault);
  const options = { ...config, prefix, onBreaker: logBreaker };
  const limiter = new Limiter(options, createStore(store, options), nativeLimiter);
  const shared: SharedLimiter = { limiter, keySecret };
  limiters.set(config, [...existing, { env, shared }].slice(-MAX_LIMITERS));
  return shared;
}

/**
 * Whether two sets of bindings are the same object, or have the same values under the same names.
 */
function hasSameBindings(env: Env, other: Env): boolean {
  if (env === other) return true;
  const names = Object.keys(env);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && env[name] === other[name])
  );
}
