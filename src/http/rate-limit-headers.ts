import type { Config } from "../config/schema.ts";
import type { Quota } from "../limiter/decision.ts";

/** The style of the header fields that show quotas to a client. */
export type FieldStyle = Config["headers"];

const DRAFT_FIELDS = ["RateLimit-Policy", "RateLimit"] as const;
const LEGACY_FIELDS = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"] as const;

/** The names of all fields that show quotas. */
export const QUOTA_FIELDS = [...DRAFT_FIELDS, ...LEGACY_FIELDS] as const;

const NO_FIELDS: readonly string[] = [];

/**
 * Adds quotas to the header fields of a response, and returns the names of the added fields.
 *
 * RateLimit and RateLimit-Policy are lists. Weir adds its items after the origin's items, because
 * an intermediary must not change the origin's items. The X-RateLimit-* fields cannot be lists, so
 * Weir adds them only if the origin sends none of them.
 */
export function appendQuotaFields(
  headers: Headers,
  quotas: readonly Quota[],
  style: FieldStyle,
): readonly string[] {
  if (quotas.length === 0 || style === "none") return NO_FIELDS;
  if (style === "draft-11") {
    appendDraftFields(headers, quotas, limitItem);
    return DRAFT_FIELDS;
  }
  const [tightest] = quotas.toSorted(
    (a, b) => a.remaining - b.remaining || b.resetAt - a.resetAt,
  ) as [Quota];
  if (style === "both") {
    appendDraftFields(headers, quotas, (quota) =>
      quota === tightest ? limitItem(quota) + olderParameters(quota) : limitItem(quota),
    );
  }
  // The three fields describe one quota. If the origin has sent one of them, Weir adds none,
  // because the fields would then describe two quotas.
  if (LEGACY_FIELDS.some((name) => headers.has(name))) {
    return style === "both" ? DRAFT_FIELDS : NO_FIELDS;
  }
  appendLegacyFields(headers, tightest);
  return style === "both" ? QUOTA_FIELDS : LEGACY_FIELDS;
}

function appendDraftFields(
  headers: Headers,
  quotas: readonly Quota[],
  toLimitItem: (quota: Quota) => string,
): void {
  headers.append("RateLimit-Policy", quotas.map(policyItem).join(", "));
  headers.append("RateLimit", quotas.map(toLimitItem).join(", "));
}

// In draft-ietf-httpapi-ratelimit-headers-11, both fields are lists of Strings (RFC 9651) with
// Integer parameters. Times are in whole seconds. A policy's name consists of a-z, 0-9, -, _ and /,
// so it needs no escaping.

function policyItem({ policy, limit, windowMs }: Quota): string {
  return `"${policy}";q=${limit};w=${windowMs / 1000}`;
}

/** Returns a quota in the notation of RateLimit. */
export function limitItem({ policy, remaining, resetMs }: Quota): string {
  return `"${policy}";r=${remaining};t=${toSeconds(resetMs)}`;
}

/**
 * Returns the parameters from which clients of the drafts 6 and 7 can read a quota. These clients
 * look in RateLimit first, and search its text for `limit=`, `remaining=` and `reset=`. Without
 * these parameters, they would read no numbers, although the response has X-RateLimit-* too.
 *
 * The names have a prefix, because the draft recommends a prefix for parameters that it does not
 * define. Clients of the draft ignore such parameters.
 */
function olderParameters({ limit, remaining, resetMs }: Quota): string {
  return `;weir-limit=${limit};weir-remaining=${remaining};weir-reset=${toSeconds(resetMs)}`;
}

/** Adds X-RateLimit-* for a quota. X-RateLimit-Reset is a time in Unix seconds. */
function appendLegacyFields(headers: Headers, { limit, remaining, resetAt }: Quota): void {
  headers.set("X-RateLimit-Limit", String(limit));
  headers.set("X-RateLimit-Remaining", String(remaining));
  headers.set("X-RateLimit-Reset", String(toSeconds(resetAt)));
}

/**
 * Converts milliseconds to whole seconds, rounded up, so that the window has ended after this time.
 */
export function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
