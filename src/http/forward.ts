import { hostLookup } from "../config/address.ts";
import type { OriginBinding, ResolvedBindings } from "../config/bindings.ts";
import { isViolated, type Quota } from "../limiter/decision.ts";
import { hostOf } from "../request/canonical-request.ts";
import { headersNamed, namePattern } from "../request/headers.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { limitItem } from "./response-headers.ts";
import { badGatewayResponse } from "./responses.ts";

const OVER = "Weir-Over";
const REMAINING = "Weir-Remaining";

const FORGEABLE = namePattern(OVER.toLowerCase(), REMAINING.toLowerCase());

/** The items of the request headers that tell the origin about quotas. */
interface OriginHeaders {
  /** The policies with `mode: "mark"` that the request exceeds. */
  readonly over: readonly string[];
  readonly remaining: readonly string[];
}

/**
 * The headers of each request that `withOriginHeaders` has created. If an app applies several
 * configurations or rules one after the other, the later ones keep the headers of the earlier ones.
 * All other requests come from clients, so such headers in them are forged.
 */
const created = new WeakMap<Request, OriginHeaders>();

/**
 * Returns the request with the headers that tell the origin about quotas, and without such headers
 * from the client. If no header changes, the result is the given object. Otherwise it is a new
 * request, which has taken over the body.
 *
 * @param quotas the quotas of an admitted request; empty if the request is undecided
 */
export function withOriginHeaders(
  request: Request,
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
): Request {
  const before = created.get(request);
  const forged = before ? [] : headersNamed(FORGEABLE, request.headers);
  const own = originHeadersFor(appliedRules, quotas);
  if (forged.length + own.over.length + own.remaining.length === 0) return request;
  const headers: OriginHeaders = {
    over: [...(before?.over ?? []), ...own.over],
    remaining: [...(before?.remaining ?? []), ...own.remaining],
  };
  const copy = copyRequest(request);
  for (const name of forged) copy.headers.delete(name);
  if (headers.over.length > 0) copy.headers.set(OVER, headers.over.join(", "));
  if (headers.remaining.length > 0) copy.headers.set(REMAINING, headers.remaining.join(", "));
  created.set(copy, headers);
  return copy;
}

function originHeadersFor(
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
): OriginHeaders {
  const showsRemaining = ({ policy }: Quota) =>
    appliedRules.some(
      ({ rule, windows }) => rule.tellOrigin && windows.some((window) => window.policy === policy),
    );
  return {
    over: quotas.filter(isViolated).map(({ policy }) => policy),
    remaining: quotas.filter(showsRemaining).map(limitItem),
  };
}

/** Returns a copy of a request, which has taken over the body. */
export function copyRequest(request: Request): Request {
  try {
    return new Request(request);
  } catch {
    // The app has read the body already, so the copy has none. Hono keeps a body that it has read.
    const { url, method, headers, redirect, signal, cf } = request;
    return new Request(url, {
      method,
      headers,
      redirect,
      signal,
      ...(cf && { cf }),
    } as RequestInit);
  }
}

/**
 * Sends a request to the origin and returns its response, or a 502. Never rejects.
 *
 * @param isRaw whether a program reads the response as the server has encoded it; undefined if no
 * program reads it. The responses of bound Workers are never raw
 */
type Forward = (request: Request, isRaw?: boolean) => Promise<Response>;

/**
 * Creates a function that forwards requests with the platform's `fetch`. The function changes the
 * URL, and removes the headers that servers may use instead of the URL. It changes nothing
 * else, so streams, WebSockets, compressed bodies, redirects and repeated headers pass
 * unchanged. If a program reads the response, it also changes the header Accept-Encoding: see body-tee.ts.
 */
export function createForward(bindings: Pick<ResolvedBindings, "origin" | "origins">): Forward {
  const send = senderByHost(bindings);
  return async function forward(request, isRaw) {
    try {
      return await send(request, isRaw);
    } catch {
      // The response omits the error's text, which may contain addresses that clients must not see.
      return badGatewayResponse(request, "The origin could not be reached.");
    }
  };
}

/** Selects the origin by the same canonical host by which rules match requests. */
function senderByHost({ origin, origins }: Pick<ResolvedBindings, "origin" | "origins">): Forward {
  const byDefault = sender(origin);
  if (origins.size === 0) return byDefault;
  const senderFor = hostLookup(
    new Map([...origins].map(([host, each]) => [host, sender(each)] as const)),
  );
  return (request, isRaw) => (senderFor(hostOf(request.url)) ?? byDefault)(request, isRaw);
}

