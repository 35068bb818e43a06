import { resolveBindings } from "./config/bindings.ts";
import type { Env } from "./config/env.ts";
import type { Rule } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import { Gateway } from "./gateway.ts";
import { logMisconfigured } from "./log.ts";
import { type CustomKeys, customKeyFaults } from "./request/custom-key.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** Options of {@link prepareGateway}, in addition to the configuration and the bindings. */
export interface GatewayOptions {
  /** The functions that compute the keys `custom:NAME`. */
  readonly keys: CustomKeys;
  /**
   * The rules of a gateway in an app. Such a gateway has no origin, because the app answers
   * requests.
   *
   * @default all rules of the configuration; the gateway then forwards requests to its origin
   */
  readonly appRules?: readonly Rule[];
}

/** Creates a gateway for this isolate, and logs which bindings and keys cannot work. */
export function prepareGateway(config: Config, env: Env, options: GatewayOptions): Gateway {
  const { keys, appRules } = options;
  const { limiter } = sharedLimiter(config, env);
  const ownConfig = appRules ? { ...config, rules: appRules, origin: undefined } : config;
  const bindings = resolveBindings(ownConfig, env);
  const { origin, requestFaults } = bindings;
  const originFaults = origin.kind === "misconfigured" ? [origin.fault] : [];
  const faults = [...originFaults, ...requestFaults, ...customKeyFaults(ownConfig, keys)];
  for (const fault of faults) logMisconfigured(fault);
  return new Gateway(ownConfig, bindings, limiter, keys);
}
