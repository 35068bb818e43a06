import { Hono, type MiddlewareHandler } from "hono";
import { type AdminEnv, problemOf } from "../admin-problem.ts";
import { OperationError } from "../operations.ts";
import { assetResponse, loginStyleResponse } from "./assets.ts";
import { auditPage } from "./audit-page.tsx";
import { liftBan, removeOverride, resetClient, setOverride } from "./changes.tsx";
import { clientsPage, lookUpPage } from "./clients-page.tsx";
import { explainedPage, explainPage } from "./explain-page.tsx";
import { readFields } from "./forms.tsx";
import { faultPage } from "./layout.tsx";
import { loginPage } from "./login-page.tsx";
import { overridesPage } from "./overrides-page.tsx";
import { overviewPage } from "./overview-page.tsx";
import { keepTheme } from "./ranges.ts";
import { rulePage } from "./rule-page.tsx";
import { rulesPage } from "./rules-page.tsx";

/**
 * Lets the runtime compress pages and assets for clients that accept gzip. The Workers runtime compresses a body
 * if the response has the header field Content-Encoding.
 */
const compressed: MiddlewareHandler = async (c, next) => {
  await next();
  if (c.res.body === null) return;
  c.header("Vary", "Accept-Encoding", { append: true });
  if (acceptsGzip(acceptedBy(c.req.raw))) c.header("Content-Encoding", "gzip");
};

/** Returns the field as the client has sent it. Cloudflare replaces it, and keeps the original value. */
function acceptedBy({ headers, cf }: Request): string {
  const original = (cf as { readonly clientAcceptEncoding?: unknown } | undefined)
    ?.clientAcceptEncoding;
  return typeof original === "string" ? original : (headers.get("accept-encoding") ?? "");
}

/** Whether a client prefers gzip to a body that is not compressed (RFC 9110, 12.5.3). */
function acceptsGzip(field: string): boolean {
  const weights = new Map<string, number>();
  for (const item of field.toLowerCase().split(",")) {
    const [coding = "", ...parameters] = item.split(";").map((part) => part.trim());
    const weight = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    weights.set(coding, Number(weight));
  }
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0;
  // A client that does not name identity accepts it, but prefers what it names.
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
