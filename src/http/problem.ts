/** A problem type registered with IANA, or a plain status (RFC 9457's "about:blank"). */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly "violated-policies"?: readonly string[];
}

const REGISTRY = "https://iana.org/assignments/http-problem-types";

/** A client's quota is used up. draft-ietf-httpapi-ratelimit-headers-11, 6.1. */
export const QUOTA_EXCEEDED = {
  type: `${REGISTRY}#quota-exceeded`,
  title: "Request cannot be satisfied as assigned quota has been exceeded",
};

/** The server cannot take the request now. draft-ietf-httpapi-ratelimit-headers-11, 6.2. */
export const REDUCED_CAPACITY = {
  type: `${REGISTRY}#temporary-reduced-capacity`,
  title: "Request cannot be satisfied due to temporary server capacity constraints",
};

/** RFC 9457: nothing beyond what the status says, as in the next two. */
export const BAD_REQUEST = { type: "about:blank", title: "Bad Request" };

export const URI_TOO_LONG = { type: "about:blank", title: "URI Too Long" };

export const BAD_GATEWAY = { type: "about:blank", title: "Bad Gateway" };

/**
 * A response of Weir's own: problem+json, unless the header fields name another type, and never stored
 * (RFC 6585 demands it of a 429).
 */
export function problemResponse(problem: Problem, headers: HeadersInit = {}): Response {
  const response = new Response(JSON.stringify(problem), { status: problem.status, headers });
  if (!new Headers(headers).has("Content-Type")) {
    response.headers.set("Content-Type", "application/problem+json");
  }
  response.headers.set("Cache-Control", "no-store");
  return response;
}
