import type { Fault } from "../config/faults.ts";
import type { DenialResponse } from "../config/response.ts";
import { formatPer } from "../config/window.ts";
import type { Misfit } from "../limiter/counters.ts";
import { isViolated, type Limited, type Quota } from "../limiter/decision.ts";
import {
  allowOrigin,
  appendQuotaHeaders,
  type HeaderStyle,
  toSeconds,
} from "./response-headers.ts";

/** The members of a problem+json object (RFC 9457). */
interface Problem {
  /** The URI of a type that is registered with IANA, or "about:blank" for a plain status. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The policies that denied the request (draft-ietf-httpapi-ratelimit-headers-11, 6.1). */
  readonly "violated-policies"?: readonly string[];
}

const REGISTRY = "https://iana.org/assignments/http-problem-types";

/**
 * Creates a response with a problem as its body. Its type is application/problem+json, unless `headers` has another
 * Content-Type. No cache may store the response, as RFC 6585, section 4 requires for a 429.
 */
export function problemResponse(problem: Problem, headers: HeadersInit = {}): Response {
  const text = JSON.stringify(problem);
  const response = responseWith(problem.status, text, "application/problem+json", headers);
  response.headers.set("Cache-Control", "no-store");
  return response;
}

function responseWith(status: number, body: string, type: string, headers: HeadersInit): Response {
  const response = new Response(body, { status, headers });
  if (!new Headers(headers).has("content-type")) response.headers.set("Content-Type", type);
  return response;
}

/**
 * Returns the response with status 503 to every request under `wrangler dev` while the configuration has faults. Its
 * body lists the faults, so that a developer need not look at the terminal. `faultsOf` has removed secrets from the
 * faults.
 */
export function faultyConfigResponse(faults: readonly Fault[]): Response {
  const problem = {
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail:
      "Weir's configuration has faults. Correct the file; wrangler dev then loads it, without a restart.",
    faults: faults.map(({ path, code, message }) => ({ path, code, message })),
  };
  // Without CORS headers, pages of other origins cannot read the faults.
  return problemResponse(problem);
}

/**
 * Returns the time until a retry, in milliseconds; undefined if no retry can pass. Each call adds a new random part of
 * up to `retryJitterMs`.
 */
export function retryMsOf({ retryAfterMs, deniedBy }: Limited): number | undefined {
  if (retryAfterMs === undefined) return undefined;
  return retryAfterMs + Math.random() * deniedBy.appliedRule.rule.retryJitterMs;
}

/** 429, unless the denying rule replaces the status and the body. */
export function limitedResponse(
  request: Request,
  limited: Limited,
  style: HeaderStyle,
  retryMs = retryMsOf(limited),
): Response {
  const { quotas, deniedBy } = limited;
  const violated = quotas.filter(isViolated);
  const misfits = retryMs === undefined ? misfitsOf(limited) : [];
  const policies = [...violated, ...misfits.map(({ window }) => window)];
  const { rule } = deniedBy.appliedRule;
  // If the rule has a function, this is the response after the function has failed.
  const fixed: DenialResponse = rule.response && !("custom" in rule.response) ? rule.response : {};
  const { status = 429, body, headers = {} } = fixed;
  const response =
    body === undefined
      ? problemResponse(
          {
            // draft-ietf-httpapi-ratelimit-headers-11, section 6.1.
            type: `${REGISTRY}#quota-exceeded`,
            title: "Request cannot be satisfied as assigned quota has been exceeded",
            status,
            detail:
              retryMs === undefined
                ? `${misfits.map(describeMisfit).join("; ")}.`
                : `${violated.map(describe).join("; ")}. Try again in ${toSeconds(retryMs)} s.`,
            "violated-policies": [...new Set(policies.map(({ policy }) => policy))],
          },
          headers,
        )
      : customResponse(status, body, headers);
  setDenialHeaders(request, response.headers, quotas, retryMs, style);
  return withoutBodyForHead(request, response);
}

/**
 * Sets the headers of every denial, from Weir or from a function.
 *
 * @param retryMs the time of the retry, which all policies that have denied the request show; undefined if no retry can
 * pass
 */
