import { canonicalPath, isTooLong } from "./canonical-path.ts";
import { LruCache } from "./lru-cache.ts";
import type { CanonicalPath } from "./path-reader.ts";
import { removeTrailing } from "./text-folding.ts";

/** A request as rules and keys see it. Two spellings of one thing are equal in it. */
export interface CanonicalRequest extends CanonicalPath {
  /** In upper case. HEAD is GET, because an origin does the same work for it. */
  readonly method: string;
  /** The sent method in upper case, because a rule may name HEAD itself. */
  readonly sentMethod: string;
  /** Browsers add CORS preflights to an app's requests, so only a rule that names OPTIONS counts them. */
  readonly isPreflight: boolean;
  /** In lower case, without a port and without trailing dots. */
  readonly host: string;
  /** The query with its question mark, or an empty text. */
  readonly search: string;
  readonly headers: Headers;
  /** Cloudflare's data about the client; undefined outside Cloudflare. */
  readonly cf: ClientFacts | undefined;
}

/** The part of Cloudflare's data that keys read. Declared here, because the CLI matches rules in Node. */
export interface ClientFacts {
  readonly country?: string | null;
  readonly asn?: number;
  readonly botManagement?: unknown;
}

/** The host and the path of a URL. Most rules need nothing else of it. */
interface Place extends CanonicalPath {
  readonly host: string;
}

/**
 * The places of short URLs, by the URL without its query. Parsing a URL and computing its canonical path
 * takes longer than a decision from memory. Each cache has at most 512 places, about half a megabyte, and
 * only those of unambiguous paths, which have one variant. A URL that is not cached costs no more than
 * without a cache.
 */
const CACHED_PLACES = 512;
const MAX_CACHED_LENGTH = 256;
const places = new LruCache<Place>(CACHED_PLACES);
const caseSensitivePlaces = new LruCache<Place>(CACHED_PLACES);

/**
 * Reads a request into its canonical form.
 *
 * @param routedPath the path by which an app has routed the request, if any. The app may read the URL as
 * it was sent, while Weir reads it resolved. The request then has the variants of both paths
 * @returns undefined for a request whose host and path are unclear (see {@link namesPlace}), and for a
 * path that is too long to compute its variants
 */
export function canonicalRequest(
  request: Request,
  caseSensitivePaths: boolean,
  routedPath?: string,
): CanonicalRequest | undefined {
  const place = placeOf(request.url, caseSensitivePaths);
  if (!place) return undefined;
  if (routedPath === undefined || place.path === routedPath) {
    return new RequestReader(request, place);
  }
  // Both paths together have the bounds of one path.
  if (isTooLong(new URL(request.url).pathname, routedPath)) return undefined;
  const routed = canonicalPath(routedPath, caseSensitivePaths);
  return new RequestReader(request, mergePath(place, routed));
}

/** Adds the variants of another path. */
function mergePath(place: Place, other: CanonicalPath): Place {
  const variants = [...new Set([...place.variants, ...other.variants])];
  const isUnambiguous = place.isUnambiguous && other.isUnambiguous && variants.length === 1;
  const unstrippedVariants = [
    ...new Set([...place.unstrippedVariants, ...other.unstrippedVariants]),
  ];
  return { ...place, isUnambiguous, variants, unstrippedVariants };
}

function placeOf(url: string, caseSensitivePaths: boolean): Place | undefined {
  // The query is not part of the place, and never makes a URL invalid.
  const queryIndex = url.indexOf("?");
  const text = queryIndex === -1 ? url : url.slice(0, queryIndex);
  // A slice keeps the whole text in memory, so the length of the whole text counts.
  const isShort = url.length <= MAX_CACHED_LENGTH;
  const cache = caseSensitivePaths ? caseSensitivePlaces : places;
  const cached = isShort ? cache.get(text) : undefined;
  if (cached) return cached;
  const parsed = parse(url);
  if (!parsed || isTooLong(parsed.pathname)) return undefined;
  const host = removeTrailing(".", parsed.hostname);
  const place = { ...canonicalPath(parsed.pathname, caseSensitivePaths), host };
  if (isShort && place.isUnambiguous) cache.set(text, place);
  return place;
}

/** Whether the host and the path of a URL are clear. */
export function namesPlace(url: string): boolean {
  return parse(url) !== undefined;
}

/**
 * Parses a URL whose host and path are clear. `Host: api.example.com#` would make the whole path a
 * fragment, and rules would match `/`. Two Host fields make no valid URL.
 */
function parse(url: string): URL | undefined {
  return /^https?:\/\/[^/?#\\@\s]+\//i.test(url) ? (URL.parse(url) ?? undefined) : undefined;
}

/**
 * Reads a request as far as nearly every rule needs it. The runtime creates the query and Cloudflare's
 * data anew for each access, so they are read only for keys that name them.
 */
class RequestReader implements CanonicalRequest {
  readonly path: string;
  readonly isUnambiguous: boolean;
  readonly variants: readonly string[];
  readonly unstrippedVariants: readonly string[];
  readonly method: string;
  readonly sentMethod: string;
  readonly isPreflight: boolean;
  readonly host: string;
  readonly headers: Headers;
  readonly #request: Request;

  constructor(request: Request, place: Place) {
    this.path = place.path;
    this.isUnambiguous = place.isUnambiguous;
    this.variants = place.variants;
    this.unstrippedVariants = place.unstrippedVariants;
    this.host = place.host;
    this.sentMethod = request.method.toUpperCase();
    this.method = this.sentMethod === "HEAD" ? "GET" : this.sentMethod;
    this.headers = request.headers;
    this.isPreflight = isPreflight(this.sentMethod, request);
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
 * Whether a request is the Fetch standard's CORS-preflight request. Such a request never has a body or
 * credentials. A request with one of these is counted by its method, whatever fields it adds.
 */
function isPreflight(method: string, request: Request): boolean {
  if (method !== "OPTIONS") return false;
  const { headers, body } = request;
  return (
    Boolean(headers.get("origin") && headers.get("access-control-request-method")) &&
    !NOT_IN_PREFLIGHTS.some((name) => headers.has(name)) &&
    // Proxies add a length of 0, for which the runtime creates an empty body.
    (headers.has("content-length") ? /^0+$/.test(headers.get("content-length") ?? "") : !body)
  );
}

const NOT_IN_PREFLIGHTS = ["authorization", "cookie", "proxy-authorization", "transfer-encoding"];
