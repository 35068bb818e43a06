import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { AdminEnv } from "./admin-env.ts";
import { adminProblem } from "./admin-problem.ts";
import { loginPage } from "./dashboard/login-page.tsx";
import { readForm } from "./form.ts";
import { isSameOrigin } from "./same-origin.ts";
import { END_OF_SESSION } from "./session.ts";

/**
 * Log-in and log-out of browsers. The page with the form belongs to the dashboard. After a failed log-in,
 * the browser gets that page again, with `fault` in the query: `wrong`, `locked` or `origin`.
 */
export const logInRoutes = new Hono<AdminEnv>();

const PAGE = "/_weir/login";

/**
 * The maximum size of the form, in bytes. Everybody can send it, and reading a long form takes
 * milliseconds of CPU time. A token is much shorter.
 */
const MAX_FORM = 4 * 1024;
const TOO_LONG = `The form of the log-in page has at most ${MAX_FORM / 1024} KiB.`;

logInRoutes.use(
  "/login",
  bodyLimit({ maxSize: MAX_FORM, onError: () => adminProblem(413, TOO_LONG) }),
);

logInRoutes.post("/login", async (c) => {
  const { gate, recordLogIn } = c.env.context;
  // A page of another site could log the operator in with a token of its own.
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