export function setDenialHeaders(
  request: Request,
  headers: Headers,
  quotas: readonly Quota[],
  retryMs: number | undefined,
  style: HeaderStyle,
): void {
  headers.set("Cache-Control", "no-store");
  let shown = quotas;
  if (retryMs !== undefined) {
    headers.set("Retry-After", String(toSeconds(retryMs)));
    shown = quotas.map((quota) => (quota.violated ? { ...quota, retryAfterMs: retryMs } : quota));
  }
  appendQuotaHeaders(headers, shown, style);
  allowOrigin(request, headers);
}

/** Returns the policies that can never admit a denied request. */
function misfitsOf({ verdicts }: Limited): readonly Misfit[] {
  return verdicts.flatMap(({ appliedRule, misfits }) =>
    appliedRule.rule.mode === "enforce" ? (misfits ?? []) : [],
  );
}

function describeMisfit({ window, cost, maxCost }: Misfit): string {
  const { policy, limit, concurrent } = window;
  if (concurrent) return `"${policy}" allows no open requests`;
  const quota = `quota "${policy}" of ${limit} ${formatPer(window)}`;
  return maxCost === 0
    ? `The ${quota} admits no request`
    : `The request does not fit: it costs ${cost}, and the ${quota} admits at most ${maxCost} at once`;
}

function describe({
  policy,
  limit,
  windowMs,
  calendar,
  concurrent,
  sliding,
  remaining,
}: Quota): string {
  if (concurrent) return `"${policy}" allows ${limit} open at once, and all are taken`;
  const state = remaining === 0 ? "is used up" : `has only ${remaining} left`;
  const per = calendar ? `per ${calendar}` : formatPer({ windowMs, sliding });
  return `The quota "${policy}" of ${limit} ${per} ${state}`;
}

function customResponse(
  status: number,
  body: NonNullable<DenialResponse["body"]>,
  headers: Record<string, string>,
): Response {
  return typeof body === "string"
    ? responseWith(status, body, "text/plain; charset=utf-8", headers)
    : responseWith(status, JSON.stringify(body), "application/json", headers);
}

/**
 * The shortest and the longest Retry-After during an outage, in seconds. The end of an outage is unknown. A random time
 * spreads the clients, which would otherwise all return when the store is called again for the first time.
 */
const OUTAGE_RETRY_SECONDS = [3, 10] as const;

function outageRetrySeconds(): number {
  const [shortest, longest] = OUTAGE_RETRY_SECONDS;
  return shortest + Math.floor(Math.random() * (longest - shortest + 1));
}

/** 503: the request is undecided, and a matching rule lets no undecided request pass. */
export function undecidedResponse(request: Request): Response {
  const response = problemResponse({
    // draft-ietf-httpapi-ratelimit-headers-11, section 6.2.
    type: `${REGISTRY}#temporary-reduced-capacity`,
    title: "Request cannot be satisfied due to temporary server capacity constraints",
    status: 503,
    detail: "The rate limiter could not decide about this request. Try again shortly.",
  });
  response.headers.set("Retry-After", String(outageRetrySeconds()));
  return finish(request, response);
}

/** 400: Weir cannot match rules without a valid host and path, so the request is not forwarded. */
export function badRequestResponse(request: Request): Response {
  const detail = "The request does not say which host and path it is for.";
  return plainProblem(request, 400, "Bad Request", detail);
}

/** 414: matching rules against the path would take too much CPU time, so the request is not forwarded. */
export function pathTooLongResponse(request: Request): Response {
  const detail = "The path is too long for a path with escapes or other special characters.";
  return plainProblem(request, 414, "URI Too Long", detail);
}

/** 502: the request was within its limits, but Weir could not forward it to the origin. */
export function badGatewayResponse(request: Request, detail: string): Response {
  return plainProblem(request, 502, "Bad Gateway", detail);
}

/** Creates a response whose problem has no meaning beyond its status (RFC 9457, section 4.2.1). */
export function plainProblem(
  request: Request,
  status: number,
  title: string,
  detail: string,
): Response {
  return finish(request, problemResponse({ type: "about:blank", title, status, detail }));
}

function finish(request: Request, response: Response): Response {
  allowOrigin(request, response.headers);
  return withoutBodyForHead(request, response);
}

function withoutBodyForHead(request: Request, response: Response): Response {
  return request.method === "HEAD" ? new Response(null, response) : response;
}
