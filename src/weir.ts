import { type Env, type ResolvedBindings, resolveBindings } from "./config/bindings.ts";
import type { Config } from "./config/schema.ts";
import { createGateway, type Gateway } from "./gateway.ts";
import { logMisconfigured } from "./log.ts";
import { type CustomKeys, customKeyFaults } from "./request/custom-key.ts";

export interface WeirOptions {
  /** The functions behind the rules' keys `custom:NAME`, by their names. */
  readonly keys?: CustomKeys;
}

/**
 * A Worker's handler that limits what it forwards.
 *
 * @example
 * export default weir(config);
 * export { CounterObject } from "weir";
 *
 * @param config what `defineConfig` made
 */
export function weir(
  config: Config,
  { keys = {} }: WeirOptions = {},
): { fetch: ExportedHandlerFetchHandler<Env> } {
  let gateway: Gateway | undefined;

  // Not a Hono app with this as its only route: its context and its routing took a fifth of the CPU
  // time that Weir adds. Of Hono there are the router that matches rules, and the middleware.
  return {
    fetch(request, env) {
      gateway ??= prepareGateway(config, env, keys);
      return gateway(request);
    },
  };
}

/** A gateway for an isolate, whose bindings never change. Tells the operator what cannot work. */
export function prepareGateway(config: Config, env: Env, keys: CustomKeys): Gateway {
  const settings = resolveBindings(config, env);
  const faults = [...faultsOf(settings), ...customKeyFaults(config, keys)];
  for (const fault of faults) logMisconfigured(fault);
  return createGateway(config, settings, keys);
}

function faultsOf({ store, origin, faults }: ResolvedBindings): string[] {
  const broken = [store, origin].flatMap((setting) =>
    setting.kind === "misconfigured" ? setting.fault : [],
  );
  return [...broken, ...faults];
}
