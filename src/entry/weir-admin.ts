import { Hono } from "hono";
import { toConfig } from "../config/define.ts";
import type { Config, ConfigInput } from "../config/schema.ts";
import { createAdminEntry } from "./admin-entry.ts";
import { perBindings } from "./isolate.ts";
import { prepareAdmin } from "./prepare-admin.ts";

/** The app that {@link weirAdmin} creates, for apps with any type of bindings. */
export type AdminApp = Hono<{ Bindings: object }>;

/**
 * Creates a Hono app with the dashboard and the API of operators, below `/_weir/`. Only apps that use `rateLimit`
 * without `weir` need it, because `weir` has both already. Mount it before all other routes.
 *
 * A request without a valid credential continues to the app's other routes.
 *
 * @example
 * import { weirAdmin } from "edge-weir/admin";
 *
 * const app = new Hono();
 * app.route("/", weirAdmin(config));
 * app.use(rateLimit(config));
 *
 * @param config the configuration that `defineConfig` returned, or the argument of `defineConfig`. If `rateLimit`
 * gets the same object, both share one connection with the store
 * @throws {ConfigError} if `config` is a plain object that has faults
 */
export function weirAdmin(config: Config | ConfigInput): AdminApp {
  const checkedConfig = toConfig(config);
  const entryFor = perBindings(checkedConfig, (env) => ({
    answer: createAdminEntry(checkedConfig, env, async (gate) =>
      prepareAdmin(checkedConfig, env, gate),
    ),
  }));
  const app: AdminApp = new Hono();
  // Hono's router knows only one spelling of the paths, and the entry knows all spellings.
  app.use(async (c, next) => {
    const result = await entryFor(c.env ?? {}).answer?.(c.req.raw, false);
    if (result instanceof Response) return result;
    if (result) c.req.raw = result;
    return next();
  });
  return app;
}
