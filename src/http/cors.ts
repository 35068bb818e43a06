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
  headers.set("Access-Control-Expose-Headers", EXPOSED);
}

const EXPOSED = [
  "Retry-After",
  "RateLimit-Policy",
  "RateLimit",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
].join(", ");
