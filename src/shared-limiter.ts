import { resolveBindings } from "./config/bindings.ts";
import type { DeploymentMode } from "./config/deployment-mode.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import type { ControlLink } from "./control/control-link.ts";
import { Limiter } from "./limiter/limiter.ts";
import { createControlLink } from "./live-control.ts";
import { logBreaker, logMisconfigured, logMode } from "./log.ts";
import { perBindings } from "./per-bindings.ts";
import type { BreakerScope, BreakerState } from "./stores/breaker.ts";
import { createStore } from "./stores/create-store.ts";

/** A configuration's limiter in this isolate. */
export interface SharedLimiter {
  readonly limiter: Limiter;
  readonly mode: DeploymentMode;
  /** The first part of all keys in the store. */
  readonly prefix: string;
  /** The secret with which identities are hashed; undefined if it is not set. */
  readonly keySecret: string | undefined;
  /** The statistics and the overrides; undefined if the Worker has no control object. */
  readonly control: ControlLink | undefined;
}

const limiters = new WeakMap<Config, (env: Env) => SharedLimiter>();

/**
 * Returns the limiter of a configuration. All gateways, middlewares and services of an isolate
 * share it, so that they use the same leases, cached denials and breaker. The first call with these
 * bindings creates the limiter, and logs which bindings cannot work and whether a mode other than
 * `enforce` is set.
 *
 * Between requests the limiter keeps plain values and no promise, because workerd cancels a request
 * that waits for the I/O of another request.
 *
 * @param config the object that `defineConfig` returned, not a copy
 */
export function sharedLimiter(config: Config, env: Env): SharedLimiter {
  let limiterFor = limiters.get(config);
  if (!limiterFor) {
    limiterFor = perBindings(config, (bindings) => createLimiter(config, bindings));
    limiters.set(config, limiterFor);
  }
  return limiterFor(env);
}

function createLimiter(config: Config, env: Env): SharedLimiter {
  const bindings = resolveBindings(config, env);
  const { store, prefix, mode, nativeLimiter, keySecret, limiterFaults } = bindings;
  for (const fault of limiterFaults) logMisconfigured(fault);
  if (mode !== "enforce") logMode(mode);
  const control = createControlLink(config, env);
  const recorder = control?.recorder;
  const onBreaker = (state: BreakerState, scope: BreakerScope) => {
    logBreaker(state, scope);
    if (recorder && scope === "store") recorder.breakerOpen = state === "open";
  };
  const options = { ...config, prefix, onBreaker, meter: recorder };
  const limiter = new Limiter(options, createStore(store, options), nativeLimiter);
  return { limiter, mode, prefix, keySecret, control };
}
