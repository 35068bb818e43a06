import { resolveBindings } from "./config/bindings.ts";
import type { Env } from "./config/env.ts";
import type { Rule } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import { Gateway } from "./gateway.ts";
import { logMisconfigured } from "./log.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/**
 * Creates a gateway for this isolate, and logs which bindings cannot work.
 *
 * @param appRules the rules of a gateway in an app. Such a gateway has no origin, because the app answers
 * requests. If it is undefined, the gateway has all rules, and forwards requests to its origin
 */
export function prepareGateway(config: Config, env: Env, appRules?: readonly Rule[]): Gateway {
  const { limiter } = sharedLimiter(config, env);
  const ownConfig = appRules ? { ...config, rules: appRules, origin: undefined } : config;
  const bindings = resolveBindings(ownConfig, env);
  const { origin, requestFaults } = bindings;
  const originFaults = origin.kind === "misconfigured" && !appRules ? [origin.fault] : [];
  for (const fault of [...originFaults, ...requestFaults]) logMisconfigured(fault);
  return new Gateway(ownConfig, bindings, limiter);
}
