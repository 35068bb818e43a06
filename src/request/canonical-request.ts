import { type CanonicalPath, canonicalPath } from "./canonical-path.ts";

/** What rules and keys see of a request. One thing that can be written in two ways is one here. */
export interface CanonicalRequest extends CanonicalPath {
  /** Upper case; HEAD is GET, because an origin does the same work for it. */
  readonly method: string;
  /** The method as it came, in upper case: a rule may name HEAD itself. */
  readonly sentMethod: string;
  /** A CORS preflight: browsers send it unasked, so only a rule that names OPTIONS counts it. */
  readonly preflight: boolean;
  /** Lower case, without port and without a trailing dot. */
  readonly host: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** What Cloudflare knows of the client; undefined outside Cloudflare. */
  readonly cf: IncomingRequestCfProperties | undefined;
}

export function canonicalRequest(request: Request, caseSensitivePaths: boolean): CanonicalRequest {
  const url = new URL(request.url);
  const sentMethod = request.method.toUpperCase();
  return {
    ...canonicalPath(url.pathname, caseSensitivePaths),
    method: sentMethod === "HEAD" ? "GET" : sentMethod,
    sentMethod,
    preflight: isPreflight(sentMethod, request.headers),
    host: url.hostname.replace(/\.$/, ""),
    query: url.searchParams,
    headers: request.headers,
    cf: request.cf as IncomingRequestCfProperties | undefined,
  };
}

/** The Fetch standard's definition of a CORS-preflight request. */
function isPreflight(method: string, headers: Headers): boolean {
  return (
    method === "OPTIONS" && headers.has("origin") && headers.has("access-control-request-method")
  );
}
