import { Hono } from "hono";
import type { AdminEnv } from "../admin-env.ts";
import { problemOf } from "../admin-problem.ts";
import { OperationError } from "../operations.ts";
import { assetResponse, loginStyleResponse } from "./assets.ts";
import { auditPage } from "./audit-page.tsx";
import { liftBan, removeOverride, resetClient, setOverride } from "./changes.tsx";
import { clientsPage, lookUpPage } from "./clients-page.tsx";
import { compressed } from "./compression.ts";
import { explainedPage, explainPage } from "./explain-page.tsx";
import { faultPage } from "./fault-page.tsx";
import { readFields } from "./form-input.ts";
import { loginPage } from "./login-page.tsx";
import { overridesPage } from "./overrides-page.tsx";
import { overviewPage } from "./overview-page.tsx";
import { rulePage } from "./rule-page.tsx";
import { rulesPage } from "./rules-page.tsx";
import { keepTheme } from "./theme.ts";

/** The pages of the dashboard and their assets, below `/_weir/`. */
export const dashboardRoutes = new Hono<AdminEnv>();

dashboardRoutes.onError((error, c) => {
  const isInvalid = error instanceof OperationError && error.kind === "invalid";
  return isInvalid ? faultPage(c, "Not possible", error.message, 400) : problemOf(error);
});
dashboardRoutes.use(compressed);
dashboardRoutes.get("/", overviewPage);
dashboardRoutes.get("/rules", rulesPage);
dashboardRoutes.get("/rules/:name", rulePage);
dashboardRoutes.get("/clients", clientsPage);
dashboardRoutes.post("/clients", lookUpPage);
dashboardRoutes.post("/clients/reset", resetClient);
dashboardRoutes.post("/clients/lift-ban", liftBan);
dashboardRoutes.get("/explain", explainPage);
dashboardRoutes.post("/explain", explainedPage);
dashboardRoutes.get("/overrides", overridesPage);
dashboardRoutes.post("/overrides", setOverride);
dashboardRoutes.post("/overrides/remove", removeOverride);
dashboardRoutes.get("/audit", auditPage);
dashboardRoutes.get("/assets/:name", assetResponse);
dashboardRoutes.get("/login", (c) => loginPage(c));
dashboardRoutes.get("/login/:name", loginStyleResponse);

dashboardRoutes.post("/theme", async (c) => {
  const fields = await readFields(c);
  keepTheme(c, fields.text("theme"));
  return c.redirect(ownPath(fields.text("back"), c.req.url), 303);
});

/** Returns a path of the dashboard; that of the overview for the addresses of other pages and sites. */
function ownPath(path: string, base: string): string {
  const { origin } = new URL(base);
  const url = URL.parse(path, origin);
  const isOwn = url?.origin === origin && url.pathname.startsWith("/_weir/");
  return isOwn ? url.pathname + url.search : "/_weir/";
}
