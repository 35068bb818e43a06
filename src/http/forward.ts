import type { OriginBinding } from "../config/bindings.ts";
import { badGatewayResponse } from "./responses.ts";

/** Sends a request on and gives back what comes. Never rejects. */
export type Forward = (request: Request) => Promise<Response>;

/**
 * Forwards by the platform's own `fetch`, with all that the request is but its URL and the fields that
 * name another one, so that streams, WebSockets, compressed bodies, redirects and repeated header
 * fields come through as they are.
 */
export function createForward(origin: OriginBinding): Forward {
  const send = sender(origin);
  return async function forward(request) {
    try {
      return await send(request);
    } catch {
      // Not the error's text: it may name addresses that a client should not see.
      return badGatewayResponse(request, "The origin could not be reached.");
    }
  };
}

function sender(origin: OriginBinding): Forward {
  switch (origin.kind) {
    case "pass-through":
      return passThrough;
    case "url":
      return toBase(origin.base);
    case "binding":
      return (request) => origin.service.fetch(asRead(request, request.url));
    case "misconfigured":
      return async (request) => badGatewayResponse(request, "The origin is not configured.");
  }
}

/** On a route, Cloudflare takes this fetch to the zone's origin, not to this Worker again. */
async function passThrough(request: Request): Promise<Response> {
  if (isLoopback(new URL(request.url).hostname)) {
    // Under wrangler dev there is no zone: the request would come back here, again and again.
    const detail = "There is no origin here. Set ORIGIN_URL, or start with npm run dev.";
    return badGatewayResponse(request, detail);
  }
  return await fetch(asRead(request, request.url));
}

function toBase(base: string): Forward {
  // Behind a host alone, dot segments resolve to the path that rules were asked about. Behind a path
  // they would leave it, so there they are resolved before.
  const hasPath = new URL(base).pathname !== "/";
  return (request) => {
    const url = hasPath ? new URL(request.url).href : request.url;
    return fetch(asRead(request, base + afterHost(url)));
  };
}

/**
 * By these fields IIS, Symfony and others choose another path than the URL's, which no rule has been
 * asked about. No client has a use for them. Servers that hand fields on as variables, as CGI does, take
 * `_` for `-`.
 */
const PATH_OVERRIDES = [
  "x-original-url",
  "x_original_url",
  "x-original_url",
  "x_original-url",
  "x-rewrite-url",
  "x_rewrite_url",
  "x-rewrite_url",
  "x_rewrite-url",
];

/**
 * The request as Weir read it, for a URL. Sent on untouched, it would go out as it came in, with its
 * dot segments and backslashes: a path that no rule has been asked about.
 */
function asRead(request: Request, url: string): Request {
  const read = new Request(url, request);
  // Looked for in the fields that have been read already: those of the new request would be made for it.
  const { headers } = request;
  for (const name of PATH_OVERRIDES) if (headers.has(name)) read.headers.delete(name);
  return read;
}

function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0)$/.test(hostname);
}

/** Path and query, not taken apart and put together again. */
function afterHost(url: string): string {
  const path = url.indexOf("/", url.indexOf("//") + 2);
  return path === -1 ? "/" : url.slice(path);
}
