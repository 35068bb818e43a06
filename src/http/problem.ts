/** The members of a problem+json object (RFC 9457). */
export interface Problem {
  /** The URI of a type that is registered with IANA, or "about:blank" for a plain status. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The policies that denied the request (draft-ietf-httpapi-ratelimit-headers-11, 6.1). */
  readonly "violated-policies"?: readonly string[];
}

const REGISTRY = "https://iana.org/assignments/http-problem-types";

/** The client has used up its quota (draft-ietf-httpapi-ratelimit-headers-11, 6.1). */
export const QUOTA_EXCEEDED = {
  type: `${REGISTRY}#quota-exceeded`,
  title: "Request cannot be satisfied as assigned quota has been exceeded",
};

/** The server cannot handle the request now (draft-ietf-httpapi-ratelimit-headers-11, 6.2). */
export const REDUCED_CAPACITY = {
  type: `${REGISTRY}#temporary-reduced-capacity`,
  title: "Request cannot be satisfied due to temporary server capacity constraints",
};

// "about:blank" means that the problem has no meaning beyond its status (RFC 9457, section 4.2.1).

export const BAD_REQUEST = { type: "about:blank", title: "Bad Request" };
export const URI_TOO_LONG = { type: "about:blank", title: "URI Too Long" };
export const BAD_GATEWAY = { type: "about:blank", title: "Bad Gateway" };

/**
 * Creates a response with a problem as its body. Its type is application/problem+json, unless
 * `headers` has another Content-Type. No cache may store the response, as RFC 6585, section 4
 * requires for a 429.
 */
export function problemResponse(problem: Problem, headers: HeadersInit = {}): Response {
  const response = new Response(JSON.stringify(problem), { status: problem.status, headers });
  if (!new Headers(headers).has("Content-Type")) {
    response.headers.set("Content-Type", "application/problem+json");
  }
  response.headers.set("Cache-Control", "no-store");
  return response;
}
