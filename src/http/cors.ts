import { QUOTA_FIELDS } from "./rate-limit-headers.ts";

/**
 * Matches an `Origin` as browsers send it: the ASCII serialization of RFC 6454, or `null`. Weir
 * copies no other value into a response, because workerd logs a warning for header values that are
 * not ASCII.
 */
const ORIGIN = /^(null|[a-z][a-z0-9+.-]*:\/\/[!#-;=?-[\]-~]{1,255})$/i;

const ALLOW_ORIGIN = "Access-Control-Allow-Origin";
const ALLOW_CREDENTIALS = "Access-Control-Allow-Credentials";
const EXPOSE = "Access-Control-Expose-Headers";

/** The fields of a denial that pages need. */
const EXPOSED = ["Retry-After", ...QUOTA_FIELDS];

/**
 * Lets a page on another origin read a response that Weir creates. Without these fields, a browser
 * reports a network error to the page instead of a 429, and hides Retry-After.
 *
 * Any page may read such a response, but not with the cookies of its visitor: the quotas in it would
 * show to any site what a visitor has done on this one. Only a function or an app knows which pages
 * may send cookies, so its decision stands: see {@link decidesAccess}.
 */
export function allowOrigin(request: Request, headers: Headers): void {
  const origin = request.headers.get("origin");
  if (!origin) return;
  if (!decidesAccess(headers)) {
    if (!/(?:^|,)\s*(?:\*|origin)\s*(?:,|$)/i.test(headers.get("Vary") ?? "")) {
      headers.append("Vary", "Origin");
    }
    if (ORIGIN.test(origin)) headers.set(ALLOW_ORIGIN, origin);
  }
  exposeFields(request, headers, EXPOSED);
}

/**
 * Whether a function or an app has decided which pages may read a response. A response that allows
 * credentials but no origin is a refusal: with an origin that Weir adds, any site could read it.
 */
function decidesAccess(headers: Headers): boolean {
  return headers.has(ALLOW_ORIGIN) || headers.has(ALLOW_CREDENTIALS);
}

/**
 * Prepares the header fields that an app has set before Weir answers, because Hono then replaces the fields of
 * Weir's response by those of the app.
 */
export function mergeAppFields(request: Request, response: Headers, app: Headers): void {
  // The app's own Cache-Control must not replace that of a denial.
  for (const name of response.keys()) if (!isAccessField(name)) app.delete(name);
  if (!decidesAccess(app)) return;
  response.delete(ALLOW_ORIGIN);
  exposeFields(request, app, EXPOSED);
}

/** Whether a header field decides which pages may read a response, or for which pages it is valid. */
export function isAccessField(name: string): boolean {
  return /^(?:access-control-.*|vary)$/i.test(name);
}

/**
 * Lets a page on another origin read the given fields of a forwarded response. The function only
 * adds to the fields that the origin of the response exposes. It changes nothing if the request
 * does not come from a page of another origin, or if the response does not allow pages to read it.
 *
 * The function does not add `Vary: Origin`, because the given fields are valid only for this
 * response. A client must not use them if they come from a cache.
 */
export function exposeFields(request: Request, headers: Headers, names: readonly string[]): void {
  if (names.length === 0 || !request.headers.has("origin")) return;
  if (!headers.has(ALLOW_ORIGIN)) return;
  const list = headers.get(EXPOSE)?.toLowerCase().split(",") ?? [];
  const exposed = list.map((name) => name.trim());
  // `*` exposes all fields, but not for requests with credentials. Pages can send such requests
  // only if the response allows credentials.
  const exposesAll = exposed.includes("*");
  if (exposesAll && headers.get(ALLOW_CREDENTIALS) !== "true") return;
  const missing = names.filter((name) => !exposed.includes(name.toLowerCase()));
  if (missing.length > 0) headers.append(EXPOSE, missing.join(", "));
}
