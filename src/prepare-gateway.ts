import { resolveBindings } from "./config/bindings.ts";
import type { Env } from "./config/env.ts";
import { faultsOfFaultyConfig, type NodeGlobals } from "./config/faulty-config.ts";
import type { Rule } from "./config/rule.ts";
import type { Config } from "./config/schema.ts";
import { Gateway } from "./gateway.ts";
import { faultyConfigResponse } from "./http/faulty-config-response.ts";
import { logMisconfigured } from "./log.ts";
import { sharedLimiter } from "./shared-limiter.ts";

/** Answers requests: a gateway, or its substitute while the configuration has faults. */
export type RequestHandler = Pick<Gateway, "handle">;

/**
 * Creates a gateway for this isolate, and logs which bindings cannot work.
 *
 * @param appRules the rules of a gateway in an app. Such a gateway has no origin, because the app answers
 * requests. If it is undefined, the gateway has all rules, and forwards requests to its origin
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
  const { limiter } = sharedLimiter(config, env);
  const ownConfig = appRules ? { ...config, rules: appRules, origin: undefined } : config;
  const bindings = resolveBindings(ownConfig, env);
  const { origin, requestFaults } = bindings;
  const originFaults = origin.kind === "misconfigured" && !appRules ? [origin.fault] : [];
  for (const fault of [...originFaults, ...requestFaults]) logMisconfigured(fault);
  return new Gateway(ownConfig, bindings, limiter);
}
