import type { HeaderFields } from "./header-fields.ts";

/** The parts of a request by which a preflight is recognised. A `Request` has this form. */
interface PreflightParts {
  readonly headers: HeaderFields;
  /** Null if the request has no body. */
  readonly body: unknown;
}

/**
 * Whether a request is a CORS-preflight request, as the Fetch standard defines it. A preflight
 * never has a body or credentials, and never changes the protocol. So a request with one of these counts
 * as an ordinary OPTIONS request, even if it has the header fields of a preflight.
 */
export function isPreflight(method: string, request: PreflightParts): boolean {
  if (method !== "OPTIONS") return false;
  const { headers, body } = request;
  return (
    Boolean(headers.get("origin") && headers.get("access-control-request-method")) &&
    !NOT_IN_PREFLIGHTS.some((name) => headers.has(name)) &&
    // Some proxies add `Content-Length: 0`, and the runtime then creates an empty body. So a length
    // of 0 counts as no body.
    (headers.has("content-length") ? /^0+$/.test(headers.get("content-length") ?? "") : !body)
  );
}

const NOT_IN_PREFLIGHTS = [
  "authorization",
  "cookie",
  "proxy-authorization",
  "transfer-encoding",
  "upgrade",
];
