import { parseRateLimit } from "ratelimit-header-parser";
import { describe, expect, it } from "vitest";
import { appendQuotaHeaders, type HeaderStyle } from "../../../src/http/response-headers.ts";
import type { Quota } from "../../../src/limiter/decision.ts";

const NOW = Date.now();

function quota(policy: string, limit: number, remaining: number, resetMs: number): Quota {
  const times = { windowMs: 60_000, resetMs, resetAt: NOW + resetMs };
  const state = { violated: remaining === 0, retryAfterMs: 0, reservationDelayMs: 0 };
  return { policy, limit, remaining, ...times, ...state };
}

const QUOTAS = [
  quota("search/1m", 33, 20, 42_000),
  quota("search/1h", 2000, 3, 1_662_000),
  quota("site", 5000, 4999, 80_000_000),
];

function parsed(style: HeaderStyle, origins: Record<string, string> = {}) {
  const headers = new Headers(origins);
  appendQuotaHeaders(headers, QUOTAS, style);
  return parseRateLimit(headers);
}

/** The quota with the least left, in the form in which ratelimit-header-parser returns it. */
const TIGHTEST = { limit: 2000, used: 1997, remaining: 3, reset: expect.any(Date) };

describe("ratelimit-header-parser, a client of the drafts 6 and 7 and of X-RateLimit-*", () => {
  it("reads the quota with the least left, with headers: legacy", () => {
    const quota = parsed("legacy");
    expect(quota).toEqual(TIGHTEST);
    const resetInS = Math.abs(Number(quota?.reset) - NOW - 1_662_000) / 1000;
    expect(resetInS).toBeLessThan(30);
  });

  it.each(["draft-11", "both"] as const)("reads no number with headers: %s", (style) => {
    expect(parsed(style)).toMatchObject({ limit: Number.NaN, remaining: Number.NaN });
  });

  it("finds nothing with headers: none", () => {
    expect(parsed("none")).toBeUndefined();
  });

  it("reads the quota of an origin that sends draft 7 instead of the quota of Weir", () => {
    const origins = { RateLimit: "limit=7, remaining=5, reset=1" };
    expect(parsed("both", origins)).toMatchObject({ limit: 7, remaining: 5 });
  });
});
