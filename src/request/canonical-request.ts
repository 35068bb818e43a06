import type { Config } from "../config/schema.ts";
import { headersNamed, namePattern, type ReadonlyHeaders } from "./headers.ts";
import { LruCache } from "./lru-cache.ts";
import { type CanonicalPath, canonicalPath, isTooLong, readAsRouter } from "./path.ts";
import { type SentNames, SentValues } from "./sent-values.ts";
import { removeTrailing } from "./text-folding.ts";

interface PreflightParts {
  readonly headers: ReadonlyHeaders;
  /** Null if the request has no body. */
  readonly body: unknown;
}

/**
 * Whether a request is a CORS-preflight request, as the Fetch standard defines it. A preflight has no body and no
 * credentials, and never changes the protocol or the method. A request with the headers of a preflight but a
 * different form counts as an ordinary OPTIONS request.
 */
export function isPreflight(method: string, request: PreflightParts): boolean {
  if (method !== "OPTIONS") return false;
  const { headers, body } = request;
  return (
    Boolean(headers.get("origin") && headers.get("access-control-request-method")) &&
    !NOT_IN_PREFLIGHTS.some((name) => headers.has(name)) &&
    headersNamed(OTHER_METHODS, headers).length === 0 &&
    // Some proxies add `Content-Length: 0`, and the runtime then creates an empty body.
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

/** Headers whose values some origins use as the method. Rules must count a request with such a header. */
const OTHER_METHODS = namePattern("x-http-method-override", "x-http-method", "x-method-override");

/** A request in its canonical form. Different spellings of a host, a path or a method have the same form. */
export interface CanonicalRequest extends CanonicalPath {
  /** The method in upper case. HEAD becomes GET, because an origin does the same work for both. */
  readonly method: string;
  /** The method that the client sent, in upper case, for rules that name HEAD. */
  readonly sentMethod: string;
  /** Whether the request is a CORS preflight. Only rules that name OPTIONS count preflights. */
  readonly isPreflight: boolean;
  /** The host name in lower case, without a port and without trailing dots. */
  readonly host: string;
  /** The query with its question mark; empty if there is none. */
  readonly search: string;
  /**
   * Whether the path has an escaped question mark, or the query begins with a second question mark. Some origins then
   * read parameters that the query lacks.
   */
  readonly hasHiddenQuery: boolean;
  readonly headers: ReadonlyHeaders;
  /** The headers, cookies and query parameters, each read once. */
  readonly sent: SentValues;
  /**
   * The variants that an app certainly uses: the variant by which its router has routed the request, and then the
   * variant of the parsed URL, which the app forwards. Undefined if no app routes the request, or if the path has
   * only one variant.
   */
  readonly routed?: readonly string[] | undefined;
  /** Whether the request has a body, which may be empty. */
  readonly hasBody: boolean;
  /** Cloudflare's data about the client; undefined outside Cloudflare. */
  readonly cf: ClientFacts | undefined;
}

/**
 * Cloudflare's data that keys and conditions use. Declared here, because tests compile this module for Node, without
 * Cloudflare's types.
 */
export interface ClientFacts {
  readonly country?: string | null;
  readonly asn?: number;
  readonly botManagement?: unknown;
  readonly verifiedBotCategory?: string;
}

/** The parts of a URL that most rules need. */
export interface Place extends CanonicalPath {
  readonly host: string;
}

/**
 * The caches store the hosts and canonical paths of short URLs, because computing a path takes longer than a decision
 * from memory. Each cache takes approximately half a megabyte. The cache key is the URL without its query. Only
 * unambiguous paths are cached, because such a path has one variant.
 */
const CACHED_PLACES = 512;
const MAX_CACHED_LENGTH = 256;
const places = new LruCache<Place>(CACHED_PLACES);
const caseSensitivePlaces = new LruCache<Place>(CACHED_PLACES);

/**
 * Brings a request into its canonical form.
 *
 * @param routedPath the path that an app's router has used, if any. A router may use the URL as the client sent it,
 * while Weir uses the parsed URL. If the paths differ, the request has the variants of both paths
 * @param names the cookies and query parameters that the rules read
 * @returns undefined if the host and the path of the request are unclear (see {@link namesPlace}), or if the path is
 * too long to compute its variants
 */
export function canonicalRequest(
  request: Request,
  caseSensitivePaths: boolean,
  routedPath?: string,
  names?: SentNames,
): CanonicalRequest | undefined {
  const place = placeOf(request.url, caseSensitivePaths);
  if (!place) return undefined;
  if (routedPath === undefined || (place.path === routedPath && place.isUnambiguous)) {
    return new RequestReader(request, place, names);
  }
  const { pathname } = new URL(request.url);
  if (isTooLong(routedPath)) return undefined;
  const other = routedPath === pathname ? place : canonicalPath(routedPath, caseSensitivePaths);
  const routed = [routedPath, pathname].map((path) => readAsRouter(path, caseSensitivePaths));
  return new RequestReader(request, mergePath(place, other, routed), names);
}

/** Adds the variants of a second path, and the variants that an app uses, to the variants of a URL's path. */
function mergePath(place: Place, other: CanonicalPath, routed: readonly string[]) {
  const variants = [...new Set([...place.variants, ...other.variants, ...routed])];
  return {
    ...place,
    isUnambiguous: place.isUnambiguous && other.isUnambiguous && variants.length === 1,
    variants,
    unstrippedVariants: [...new Set([...place.unstrippedVariants, ...other.unstrippedVariants])],
    routed: variants.length > 1 ? [...new Set(routed)] : undefined,
  };
}

/** @returns undefined under the same conditions as {@link canonicalRequest} */
export function placeOf(url: string, caseSensitivePaths: boolean): Place | undefined {
  // The query never changes the host or the path, and never makes a URL invalid. So the cache key omits it.
  const queryIndex = url.indexOf("?");
  const text = queryIndex === -1 ? url : url.slice(0, queryIndex);
  // A cached slice keeps its whole URL in memory, so the maximum length applies to the whole URL.
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

/** Whether Weir itself answers a request, with the client's own quotas, so that no rule counts the request. */
export function readsOwnQuotas(
  { sentMethod, path }: Pick<CanonicalRequest, "sentMethod" | "path">,
  { quotaPath, caseSensitivePaths }: Pick<Config, "quotaPath" | "caseSensitivePaths">,
): boolean {
  if (quotaPath === undefined || (sentMethod !== "GET" && sentMethod !== "HEAD")) return false;
  return canonicalPath(quotaPath, caseSensitivePaths).path === path;
}

/** See {@link CanonicalRequest.hasHiddenQuery}. */
export function hasHiddenQuery(url: string): boolean {
  return /^[^?#]*(?:%(?:25)*3f|\?\?)/i.test(url);
}

/** Returns the host by which rules match a request with this URL, which must be valid. */
export function hostOf(url: string): string {
  return removeTrailing(".", new URL(url).hostname);
}

/** Whether a URL has a clear host and a clear path. See {@link parse} for examples of unclear URLs. */
export function namesPlace(url: string): boolean {
  return parse(url) !== undefined;
}

/**
 * Parses a URL, and returns undefined if its host and path are unclear. For example, with `Host:
 * api.example.com#` the whole path would become a fragment, and rules would match `/`. A request
 * with two Host headers has no valid URL.
 */
function parse(url: string): URL | undefined {
  return /^https?:\/\/[^/?#\\@\s]+\//i.test(url) ? (URL.parse(url) ?? undefined) : undefined;
}

/** Reads the query and Cloudflare's data only if needed, because the runtime creates them at each access. */
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
  readonly routed: readonly string[] | undefined;
  readonly #request: Request;
  readonly #names: SentNames | undefined;
  #sent: SentValues | undefined;
  #cf: ClientFacts | undefined;

  constructor(
    request: Request,
    place: Place & Pick<CanonicalRequest, "routed">,
    names: SentNames | undefined,
  ) {
    this.path = place.path;
    this.isUnambiguous = place.isUnambiguous;
    this.variants = place.variants;
    this.unstrippedVariants = place.unstrippedVariants;
    this.host = place.host;
    this.routed = place.routed;
    this.sentMethod = request.method.toUpperCase();
    this.method = this.sentMethod === "HEAD" ? "GET" : this.sentMethod;
    this.headers = request.headers;
    this.isPreflight = isPreflight(this.sentMethod, request);
    this.#request = request;
    this.#names = names;
  }

  get sent(): SentValues {
    this.#sent ??= new SentValues(this, this.#names);
    return this.#sent;
  }

  get search(): string {
    return new URL(this.#request.url).search;
  }

  get hasHiddenQuery(): boolean {
    return hasHiddenQuery(this.#request.url);
  }

  get hasBody(): boolean {
    return this.#request.body !== null;
  }

  get cf(): ClientFacts | undefined {
    this.#cf ??= "cf" in this.#request ? (this.#request.cf as ClientFacts | undefined) : undefined;
    return this.#cf;
  }
}
