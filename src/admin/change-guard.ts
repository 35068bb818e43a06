import type { MiddlewareHandler } from "hono";
import type { AdminEnv } from "./admin-env.ts";
import { adminProblem } from "./admin-problem.ts";
import { isSameText } from "./digest.ts";
import { readForm } from "./form.ts";
import { isSameOrigin } from "./same-origin.ts";

/** The header field and the field of forms with the CSRF token of a session. */
const HEADER = "x-weir-csrf";
const FIELD = "csrf";
/** Other types of forms are not read, and pages of other sites cannot send JSON without a preflight. */
const FORM = /^application\/x-www-form-urlencoded *(?:;|$)/i;

/**
 * Refuses requests that a page of another site has sent with the operator's cookie. All requests except GET
 * and HEAD need the session's CSRF token and must come from a page of Weir. Credentials that browsers do not
 * send without being asked need neither.
 */
export const guardChanges: MiddlewareHandler<AdminEnv> = async (c, next) => {
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
