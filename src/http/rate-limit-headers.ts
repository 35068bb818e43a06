import type { Config } from "../config/schema.ts";
import type { Quota } from "../limiter/decision.ts";

/** Which fields tell a client about its quotas. */
export type FieldStyle = Config["headers"];

/**
 * Adds the quotas to a response: as list items behind the origin's own, which an intermediary
 * must leave alone; X-RateLimit-*, which cannot be lists, only where the origin has none of them.
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

// draft-ietf-httpapi-ratelimit-headers-11: lists of Strings (RFC 9651) with Integer parameters in
// whole seconds. A policy's name is made of a-z, 0-9, -, _ and /, so nothing in it needs escaping.

function policyItem({ policy, limit, windowMs }: Quota): string {
  return `"${policy}";q=${limit};w=${windowMs / 1000}`;
}

function limitItem({ policy, remaining, resetMs }: Quota): string {
  return `"${policy}";r=${remaining};t=${toSeconds(resetMs)}`;
}

const LEGACY_FIELDS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

/** The quota that will run out first, as X-RateLimit-*; Reset in seconds since the Unix epoch. */
function appendLegacyFields(headers: Headers, quotas: readonly Quota[]): void {
  // The three belong together: beside an origin's own, the others would be about another quota.
  if (LEGACY_FIELDS.some((name) => headers.has(name))) return;
  const [tightest] = quotas.toSorted(
    (a, b) => a.remaining - b.remaining || b.resetAt - a.resetAt,
  ) as [Quota];
  headers.set("X-RateLimit-Limit", String(tightest.limit));
  headers.set("X-RateLimit-Remaining", String(tightest.remaining));
  headers.set("X-RateLimit-Reset", String(toSeconds(tightest.resetAt)));
}

/** Whole seconds, rounded up: who waits that long finds the window ended. */
export function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
