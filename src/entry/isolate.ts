import { waitUntil } from "cloudflare:workers";
import type { Context } from "hono";
import {
  bindingNames,
  CONTROL_BINDING,
  type Env,
  originFaults,
  type ResolvedBindings,
  readDeploymentMode,
  resolveBindings,
  rulesInMode,
} from "../config/bindings.ts";
import type { CustomContext, QuotaEvent, WorkerBindings } from "../config/custom.ts";
import { faultsOfFaultyConfig } from "../config/define.ts";
import type { NodeGlobals } from "../config/faults.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { ControlLink } from "../control/control-link.ts";
import { type ControlApi, GLOBAL_OBJECT, type StatisticsUpload } from "../control/protocol.ts";
import { Gateway } from "../gateway/gateway.ts";
import {
  logBreaker,
  logControlFailed,
  logEventFailed,
  logMisconfigured,
  logMode,
  logQuotaUsed,
  logUnreadableLimit,
} from "../gateway/log.ts";
import { faultyConfigResponse } from "../http/responses.ts";
import { Limiter } from "../limiter/limiter.ts";
import { LiveOverrides } from "../overrides/live-overrides.ts";
import { ClientLimits } from "../request/client-limits.ts";
import { Recorder } from "../statistics/recorder.ts";
import { writeLateCharge } from "../statistics/usage.ts";
import type { BreakerScope, BreakerState } from "../stores/breaker.ts";
import { createStore } from "../stores/create-store.ts";

/**
 * Creates an isolate's connection with the control object.
 *
 * @returns undefined if the Worker lacks the binding. There are then no statistics and no overrides
 */
function createControlLink({ timeoutMs }: Config, env: Env): ControlLink | undefined {
  const object = controlObject(env);
  if (!object) return undefined;
  const options = {
    upload: (sums: StatisticsUpload) => object.upload(sums),
    timeoutMs,
    background: waitUntil,
    onFailure: logControlFailed,
  };
  const overrides = new LiveOverrides(readDeploymentMode(env));
  return new ControlLink(options, overrides, new Recorder({ background: waitUntil }));
}

/** Creates the numbers of clients that all gateways and services of an isolate share. */
export function createClientLimits({ custom, timeoutMs }: Config): ClientLimits {
  const options = { timeoutMs, background: waitUntil, onUnreadable: logUnreadableLimit };
  return new ClientLimits(custom?.limits, options);
}

/** Returns the global control object, for all requests of the isolate; undefined if the Worker lacks the binding. */
export function controlObject(env: Env): ControlApi | undefined {
  const namespace = env[CONTROL_BINDING] as DurableObjectNamespace | undefined;
  if (typeof namespace?.getByName !== "function") return undefined;
  type Methods = Record<string, (...args: readonly unknown[]) => unknown>;
  // Only the request that creates a stub can call it, so each call creates a stub.
  return new Proxy({} as ControlApi, {
    get:
      (_target, method: string) =>
      (...args: readonly unknown[]) =>
        (namespace.getByName(GLOBAL_OBJECT) as unknown as Methods)[method]?.(...args),
  });
}

/** The maximum number of values. Above it, the oldest is dropped. Outside tests, there is one set of bindings. */
const MAX_VALUES = 8;

const NO_BINDINGS: Env = {};

/**
 * Returns a function that creates one value for each set of bindings. Compares only the bindings that Weir reads,
 * because some frameworks pass a new object for each request, or no bindings at first.
 */
export function perBindings<Value>(
  config: Config,
  create: (env: Env) => Value,
): (env: object | null | undefined) => Value {
  const names = bindingNames(config);
  /** The values, and the bindings of each value in the order of `names`. */
  let entries: readonly { readonly bindings: readonly unknown[]; readonly value: Value }[] = [];
  let lastEnv: Env | undefined;
  let lastValue: Value;
  return (given) => {
    const env = (given ?? NO_BINDINGS) as Env;
    if (env === lastEnv) return lastValue;
    const bindings = names.map((name) => env[name]);
    const match = entries.find((each) => each.bindings.every((one, at) => one === bindings[at]));
    const entry = match ?? { bindings, value: create(env) };
    if (!match) entries = [...entries, entry].slice(-MAX_VALUES);
    lastEnv = env;
    lastValue = entry.value;
    return lastValue;
  };
}