function sender(origin: OriginBinding): Forward {
  switch (origin.kind) {
    case "pass-through":
      return passThrough;
    case "url":
      return toBase(origin.base);
    case "binding":
      return (request, isRaw) => origin.service.fetch(outgoing(request, request.url, isRaw));
    case "misconfigured":
      return async (request) => badGatewayResponse(request, "The origin is not configured.");
  }
}

/** On a route, Cloudflare sends this fetch to the zone's origin instead of to this Worker again. */
async function passThrough(request: Request, isRaw?: boolean): Promise<Response> {
  if (isLoopback(new URL(request.url).hostname)) {
    // `wrangler dev` has no zone, so the request would return to this Worker again and again.
    const detail = "A local Worker has no origin. Set ORIGIN_URL, or start with npm run dev.";
    return badGatewayResponse(request, detail);
  }
  return await fetchFrom(request, request.url, isRaw);
}

function toBase(base: string): Forward {
  // If the base has no path, the origin can resolve dot segments itself, and it gets the path that
  // Weir matched. If the base has a path, dot segments could leave that path, so Weir resolves them
  // first.
  const hasPath = new URL(base).pathname !== "/";
  return (request, isRaw) => {
    const url = hasPath ? new URL(request.url).href : request.url;
    return fetchFrom(request, base + afterHost(url), isRaw);
  };
}

function fetchFrom(request: Request, url: string, isRaw?: boolean): Promise<Response> {
  return fetch(outgoing(request, url, isRaw), isRaw ? { encodeResponseBody: "manual" } : undefined);
}

function outgoing(request: Request, url: string, isRaw: boolean | undefined): Request {
  const changed = withUrl(request, url);
  return isRaw === undefined ? changed : acceptGzip(changed);
}

/**
 * Headers whose values IIS, Symfony and other servers use instead of the URL's path. Weir removes these
 * headers, because it has not matched rules against the paths in them, and clients do not need the headers.
 */
const OTHER_PATHS = namePattern("x-original-url", "x-rewrite-url");

/**
 * Returns the request with a URL that Weir has parsed. `fetch(request)` would send the URL as the
 * client sent it, with dot segments and backslashes. An origin may read a different path from such
 * a URL.
 */
function withUrl(request: Request, url: string): Request {
  const outgoing = new Request(url, request);
  // The names come from the original request, because workerd has created its headers already.
  // Reading them from the new request would create them only for the search.
  const { headers } = request;
  for (const name of headersNamed(OTHER_PATHS, headers)) outgoing.headers.delete(name);
  // An origin answers this header with `100 Continue`, which workerd takes for the response.
  if (headers.has("expect")) outgoing.headers.delete("expect");
  return outgoing;
}

/**
 * Returns the request in a form that the runtime sends with the method that rules have matched. The runtime
 * sends each request with `Upgrade: websocket` as GET, whatever its method is. A handshake is a GET
 * (RFC 6455, section 4.1), so any other request loses the header. It also loses lists that contain `websocket`,
 * which today's runtime sends without a change of the method. Other protocols never change the method.
 *
 * @returns the given request if it keeps its method, or else a copy, which has taken over the body
 */
export function withItsMethod(request: Request): Request {
  if (request.method === "GET" || !/websocket/i.test(request.headers.get("upgrade") ?? "")) {
    return request;
  }
  const copy = copyRequest(request);
  copy.headers.delete("upgrade");
  return copy;
}

function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0)$/.test(hostname);
}

/** Returns a URL's path and query unchanged. Parsing and serializing them could change escapes. */
function afterHost(url: string): string {
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return path === -1 ? "/" : url.slice(path);
}

/**
 * Asks for gzip at most, because `DecompressionStream` decodes no other encoding that servers use.
 * Otherwise a client could choose an encoding that no function can read.
 */
function acceptGzip(request: Request): Request {
  const accepted = request.headers.get("accept-encoding");
  if (accepted !== null) {
    const gzip = accepted.split(",").filter((each) => /^\s*gzip\b/i.test(each));
    request.headers.set("accept-encoding", gzip.join(",") || "identity");
  }
  return request;
}
