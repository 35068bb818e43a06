import { hostLookup } from "../config/address.ts";
import type { OriginBinding, ResolvedBindings } from "../config/bindings.ts";
import { isViolated, type Quota } from "../limiter/decision.ts";
import { hostOf } from "../request/canonical-request.ts";
import { headersNamed, namePattern } from "../request/headers.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { withClientsUrls } from "./own-urls.ts";
import { limitItem } from "./response-headers.ts";
import { badGatewayResponse } from "./responses.ts";

const OVER = "Weir-Over";
const REMAINING = "Weir-Remaining";

const FORGEABLE = namePattern(OVER.toLowerCase(), REMAINING.toLowerCase());

/**
 * The requests that `withOriginHeaders` has created. An app may apply several configurations or rules, one after the
 * other. The later ones add to the headers of the earlier ones. In all other requests, such headers come from
 * clients, so they are forged.
 */
const created = new WeakSet<Request>();

/**
 * Returns the request with the headers that tell the origin about quotas, and without such headers from the client.
 * If a header changes, returns a new request, which has taken over the body.
 *
 * @param quotas the quotas of an admitted request; empty if the request is undecided
 */
export function withOriginHeaders(
  request: Request,
  appliedRules: readonly AppliedRule[],
  quotas: readonly Quota[],
): Request {
  const showsRemaining = ({ policy }: Quota) =>
    appliedRules.some(
      ({ rule, windows }) => rule.tellOrigin && windows.some((window) => window.policy === policy),
    );
  const forged = created.has(request) ? [] : headersNamed(FORGEABLE, request.headers);
  const over = quotas.filter(isViolated).map(({ policy }) => policy);
  const remaining = quotas.filter(showsRemaining).map(limitItem);
  if (forged.length + over.length + remaining.length === 0) return request;
  const copy = copyRequest(request);
  for (const name of forged) copy.headers.delete(name);
  if (over.length > 0) copy.headers.append(OVER, over.join(", "));
  if (remaining.length > 0) copy.headers.append(REMAINING, remaining.join(", "));
  created.add(copy);
  return copy;
}