/** A configuration's limiter in this isolate. */
interface SharedLimiter extends Pick<ResolvedBindings, "mode" | "prefix"> {
  readonly usage: ResolvedBindings["usage"];
  readonly keySecret: string | undefined;
  readonly limiter: Limiter;
  /** Without a control object, there are no overrides. */
  readonly overrides: LiveOverrides;
  /** The statistics and the overrides; undefined if the Worker has no control object. */
  readonly control: ControlLink | undefined;
  readonly limits: ClientLimits;
}

const limiters = new WeakMap<Config, (env: Env) => SharedLimiter>();

/**
 * Returns the limiter of a configuration. All gateways, middlewares and services of an isolate share it, and so share
 * leases, cached denials and the breaker.
 *
 * Between requests, the limiter keeps plain values and no promise, because workerd cancels a request that waits for
 * the I/O of another request.
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
  const { store, clock, prefix, mode, nativeLimiter, usage, keySecret, limiterFaults } = bindings;
  for (const fault of limiterFaults) logMisconfigured(fault);
  if (mode !== "enforce") logMode(mode);
  const control = createControlLink(config, env);
  const recorder = control?.recorder;
  const onBreaker = (state: BreakerState, scope: BreakerScope) => {
    logBreaker(state, scope);
    if (recorder && scope === "store") recorder.breakerOpen = state === "open";
  };
  const onLateCharge = usage && writeLateCharge.bind(undefined, usage);
  const onCrossing = createTeller(config, env);
  const callbacks = { onBreaker, onLateCharge, onCrossing };
  const options = { ...config, clock, prefix, ...callbacks, meter: recorder };
  const limiter = new Limiter(options, createStore(store, options), {
    nativeLimiter,
    background: waitUntil,
  });
  const overrides = control?.overrides ?? new LiveOverrides(mode);
  const limits = createClientLimits(config);
  return { limiter, mode, prefix, keySecret, control, overrides, limits, usage };
}

/** Returns a function that logs an event and passes it to `custom.events`; undefined if no rule has `notify`. */
function createTeller({ rules, custom }: Config, env: Env) {
  if (!rules.some(({ notify }) => notify)) return undefined;
  return async (event: QuotaEvent): Promise<void> => {
    logQuotaUsed(event);
    try {
      await custom?.events?.(event, createCustomContext(env, undefined));
    } catch {
      logEventFailed(event.rule);
    }
  };
}

/** Answers requests: a gateway, or its substitute while the configuration has faults. */
export type RequestHandler = Pick<Gateway, "handle">;

/**
 * Creates a gateway for this isolate, and logs the bindings that cannot work.
 *
 * @param appRules the rules, if the gateway is in an app. It has no origin then, because the app answers requests. If
 * undefined, the gateway has all rules, and forwards requests to its origin
 */
export function prepareGateway(
  config: Config,
  env: Env,
  appRules?: readonly Rule[],
): RequestHandler {
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV === "development") {
    const faults = faultsOfFaultyConfig(config);
    if (faults) return { handle: async () => faultyConfigResponse(faults) };
  }
  const { limiter, mode, control, limits } = sharedLimiter(config, env);
  const rules = rulesInMode(appRules ?? config.rules, mode);
  const ownConfig = {
    ...config,
    rules,
    ...(appRules && { origin: undefined, origins: undefined }),
  };
  const bindings = resolveBindings(ownConfig, env);
  const faults = [...(appRules ? [] : originFaults(bindings)), ...bindings.requestFaults];
  for (const fault of faults) logMisconfigured(fault);
  return new Gateway(ownConfig, bindings, limiter, limits, control);
}

/** Creates the second argument of the functions in `custom`. */
export function createCustomContext(
  env: Env,
  ctx: CustomContext["ctx"] | null | undefined,
): CustomContext {
  // The bindings have a type that only the user's own code knows.
  return { env: env as unknown as WorkerBindings, ctx: ctx ?? { waitUntil } };
}

/** Creates the second argument of the functions in `custom`, with Hono's context. */
export function createHonoContext(env: Env, c: Context): CustomContext {
  let ctx: CustomContext["ctx"] | undefined;
  try {
    ctx = c.executionCtx;
  } catch {
    // The caller of the app has passed no context, as in many tests.
  }
  return { ...createCustomContext(env, ctx), c };
}
