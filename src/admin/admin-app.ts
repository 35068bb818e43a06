import { Hono, type MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { isSameText } from "../request/identity.ts";
import { type AdminEnv, adminProblem, NO_PATH, problemOf } from "./admin-problem.ts";
import { apiRoutes } from "./api.ts";
import { loginPage } from "./dashboard/login-page.ts";
import { dashboardRoutes } from "./dashboard/routes.ts";
import { readForm } from "./input.ts";
import { END_OF_SESSION, isSameOrigin, readOnly, withSecurityFields } from "./login.ts";
import { CONTENT_TYPE, metricsOf, metricsText } from "./metrics.ts";

/**
 * Log-in and log-out of browsers. The page with the form belongs to the dashboard. After a failed log-in, the browser
 * gets this page again, with `fault` in the query: `wrong`, `locked` or `origin`.
 */
const logInRoutes = new Hono<AdminEnv>();

const PAGE = "/_weir/login";

/**
 * The maximum size of the form, in bytes. Everybody can send it, and reading a long form takes milliseconds of CPU
 * time. A token is much shorter.
 */
const MAX_FORM = 4 * 1024;
const TOO_LONG = `The form of the log-in page has at most ${MAX_FORM / 1024} KiB.`;

logInRoutes.use(
  "/login",
  bodyLimit({ maxSize: MAX_FORM, onError: () => adminProblem(413, TOO_LONG) }),
);

logInRoutes.post("/login", async (c) => {
  const { gate, recordLogIn } = c.env.context;
  // Otherwise a page of another site could log the operator in with a different token.
  if (isSameOrigin(c.req.raw) === false) return c.redirect(`${PAGE}?fault=origin`, 303);
  const fields = await readForm(c).catch(() => undefined);
  if (!fields) return loginPage(c, "form");
  const { token } = fields;
  const result = await gate.logIn(c.req.raw.headers, typeof token === "string" ? token.trim() : "");
  if (result.kind !== "ok") return c.redirect(`${PAGE}?fault=${result.kind}`, 303);
  await recordLogIn(result.operator.actor);
  c.header("Set-Cookie", result.cookie);
  return c.redirect("/_weir/", 303);
});

logInRoutes.post("/logout", (c) => {
  c.header("Set-Cookie", END_OF_SESSION);
  return c.redirect(PAGE, 303);
});

/** The header and the form field with the CSRF token of a session. */
const HEADER = "x-weir-csrf";
const FIELD = "csrf";
/** Other types of forms are not read. Pages of other sites cannot send JSON without a preflight. */
const FORM = /^application\/x-www-form-urlencoded *(?:;|$)/i;

/**
 * Refuses requests that a page of another site has sent with the operator's cookie. All requests except GET and HEAD
 * need the session's CSRF token, and must come from a page of Weir. Exempt are credentials that browsers never send
 * by themselves.
 */
const guardChanges: MiddlewareHandler<AdminEnv> = async (c, next) => {
  const { csrf, actor } = c.var;
  if (csrf === "" || c.req.method === "GET" || c.req.method === "HEAD") return next();
  const sameOrigin = isSameOrigin(c.req.raw);
  // A program may use the token of a user of Access.
  if (sameOrigin === undefined && actor.startsWith("access:")) return next();
  if (!sameOrigin) {
    return adminProblem(403, "A change in a browser must come from a page of the same origin.");
  }
  let sent: unknown = c.req.header(HEADER);
  if (sent === undefined && FORM.test(c.req.header("content-type") ?? "")) {
    sent = (await readForm(c))[FIELD];
  }
  if (typeof sent === "string" && (await isSameText(sent, csrf))) return next();
  return adminProblem(
    403,
    `A change in a browser needs the session's token in the field ${FIELD} or the header X-Weir-Csrf. Reload the page.`,
  );
};

/** The metrics, at `/_weir/metrics`. */
export const metricsRoutes = new Hono<AdminEnv>();

metricsRoutes.get("/", async (c) => {
  const { operations } = c.var;
  const [totals, rules] = await Promise.all([operations.totals(), operations.rules()]);
  const headers = { "Content-Type": CONTENT_TYPE };
  return new Response(metricsText(metricsOf(totals, rules)), { headers });
});

/** The maximum size of a request's body, in bytes. */
const MAX_BODY = 64 * 1024;

/**
 * Creates the app that answers requests below `/_weir/`. The caller has checked the credential (see `AdminBindings`).
 * Without an operator, only requests for the log-in page reach this app.
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
  app.notFound(() => adminProblem(404, NO_PATH));
  app.onError(problemOf);
  return app;
}