/** Returns a copy that takes over the body. */
export function copyRequest(request: Request): Request {
  try {
    return new Request(request);
  } catch {
    // The app has already read the body, so the copy has none. Hono keeps a body that it has read.
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

/** The use that Weir makes of a response. */
export interface ResponseUse {
  /**
   * `end`: Weir waits for the end of the body. `raw`: a program reads the body with the server's encoding. `decoded`:
   * a program reads the body, which the runtime decodes.
   */
  readonly body: "end" | "raw" | "decoded";
  /** Ends the request to a server when the client has hung up. */
  readonly signal?: AbortSignal;
}

/** The origin's response, or a 502 of Weir (`isOwn`) because the origin has sent none. */
export interface Forwarded {
  readonly response: Response;
  readonly isOwn: boolean;
}

/**
 * Sends a request to the origin. Never rejects.
 *
 * @param use undefined if the response passes unread. The responses of bound Workers are always decoded
 */
export type Forward = (request: Request, use?: ResponseUse) => Promise<Forwarded>;

/** Sends a request to an origin. @throws {NoOrigin} if there is none */
type Sender = (request: Request, use?: ResponseUse) => Promise<Response>;

/** The Worker has no origin. The message is for the client. */
class NoOrigin extends Error {}

/**
 * Creates a function that forwards requests with the platform's `fetch`. Changes the URL, replaces headers that
 * servers may use instead of the URL, changes Accept-Encoding if a program reads the response, and turns URLs of the
 * origin in the response's headers back into the client's. Streams, WebSockets, compressed bodies, other redirects and
 * repeated headers pass unchanged.
 *
 * @param forwarded see `forwarded` of `ConfigInput`
 */
export function createForward(
  bindings: Pick<ResolvedBindings, "origin" | "origins">,
  forwarded: boolean,
): Forward {
  const send = senderByHost(bindings, forwarded);
  return async function forward(request, use) {
    try {
      return { response: await send(request, use), isOwn: false };
    } catch (error) {
      // The text of another error may contain addresses that clients must not see.
      const detail = error instanceof NoOrigin ? error.message : "The origin could not be reached.";
      return { response: badGatewayResponse(request, detail), isOwn: true };
    }
  };
}

/** Selects the origin by the canonical host, by which rules match requests too. */
function senderByHost(
  { origin, origins }: Pick<ResolvedBindings, "origin" | "origins">,
  forwarded: boolean,
): Sender {
  const byDefault = sender(origin, forwarded);
  if (origins.size === 0) return byDefault;
  const senderFor = hostLookup(
    new Map([...origins].map(([host, each]) => [host, sender(each, forwarded)] as const)),
  );
  return (request, use) => (senderFor(hostOf(request.url)) ?? byDefault)(request, use);
}

function sender(origin: OriginBinding, forwarded: boolean): Sender {
  switch (origin.kind) {
    case "pass-through":
      return passThrough;
    case "url":
      return toBase(origin.base, forwarded);
    case "binding":
      return (request, use) => origin.service.fetch(outgoing(request, request.url, "if-sent", use));
    case "misconfigured":
      return async () => {
        throw new NoOrigin("The origin is not configured.");
      };
  }
}

/** On a route, Cloudflare sends this fetch to the zone's origin instead of to this Worker again. */
async function passThrough(request: Request, use?: ResponseUse): Promise<Response> {
  if (isLoopback(new URL(request.url).hostname)) {
    // `wrangler dev` has no zone, so the request would return to this Worker again and again.
    throw new NoOrigin("A local Worker has no origin. Set ORIGIN_URL, or start with npm run dev.");
  }
  return await fetchFrom(request, request.url, "if-sent", use);
}

function toBase(base: string, forwarded: boolean): Sender {
  // Without a path in the base, the origin resolves dot segments itself, and gets the path that Weir matched. With a
  // path in the base, Weir resolves dot segments first, because they could leave this path.
  const hasPath = new URL(base).pathname !== "/";
  return async (request, use) => {
    const url = hasPath ? new URL(request.url).href : request.url;
    const told = forwarded ? "always" : "never";
    const response = await fetchFrom(request, base + afterHost(url), told, use);
    return forwarded ? withClientsUrls(response, base, request.url) : response;
  };
}

/**
 * When the origin gets the host and the scheme that the client used as headers. `always`: its URL has other ones, and
 * a Worker cannot set Host. `if-sent`: the request itself has them, so they only replace headers of the client, or of
 * Cloudflare.
 */
type Told = "always" | "if-sent" | "never";

function fetchFrom(
  request: Request,
  url: string,
  told: Told,
  use?: ResponseUse,
): Promise<Response> {
  const sent = outgoing(request, url, told, use);
  if (!use || use.body === "decoded") return fetch(sent);
  // workerd does not abort a fetch by the signal of the request that it handles, but by a signal that follows it.
  const signal = use.signal && { signal: AbortSignal.any([use.signal]) };
  return fetch(sent, { encodeResponseBody: "manual", ...signal });
}

/**
 * Headers from which servers read another URL than the one that the client used. Clients do not need them.
 *
 * IIS, Symfony and others use the first two instead of the URL's path. Weir has not matched rules against these paths.
 * The others name the scheme, host, port or first segments that the client used before a proxy. They would contradict
 * the ones that Weir sets, and an origin may trust all of them as soon as it trusts one.
 */
const OTHER_URLS = namePattern(
  "x-original-url",
  "x-rewrite-url",
  "forwarded",
  "x-forwarded-host",
  "x-forwarded-proto",
  "x-forwarded-protocol",
  "x-forwarded-scheme",
  "x-forwarded-ssl",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-server",
  "x-url-scheme",
  "front-end-https",
);

/**
 * Returns the request with a URL that Weir has parsed. `fetch(request)` would send the client's own spelling, with
 * dot segments and backslashes, from which an origin may read a different path.
 */
function outgoing(
  request: Request,
  url: string,
  told: Told,
  use: ResponseUse | undefined,
): Request {
  const changed = new Request(url, request);
  // The names are read from the original request, whose headers workerd has already created. For the new request,
  // workerd would have to create headers only for this search.
  const { headers } = request;
  for (const name of headersNamed(OTHER_URLS, headers)) changed.headers.delete(name);
  // In some modes, a request passes although its URL is not valid.
  const client = told === "never" ? null : URL.parse(request.url);
  const own = client && { host: client.host, proto: client.protocol.slice(0, -1) };
  for (const [name, value] of Object.entries(own ?? {})) {
    const header = `x-forwarded-${name}`;
    if (told === "always" || headers.has(header)) changed.headers.set(header, value);
  }
  // An origin answers this header with `100 Continue`, and workerd takes this for the response.
  if (headers.has("expect")) changed.headers.delete("expect");
  if (use && use.body !== "end") acceptGzip(changed.headers);
  return changed;
}

/**
 * Returns the request in a form that the runtime sends with the matched method. The runtime sends each request with
 * `Upgrade: websocket` as GET. A handshake is a GET (RFC 6455, section 4.1), so a request with any other method loses
 * the header. It also loses an Upgrade header that lists `websocket` among others, although today's runtime then
 * keeps the method. Other protocols never change the method.
 *
 * @returns the given request if it keeps its method; otherwise a copy, which has taken over the body
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

/** Cuts the URL's text, because parsing and serializing a path and a query could change escapes. */
function afterHost(url: string): string {
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return path === -1 ? "/" : url.slice(path);
}

/**
 * Asks for gzip at most. A client could otherwise choose an encoding that `DecompressionStream` cannot decode, so
 * that no function could read the response.
 */
function acceptGzip(headers: Headers): void {
  const accepted = headers.get("accept-encoding");
  if (accepted === null) return;
  const gzip = accepted.split(",").filter((each) => /^\s*gzip\b/i.test(each));
  headers.set("accept-encoding", gzip.join(",") || "identity");
}
