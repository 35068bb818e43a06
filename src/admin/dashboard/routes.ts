import { Hono, type MiddlewareHandler } from "hono";
import { type AdminEnv, problemOf } from "../admin-problem.ts";
import { OperationError } from "../operations.ts";
import { assetResponse } from "./assets.ts";
import { auditPage } from "./audit-page.ts";
import { liftBan, removeOverride, resetClient, setOverride } from "./changes.ts";
import { clientsPage, lookUpPage } from "./clients-page.ts";
import { denialsPage } from "./denials-page.ts";
import { explainedPage, explainPage } from "./explain-page.ts";
import { faultPage } from "./layout.ts";
import { loginPage } from "./login-page.ts";
import { overridesPage } from "./overrides-page.ts";
import { overviewPage } from "./overview-page.ts";
import { rulePage } from "./rule-page.ts";
import { rulesPage } from "./rules-page.ts";

/**
 * Lets the runtime compress pages and assets for clients that accept gzip. The Workers runtime compresses a body if
 * the response has the header Content-Encoding.
 */
const compressed: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.body === null) return;
  c.header("Vary", "Accept-Encoding", { append: true });
  if (acceptsGzip(acceptedBy(c.req.raw))) c.header("Content-Encoding", "gzip");
};

/**
 * Returns the header Accept-Encoding of the client. Cloudflare replaces this header, and keeps the client's value in
 * `cf`.
 */
function acceptedBy({ headers, cf }: Request): string {
  const original = (cf as { readonly clientAcceptEncoding?: unknown } | undefined)
    ?.clientAcceptEncoding;
  return typeof original === "string" ? original : (headers.get("accept-encoding") ?? "");
}

/** Whether a client prefers gzip to an uncompressed body (RFC 9110, 12.5.3). */
function acceptsGzip(field: string): boolean {
  const weights = new Map<string, number>();
  for (const item of field.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    weights.set(coding, Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  // A client that does not name identity accepts it, but prefers the named encodings.
  return gzip > 0 && gzip >= (weights.get("identity") ?? 0);
}

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
dashboardRoutes.get("/denials", denialsPage);
dashboardRoutes.get("/explain", explainPage);
dashboardRoutes.post("/explain", explainedPage);
dashboardRoutes.get("/overrides", overridesPage);
dashboardRoutes.post("/overrides", setOverride);
dashboardRoutes.post("/overrides/remove", removeOverride);
dashboardRoutes.get("/audit", auditPage);
dashboardRoutes.get("/assets/:name", assetResponse);
dashboardRoutes.get("/login", (c) => loginPage(c));
dashboardRoutes.get("/login/:name", assetResponse);
