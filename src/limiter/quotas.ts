import { type Counter, type Tally, windowEndingNear } from "../engine/counter.ts";
import { hasQuota, quotaAfterMs } from "../engine/fixed-window.ts";
import type { Answer } from "../stores/store.ts";
import type { RuleCounter } from "./counters.ts";
import type { Quota } from "./decision.ts";
import { isChargedByResponse } from "./rule-cost.ts";

/** Returns the quotas of a group's counters. A denial from a cache may lack some of the tallies. */
export function quotasOf(
  ruleCounters: readonly RuleCounter[],
  { admitted, tallies, now }: Pick<Answer, "admitted" | "tallies" | "now">,
): Quota[] {
  return ruleCounters.flatMap((ruleCounter, index): Quota | never[] => {
    const { window, capacity, counter } = ruleCounter;
    const { policy, limit, calendar } = window;
    const tally = tallies[index];
    if (!tally) return [];
    const { count, resetMs, banMs } = tally;
    // The store's clock may differ from `now`, and a window ends only at its own end.
    const { startsAt, endsAt } = windowEndingNear(now + resetMs, counter);
    const after = admitted ? count + checkedCost(ruleCounter) : count;
    return {
      policy,
      limit,
      windowMs: calendar ? endsAt - startsAt : window.windowMs,
      ...(calendar && { calendar: calendar.unit }),
      remaining: banMs > 0 ? 0 : Math.max(0, capacity - count),
      resetMs,
      resetAt: endsAt,
      violated: !admitted && exceeds(counter, tally),
      retryAfterMs: Math.max(banMs, quotaAfterMs(counter, tally, capacity, now)),
      // Without reservations, the count can exceed the capacity only after a settlement.
      reservationDelayMs:
        window.maxReserved > 0 && after > capacity
          ? quotaAfterMs({ ...counter, cost: 0 }, { ...tally, count: after }, capacity, now)
          : 0,
    };
  });
}

/**
 * Returns the cost that a program has only checked. A check says how long the reservation would take that
 * it does not make.
 */
function checkedCost({ rule, counter }: RuleCounter): number {
  return counter.checkOnly && !isChargedByResponse(rule) ? counter.cost : 0;
}

/** Whether a counter has denied its group: the client is banned, or no quota is left for the cost. */
export function exceeds(counter: Counter, { count, banMs }: Tally): boolean {
  return banMs > 0 || !hasQuota(counter, count);
}

export function isViolated({ violated }: Quota): boolean {
  return violated;
}
