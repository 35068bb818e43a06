import { originFaults, resolveBindings } from "./config/bindings.ts";
import { rulesInMode } from "./config/deployment-mode.ts";
import type { Env } from "./config/env.ts";
import { faultsOfFaultyConfig } from "./config/faulty-config.ts";
import type { NodeGlobals } from "./config/node-globals.ts";
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
  const { limiter, mode, control } = sharedLimiter(config, env);
  const rules = rulesInMode(appRules ?? config.rules, mode);
  const ownConfig = {
    ...config,
    rules,
    ...(appRules && { origin: undefined, origins: undefined }),
  };
  const bindings = resolveBindings(ownConfig, env);
  const faults = [...(appRules ? [] : originFaults(bindings)), ...bindings.requestFaults];
  for (const fault of faults) logMisconfigured(fault);
  return new Gateway(ownConfig, bindings, limiter, control);
}
