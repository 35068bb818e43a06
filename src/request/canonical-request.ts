import { type CanonicalPath, canonicalPath, isTooLong } from "./canonical-path.ts";
import { LruCache } from "./lru-cache.ts";
import { withoutFinal } from "./text-folding.ts";

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
  /** The query with its question mark, or nothing. */
  readonly search: string;
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

/** What a URL says of host and path: all that it says to most rules. */
interface Place extends CanonicalPath {
  readonly host: string;
}

/**
 * The places of short URLs, by what stands before the query: parsing a URL and bringing its path into
 * canonical form takes longer than to decide from memory. At most 512 each, about half a megabyte, and
 * only of plain paths, which have one reading. A flood of new URLs costs what it would cost without.
 */
const REMEMBERED = 512;
const LONGEST_REMEMBERED = 256;
const places = new LruCache<Place>(REMEMBERED);
const caseSensitivePlaces = new LruCache<Place>(REMEMBERED);

/**
 * @param routedPath the path that an app has routed the request by, if one has: it may read the URL
 * as it was sent, where Weir's has been resolved. The readings of both are those of the request
 * @returns undefined for a request that does not say which host and path it is for, or whose path is
 * too long to be read as origins may: see {@link namesPlace}
 */
export function canonicalRequest(
  request: Request,
  caseSensitivePaths: boolean,
  routedPath?: string,
): CanonicalRequest | undefined {
  const place = placeOf(request.url, caseSensitivePaths);
  if (!place) return undefined;
  const isSame = routedPath === undefined || place.path === routedPath;
  // Bringing both into their readings must not take longer than one may.
  if (!isSame && isTooLong(new URL(request.url).pathname, routedPath)) return undefined;
  const read = isSame ? place : withBoth(place, canonicalPath(routedPath, caseSensitivePaths));
  return new ReadRequest(request, read);
}

/** A path that is written in two ways. */
function withBoth(place: Place, other: CanonicalPath): Place {
  const readings = [...new Set([...place.variants, ...other.variants])];
  const plain = place.isUnambiguous && other.isUnambiguous && readings.length === 1;
  const literal = [...new Set([...place.literal, ...other.literal])];
  return { ...place, isUnambiguous: plain, variants: readings, literal };
}

function placeOf(url: string, caseSensitivePaths: boolean): Place | undefined {
  // The query is neither part of the place, nor is a URL less of a URL for it.
  const queryAt = url.indexOf("?");
  const text = queryAt === -1 ? url : url.slice(0, queryAt);
  // A slice keeps the whole text in memory, so it is that which has to be short.
  const isShort = url.length <= LONGEST_REMEMBERED;
  const recent = caseSensitivePaths ? caseSensitivePlaces : places;
  const known = isShort ? recent.get(text) : undefined;
  if (known) return known;
  const parsed = parse(url);
  if (!parsed || isTooLong(parsed.pathname)) return undefined;
  const host = withoutFinal(".", parsed.hostname);
  const place = { ...canonicalPath(parsed.pathname, caseSensitivePaths), host };
  if (isShort && place.isUnambiguous) recent.set(text, place);
  return place;
}

/** Whether a URL says which host and path it is for. */
export function namesPlace(url: string): boolean {
  return parse(url) !== undefined;
}

/**
 * `Host: api.example.com#` would make all of the path a fragment, to be matched as `/`; of two Host
 * fields no URL can be made.
 */
function parse(url: string): URL | undefined {
  return /^https?:\/\/[^/?#\\@\s]+\//i.test(url) ? (URL.parse(url) ?? undefined) : undefined;
}

/**
 * A request, read as far as nearly every rule needs it. The runtime makes the query and Cloudflare's
 * facts anew each time that they are read, so only keys that name them do that.
 */
class ReadRequest implements CanonicalRequest {
  readonly path: string;
  readonly isUnambiguous: boolean;
  readonly variants: readonly string[];
  readonly literal: readonly string[];
  readonly method: string;
  readonly sentMethod: string;
  readonly preflight: boolean;
  readonly host: string;
  readonly headers: Headers;
  readonly #request: Request;

  constructor(
    request: Request,
    { path, isUnambiguous: plain, variants: readings, literal, host }: Place,
  ) {
    this.path = path;
    this.isUnambiguous = plain;
    this.variants = readings;
    this.literal = literal;
    this.host = host;
    this.sentMethod = request.method.toUpperCase();
    this.method = this.sentMethod === "HEAD" ? "GET" : this.sentMethod;
    this.headers = request.headers;
    this.preflight = isPreflight(this.sentMethod, request);
    this.#request = request;
  }

  get search(): string {
    return new URL(this.#request.url).search;
  }

  get cf(): ClientFacts | undefined {
    return "cf" in this.#request ? (this.#request.cf as ClientFacts | undefined) : undefined;
  }
}

/**
 * The Fetch standard's CORS-preflight request. It never has a body or credentials, so a request with
 * one of these is what its method says, whatever fields it adds.
 */
function isPreflight(method: string, request: Request): boolean {
  if (method !== "OPTIONS") return false;
  const { headers, body } = request;
  return (
    Boolean(headers.get("origin") && headers.get("access-control-request-method")) &&
    !NOT_IN_PREFLIGHTS.some((name) => headers.has(name)) &&
    // Proxies add a length of 0, of which the runtime makes an empty body.
    (headers.has("content-length") ? /^0+$/.test(headers.get("content-length") ?? "") : !body)
  );
}

const NOT_IN_PREFLIGHTS = ["authorization", "cookie", "proxy-authorization", "transfer-encoding"];
