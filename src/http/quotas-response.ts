import type { Quota } from "../config/custom.ts";
import type { OwnState } from "../limiter/clients.ts";
import {
  allowOrigin,
  appendQuotaHeaders,
  type HeaderStyle,
  toSeconds,
} from "./response-headers.ts";
import { problemResponse } from "./responses.ts";

/** The maximum number of quotas in header fields, because clients and proxies accept only short fields. */
const MAX_IN_HEADERS = 20;

/** Returns the response with a client's own quotas, for `quotaPath`. docs/responses.md describes its fields. */
export function quotasResponse(
  request: Request,
  states: readonly OwnState[],
  style: HeaderStyle,
): Response {
  const limits = states.flatMap(({ quotas, used }) =>
    quotas.map((quota, index) => limitOf(quota, used[index] as number)),
  );
  const response = Response.json({ limits });
  response.headers.set("Cache-Control", "no-store");
  const quotas = states.flatMap((each) => each.quotas);
  if (quotas.length <= MAX_IN_HEADERS) appendQuotaHeaders(response.headers, quotas, style);
  return finish(request, response);
}

function limitOf({ policy, limit, remaining, concurrent, ...quota }: Quota, used: number) {
  const state = { policy, limit, used, remaining };
  if (concurrent) return { ...state, concurrent };
  const { windowMs, resetMs, violated, retryAfterMs } = quota;
  return {
    ...state,
    window: toSeconds(windowMs),
    reset: toSeconds(resetMs),
    ...(violated && { retryAfter: toSeconds(retryAfterMs) }),
  };
}

/** 429: the client has read its quotas too often. */
export function tooManyReadsResponse(request: Request): Response {
  const problem = {
    type: "about:blank",
    title: "Too Many Requests",
    status: 429,
    detail: "The quotas were read too often. Try again in a minute.",
  };
  return finish(request, problemResponse(problem, { "Retry-After": "60" }));
}

function finish(request: Request, response: Response): Response {
  allowOrigin(request, response.headers);
  return request.method === "HEAD" ? new Response(null, response) : response;
}
