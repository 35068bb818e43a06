import { Hono } from "hono/tiny";
import type { Config } from "./config/schema.ts";
import { type Env, readSettings } from "./config/settings.ts";
import { createGateway, type Gateway } from "./gateway.ts";
import { reportMisconfigured } from "./report.ts";

/**
 * A Worker's handler that limits what it forwards.
 *
 * @example
 * export default weir(config);
 * export { CounterObject } from "weir";
 *
 * @param config what `defineConfig` made
 */
export function weir(config: Config): { fetch: ExportedHandlerFetchHandler<Env> } {
  let gateway: Gateway | undefined;
  const handle = (request: Request, env: Env) => {
    gateway ??= prepare(config, env);
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

/** The bindings of an isolate never change, so its first request's serve them all. */
function prepare(config: Config, env: Env): Gateway {
  const settings = readSettings(config, env);
  for (const setting of Object.values(settings)) {
    if (setting.kind === "misconfigured") reportMisconfigured(setting.fault);
  }
  return createGateway(config, settings);
}
