import { Hono } from "hono/tiny";
import type { Config } from "./config/schema.ts";
import { type Env, readSettings, type Settings } from "./config/settings.ts";
import { createGateway, type Gateway } from "./gateway.ts";
import { reportMisconfigured } from "./report.ts";
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
  const handle = (request: Request, env: Env) => {
    gateway ??= prepareGateway(config, env, keys);
    return gateway(request);
  };

  const app = new Hono<{ Bindings: Env }>();
  app.all("*", ({ req, env }) => handle(req.raw, env));

  return {
    fetch(request, env, ctx) {
      // Hono answers HEAD with a copy of the response, which fails for an origin's odder statuses.
      return request.method === "HEAD" ? handle(request, env) : app.fetch(request, env, ctx);
    },
  };
}

/** A gateway for an isolate, whose bindings never change. Tells the operator what cannot work. */
export function prepareGateway(config: Config, env: Env, keys: CustomKeys): Gateway {
  const settings = readSettings(config, env);
  const faults = [...faultsOf(settings), ...customKeyFaults(config, keys)];
  for (const fault of faults) reportMisconfigured(fault);
  return createGateway(config, settings, keys);
}

function faultsOf({ store, origin, faults }: Settings): string[] {
  const broken = [store, origin].flatMap((setting) =>
    setting.kind === "misconfigured" ? setting.fault : [],
  );
  return [...broken, ...faults];
}
