import type { Config } from "../config/schema.ts";
import { evenQuota } from "../engine/sub-windows.ts";
import type { Policy, Quota } from "../limiter/decision.ts";

export type HeaderStyle = Config["headers"];

const DRAFT_HEADERS = ["RateLimit-Policy", "RateLimit"] as const;
const LEGACY_HEADERS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] as const;

const QUOTA_HEADERS = [...DRAFT_HEADERS, ...LEGACY_HEADERS] as const;

const NO_HEADERS: readonly string[] = [];

/** The separate headers of the drafts before 7. */
const OLDER_DRAFT_HEADERS = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];

/**
 * Adds quotas to the headers of a response, and returns the names of the added headers.
 *
 * RateLimit and RateLimit-Policy are lists. Weir adds its items after the origin's items, because an intermediary
 * must not change the origin's items. The headers of older drafts and X-RateLimit-* have another form, to which nothing
 * can be added. If the origin sends such a header, Weir adds none of the same kind, because only the origin's headers
 * show the quota that its own 429 is about.
 *
 * @param policies the policies of the quotas, and of quotas that are not known yet
 */
export function appendQuotaHeaders(
  headers: Headers,
  quotas: readonly Quota[],
  style: HeaderStyle,
  policies: readonly Policy[] = quotas,
): readonly string[] {
  if (policies.length === 0 || style === "none") return NO_HEADERS;
  const isDraft = style !== "legacy" && takesItems(headers);
  if (isDraft) {
    appendItems(headers, "RateLimit-Policy", policies.map(policyItem));
    if (quotas.length > 0) appendItems(headers, "RateLimit", quotas.map(limitItem));
  }
  if (
    quotas.length === 0 ||
    style === "draft-11" ||
    LEGACY_HEADERS.some((name) => headers.has(name))
  ) {
    return isDraft ? DRAFT_HEADERS : NO_HEADERS;
  }
  // After a denial, a client must not return for a quota that has not denied it.
  const [tightest] = quotas.toSorted(
    (a, b) =>
      Number(b.violated) - Number(a.violated) || a.remaining - b.remaining || b.resetAt - a.resetAt,
  ) as [Quota];
  appendLegacyHeaders(headers, tightest);
  return isDraft ? QUOTA_HEADERS : LEGACY_HEADERS;
}

// The grammar of a list of Strings or Tokens with parameters (RFC 9651). At each character, only one alternative fits,
// so that a match takes linear time.
const STRING = String.raw`"(?:[ !#-[\]-~]|\\["\\])*"`;
const TOKEN = "[A-Za-z*][\\w:/!#$%&'*+.^`|~-]*";
const BYTES = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
const OTHER_VALUE = String.raw`-?\d{1,12}\.\d{1,3}|@?-?\d{1,15}|:${BYTES}:|\?[01]|%"(?:[ !#$&-~]|%[2-7][\da-f])*"`;
const ITEM = `(?:${STRING}|${TOKEN})(?:; *[a-z*][a-z0-9_.*-]*(?:=(?:${STRING}|${TOKEN}|${OTHER_VALUE}))?)*`;
const ITEMS = new RegExp(`^(?:${ITEM}(?:[ \\t]*,[ \\t]*${ITEM})*)?$`);

/** Whether items of draft 11 can be added: the origin's own headers are such lists too. */
function takesItems(headers: Headers): boolean {
  if (OLDER_DRAFT_HEADERS.some((name) => headers.has(name))) return false;
  return DRAFT_HEADERS.every((name) => ITEMS.test(headers.get(name) ?? ""));
}

function appendItems(headers: Headers, name: string, items: readonly string[]): void {
  const own = headers.get(name);
  headers.set(name, (own ? [own, ...items] : items).join(", "));
}

// In draft-ietf-httpapi-ratelimit-headers-11, both headers are lists of Strings (RFC 9651) with Integer parameters.
// Times are in whole seconds. A policy's name consists of a-z, 0-9, -, _ and /, so it needs no escaping. A policy for
// open requests has no window, and the quota unit of section 3.1.2. `weir-even` of a sliding window is an Integer or a
// Decimal: the quota for each window up to which even senders are never denied.

function policyItem({ policy, limit, windowMs, concurrent, sliding }: Policy): string {
  const item = `"${policy}";q=${limit}`;
  if (concurrent) return `${item};qu="concurrent-requests"`;
  const even = sliding === undefined ? "" : `;weir-even=${evenQuota(limit, sliding)}`;
  return `${item};w=${windowMs / 1000}${even}`;
}

export function limitItem(quota: Quota): string {
  const { policy, remaining, concurrent } = quota;
  return `"${policy}";r=${remaining}${concurrent ? "" : `;t=${toSeconds(renewalMs(quota))}`}`;
}

/** X-RateLimit-Reset is a time in Unix seconds. */
function appendLegacyHeaders(headers: Headers, quota: Quota): void {
  const { limit, remaining, resetAt, resetMs } = quota;
  headers.set("X-RateLimit-Limit", String(limit));
  headers.set("X-RateLimit-Remaining", String(remaining));
  headers.set("X-RateLimit-Reset", String(toSeconds(resetAt + (renewalMs(quota) - resetMs))));
}

/**
 * Returns the milliseconds until a client should count on a quota again: until the window ends or, if the request
 * exceeds the quota, until a retry may pass. A ban, an operator's block and rollover have other ends than the window.
 */
function renewalMs({ violated, resetMs, retryAfterMs = resetMs }: Quota): number {
  return violated ? retryAfterMs : resetMs;
}

