import { Hono } from "hono";
import type { AdminEnv } from "./admin-env.ts";
import { apiRoutes } from "./api-routes.ts";
import { dashboardRoutes } from "./dashboard/routes.tsx";
import { metricsRoutes } from "./metrics-routes.ts";

/**
 * Creates the app that answers requests below `/_weir/`. Its caller has checked the credential, see
 * `AdminBindings`.
 */
export function createAdminApp(): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.use(async (c, next) => {
    const { context, operator } = c.env;
    c.set("actor", operator.actor);
    c.set("role", operator.role);
    c.set("csrf", operator.csrf);
    c.set("operations", context.operations);
    c.set("config", context.config);
    await next();
  });
  app.route("/_weir/api", apiRoutes);
  app.route("/_weir/metrics", metricsRoutes);
  app.route("/_weir", dashboardRoutes);
  return app;
}
