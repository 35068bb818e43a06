import type { Config } from "../config/schema.ts";
import type { Quota } from "../limiter/decision.ts";

/** The style of the header fields that show quotas to a client. */
export type FieldStyle = Config["headers"];

/**
 * Adds quotas to the header fields of a response.
 *
 * RateLimit and RateLimit-Policy are lists. Weir adds its items after the origin's items, because
 * an intermediary must not change the origin's items. The X-RateLimit-* fields cannot be lists, so
 * Weir adds them only if the origin sends none of them.
 */
export function appendQuotaFields(
  headers: Headers,
  quotas: readonly Quota[],
  style: FieldStyle,
): void {
  if (quotas.length === 0 || style === "none") return;
  if (style !== "legacy") {
    headers.append("RateLimit-Policy", quotas.map(policyItem).join(", "));
    headers.append("RateLimit", quotas.map(limitItem).join(", "));
  }
  if (style !== "draft-11") appendLegacyFields(headers, quotas);
}

// In draft-ietf-httpapi-ratelimit-headers-11, both fields are lists of Strings (RFC 9651) with
// Integer parameters. Times are in whole seconds. A policy's name consists of a-z, 0-9, -, _ and /,
// so it needs no escaping.

function policyItem({ policy, limit, windowMs }: Quota): string {
  return `"${policy}";q=${limit};w=${windowMs / 1000}`;
}

function limitItem({ policy, remaining, resetMs }: Quota): string {
  return `"${policy}";r=${remaining};t=${toSeconds(resetMs)}`;
}

const LEGACY_FIELDS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/**
 * Adds X-RateLimit-* for the policy with the least quota left. X-RateLimit-Reset is a time in Unix
 * seconds.
 */
function appendLegacyFields(headers: Headers, quotas: readonly Quota[]): void {
  // The three fields describe one quota. If the origin has sent one of them, Weir adds none,
  // because the fields would then describe two quotas.
  if (LEGACY_FIELDS.some((name) => headers.has(name))) return;
  const [tightest] = quotas.toSorted(
    (a, b) => a.remaining - b.remaining || b.resetAt - a.resetAt,
  ) as [Quota];
  headers.set("X-RateLimit-Limit", String(tightest.limit));
  headers.set("X-RateLimit-Remaining", String(tightest.remaining));
  headers.set("X-RateLimit-Reset", String(toSeconds(tightest.resetAt)));
}

/**
 * Converts milliseconds to whole seconds, rounded up, so that the window has ended after this time.
 */
export function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
