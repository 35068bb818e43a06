import { type CanonicalPath, canonicalPath } from "./canonical-path.ts";

/** What rules and keys see of a request. One thing that can be written in two ways is one here. */
export interface CanonicalRequest extends CanonicalPath {
  /** Upper case; HEAD is GET, because an origin does the same work for it. */
  readonly method: string;
  /** The method as it came, in upper case: a rule may name HEAD itself. */
  readonly sentMethod: string;
  /** A CORS preflight: browsers send it unasked, so only a rule that names OPTIONS counts it. */
  readonly preflight: boolean;
  /** Lower case, without port and without trailing dots. */
  readonly host: string;
  readonly query: URLSearchParams;
  readonly headers: Headers;
  /** What Cloudflare knows of the client; undefined outside Cloudflare. */
  readonly cf: ClientFacts | undefined;
}

/** Of what Cloudflare knows, what keys read. Declared here, since the CLI matches rules in Node. */
export interface ClientFacts {
  readonly country?: string | null;
  readonly asn?: number;
  readonly botManagement?: unknown;
}

export function canonicalRequest(request: Request, caseSensitivePaths: boolean): CanonicalRequest {
  const url = new URL(request.url);
  const sentMethod = request.method.toUpperCase();
  return {
    ...canonicalPath(url.pathname, caseSensitivePaths),
    method: sentMethod === "HEAD" ? "GET" : sentMethod,
    sentMethod,
    preflight: isPreflight(sentMethod, request.headers),
    host: url.hostname.replace(/\.+$/, ""),
    query: parametersOf(url),
    headers: request.headers,
    cf: "cf" in request ? (request.cf as ClientFacts | undefined) : undefined,
  };
}

/**
 * Whether a request says which host and path it is for. `Host: api.example.com#` would make all of
 * its path a fragment, to be matched as `/`; of two Host fields no URL can be made.
 */
export function isReadable({ url }: Request): boolean {
  return /^https?:\/\/[^/?#\\@\s]+\//i.test(url) && URL.canParse(url);
}

/** Some servers still divide parameters at `;` as well. */
function parametersOf({ search, searchParams }: URL): URLSearchParams {
  return search.includes(";") ? new URLSearchParams(search.replaceAll(";", "&")) : searchParams;
}

/** The Fetch standard's definition of a CORS-preflight request. */
function isPreflight(method: string, headers: Headers): boolean {
  return (
    method === "OPTIONS" && headers.has("origin") && headers.has("access-control-request-method")
  );
}