/**
 * The largest integer in a structured field (RFC 9651, section 3.3.1). Reservations of a very small limit can last
 * longer, and JavaScript would write their time as 3.1e+22.
 */
const MAX_SECONDS = 999_999_999_999_999;

/** Rounds up, so that the window has ended after this time. */
export function toSeconds(ms: number): number {
  return Math.min(MAX_SECONDS, Math.ceil(ms / 1000));
}

/**
 * Matches an `Origin` as browsers send it: the ASCII serialization of RFC 6454, or `null`. Weir copies no other value
 * into a response, because workerd logs a warning for header values outside ASCII.
 */
const ORIGIN = /^(null|[a-z][a-z0-9+.-]*:\/\/[!#-;=?-[\]-~]{1,255})$/i;

const ALLOW_ORIGIN = "Access-Control-Allow-Origin";
const ALLOW_CREDENTIALS = "Access-Control-Allow-Credentials";
const EXPOSE = "Access-Control-Expose-Headers";

/** The headers that a page on another origin needs to read from a denial. */
const EXPOSED = ["Retry-After", ...QUOTA_HEADERS];

/**
 * Lets a page on another origin read a response that Weir creates. Otherwise a browser reports a network error to the
 * page instead of a 429, and hides Retry-After.
 *
 * Any page may read such a response, but only without its visitor's cookies. With cookies, any site could see in the
 * quotas how a visitor has used this site. Only a function or an app knows which pages may send cookies, so its
 * decision stands: see {@link decidesAccess}.
 */
export function allowOrigin(request: Request, headers: Headers): void {
  const origin = request.headers.get("origin");
  if (!origin) return;
  if (!decidesAccess(headers)) {
    if (!/(?:^|,)\s*(?:\*|origin)\s*(?:,|$)/i.test(headers.get("Vary") ?? "")) {
      headers.append("Vary", "Origin");
    }
    if (ORIGIN.test(origin)) headers.set(ALLOW_ORIGIN, origin);
  }
  exposeHeaders(request, headers, EXPOSED);
}

/**
 * Whether a function or an app has decided which pages may read a response. Credentials without an origin are a
 * refusal: if Weir added an origin, any site could read the response.
 */
function decidesAccess(headers: Headers): boolean {
  return headers.has(ALLOW_ORIGIN) || headers.has(ALLOW_CREDENTIALS);
}

/** Prepares the headers of an app, because Hono will copy them over the headers of Weir's response. */
export function mergeAppHeaders(request: Request, response: Headers, app: Headers): void {
  // The app's Cache-Control must not replace the denial's.
  for (const name of response.keys()) if (!isAccessHeader(name)) app.delete(name);
  if (!decidesAccess(app)) return;
  response.delete(ALLOW_ORIGIN);
  exposeHeaders(request, app, EXPOSED);
}

/** Whether a header decides which pages may read a response, or for which pages it is valid. */
export function isAccessHeader(name: string): boolean {
  return /^(?:access-control-.*|vary)$/i.test(name);
}

/**
 * Lets a page on another origin read the given headers of a response that allows pages to read it.
 *
 * Adds no `Vary: Origin`, because the given headers are valid only for this response: a client must not use them from
 * a cache.
 */
function exposeHeaders(request: Request, headers: Headers, names: readonly string[]): void {
  if (names.length === 0 || !request.headers.has("origin")) return;
  if (!headers.has(ALLOW_ORIGIN)) return;
  const list = headers.get(EXPOSE)?.toLowerCase().split(",") ?? [];
  const exposed = list.map((name) => name.trim());
  // `*` exposes all headers, except to requests with credentials. Pages can send such requests only if the response
  // allows credentials.
  const exposesAll = exposed.includes("*");
  if (exposesAll && headers.get(ALLOW_CREDENTIALS) !== "true") return;
  const missing = names.filter((name) => !exposed.includes(name.toLowerCase()));
  if (missing.length > 0) headers.append(EXPOSE, missing.join(", "));
}

/**
 * Returns a copy of a response with the quota headers. Pages of other origins may read these headers if they may read
 * the response. Returns the same response if there is nothing to add, or if its headers cannot be changed.
 */
export function withQuotaHeaders(
  request: Request,
  response: Response,
  quotas: readonly Quota[],
  style: HeaderStyle,
  policies: readonly Policy[] = quotas,
): Response {
  if (policies.length === 0 || style === "none") return response;
  const copy = changeable(response);
  if (!copy) return response;
  exposeHeaders(request, copy.headers, appendQuotaHeaders(copy.headers, quotas, style, policies));
  return copy;
}

/**
 * Returns a copy of a response that says how long the request has waited for its turn, in `Server-Timing`. Returns the
 * same response if it has not waited, or if its headers cannot be changed.
 */
export function withServerTiming(response: Response, waitedMs: number | undefined): Response {
  const copy = waitedMs === undefined ? undefined : changeable(response);
  copy?.headers.append("Server-Timing", `weir-wait;dur=${waitedMs}`);
  return copy ?? response;
}

/** Returns a copy of a response whose headers can be changed; undefined if there can be no copy. */
export function changeable(response: Response): Response | undefined {
  // `new Response` throws for a status above 599 or below 200, which an origin may send, and for the status 0 of
  // `Response.error()`. With a WebSocket, the status may be below 200.
  const { status, webSocket } = response;
  if (status > 599 || (status < 200 && !webSocket)) return undefined;
  // The headers of a fetched response are immutable, but the headers of a copy can be changed.
  return new Response(response.body, response);
}
