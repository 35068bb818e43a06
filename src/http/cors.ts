/**
 * An origin as browsers write it: RFC 6454's serialization, which is ASCII, or `null`. Of anything else
 * in a field that it is given, workerd tells in its log.
 */
const ORIGIN = /^(null|[a-z][a-z0-9+.-]*:\/\/[!#-;=?-[\]-~]{1,255})$/i;

/**
 * Lets a page on another origin read a response of Weir's own. A browser otherwise shows it a
 * network error instead of a 429, and hides Retry-After. What the response says is about the
 * client that asked, so there is nothing to keep from the page.
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
