import { QUOTA_FIELDS } from "./rate-limit-headers.ts";

/**
 * Matches an `Origin` as browsers send it: the ASCII serialization of RFC 6454, or `null`. Weir
 * copies no other value into a response, because workerd logs a warning for header values that are
 * not ASCII.
 */
const ORIGIN = /^(null|[a-z][a-z0-9+.-]*:\/\/[!#-;=?-[\]-~]{1,255})$/i;

/**
 * Adds fields that let a page on another origin read a response that Weir creates. Without these
 * fields, a browser reports a network error to the page instead of a 429, and hides Retry-After.
 * The page may read the whole response, because it contains only the quotas of the client that sent
 * the request.
 */
export function allowOrigin(request: Request, headers: Headers): void {
  const origin = request.headers.get("origin");
  if (!origin) return;
  headers.append("Vary", "Origin");
  if (!ORIGIN.test(origin)) return;
  headers.set("Access-Control-Allow-Origin", origin);
  headers.set("Access-Control-Allow-Credentials", "true");
  headers.set(EXPOSE, EXPOSED);
}

const EXPOSED = ["Retry-After", ...QUOTA_FIELDS].join(", ");

const EXPOSE = "Access-Control-Expose-Headers";

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
  if (!headers.has("Access-Control-Allow-Origin")) return;
  const list = headers.get(EXPOSE)?.toLowerCase().split(",") ?? [];
  const exposed = list.map((name) => name.trim());
  // `*` exposes all fields, but not for requests with credentials. Pages can send such requests
  // only if the response allows credentials.
  const exposesAll = exposed.includes("*");
  if (exposesAll && headers.get("Access-Control-Allow-Credentials") !== "true") return;
  const missing = names.filter((name) => !exposed.includes(name.toLowerCase()));
  if (missing.length > 0) headers.append(EXPOSE, missing.join(", "));
}
