import { hasQuota, quotaAfterMs } from "../engine/fixed-window.ts";
import type { GroupAnswer } from "../stores/store.ts";
import type { RuleCounter } from "./counters.ts";
import type { Quota } from "./decision.ts";

/** Returns the quotas of a group's counters. A denial from a cache may lack some of the tallies. */
export function quotasOf(
  ruleCounters: readonly RuleCounter[],
  { admitted, tallies }: GroupAnswer,
  now: number,
): Quota[] {
  return ruleCounters.flatMap(({ window, capacity, counter }, index): Quota | never[] => {
    const { policy, limit, windowMs } = window;
    const tally = tallies[index];
    if (!tally) return [];
    const { count, resetMs, banMs } = tally;
    return {
      policy,
      limit,
      windowMs,
      remaining: banMs > 0 ? 0 : Math.max(0, capacity - count),
      resetMs,
      resetAt: now + resetMs,
      violated: !admitted && (banMs > 0 || !hasQuota(counter, count)),
      retryAfterMs: Math.max(banMs, quotaAfterMs(counter, tally, capacity)),
      reservationDelayMs:
        count > capacity ? quotaAfterMs({ ...counter, cost: 0 }, tally, capacity) : 0,
    };
  });
}

export function isViolated({ violated }: Quota): boolean {
  return violated;
}
