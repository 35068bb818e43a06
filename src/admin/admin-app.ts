import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { AdminEnv } from "./admin-env.ts";
import { adminProblem, problemOf } from "./admin-problem.ts";
import { apiRoutes } from "./api-routes.ts";
import { guardChanges } from "./change-guard.ts";
import { dashboardRoutes } from "./dashboard/routes.tsx";
import { logInRoutes } from "./log-in-routes.ts";
import { metricsRoutes } from "./metrics-routes.ts";
import { readOnly } from "./read-only.ts";
import { withSecurityFields } from "./security-fields.ts";

/** The maximum size of a request's body, in bytes. */
const MAX_BODY = 64 * 1024;

/**
 * Creates the app that answers requests below `/_weir/`. Its caller has checked the credential, see
 * `AdminBindings`. Without an operator, the caller passes only requests to the log-in page.
 */
export function createAdminApp(): Hono<AdminEnv> {
  const app = new Hono<AdminEnv>();
  app.use(async (c, next) => {
    await next();
    c.res = withSecurityFields(c.res);
  });
  app.use(async (c, next) => {
    const { context, operator } = c.env;
    const { actor, role, csrf } = operator ?? { actor: "", role: "read", csrf: "" };
    c.set("actor", actor);
    c.set("role", role);
    c.set("csrf", csrf);
    c.set("operations", role === "admin" ? context.operations : readOnly(context.operations));
    c.set("config", context.config);
    await next();
  });
  app.use(
    bodyLimit({
      maxSize: MAX_BODY,
      onError: () => adminProblem(413, `A body has at most ${MAX_BODY / 1024} KiB.`),
    }),
  );
  app.use(guardChanges);
  app.get("/_weir", (c) => c.redirect("/_weir/", 303));
  app.route("/_weir/api", apiRoutes);
  app.route("/_weir/metrics", metricsRoutes);
  app.route("/_weir", logInRoutes);
  app.route("/_weir/", dashboardRoutes);
  app.notFound(() => adminProblem(404, "There is nothing at this path. See docs/admin.md."));
  app.onError(problemOf);
  return app;
}
