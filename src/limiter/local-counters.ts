import type { AppliedRule } from "../request/applied-rule.ts";
import { type DecideOptions, type RuleCounter, ruleCountersOf } from "./counters.ts";

/** Returns the counters of a request in this isolate. All shards of a rule share one counter. */
export function localCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options?: DecideOptions,
): RuleCounter[] {
  const unsharded = { ...appliedRule, rule: { ...appliedRule.rule, shards: 1 } };
  return ruleCountersOf(unsharded, prefix, options).map((ruleCounter) => ({
    ...localCounterOf(ruleCounter),
    appliedRule,
  }));
}

/**
 * Returns the counter with this isolate's share of the limit, without reservations. No quota rolls over,
 * because the share is also the capacity. But a counter that rolls over stays one, so that it is not the
 * counter of a tier without rollover.
 */
function localCounterOf({ appliedRule, counter, window, rule }: RuleCounter): RuleCounter {
  const { key, identity, windowMs, offsetMs, calendar, cost } = counter;
  const { rollsOver, checkOnly, banMs, escalation, neverBans } = counter;
  // The share is at least 1 (unless the limit is 0). If the request's cost fits into the whole
  // limit, it also fits into the share.
  const share = Math.max(localQuota(window.limit, rule.localShare), Math.min(cost, window.limit));
  return {
    appliedRule,
    rule,
    window,
    capacity: share,
    counter: {
      key,
      identity,
      windowMs,
      offsetMs,
      cost,
      limit: share,
      ceiling: share,
      ...(calendar && { calendar }),
      ...(rollsOver && { rollsOver }),
      ...(checkOnly && { checkOnly }),
      ...(banMs !== undefined && { banMs }),
      ...(escalation && { escalation }),
      ...(neverBans && { neverBans }),
    },
  };
}

/**
 * Returns a share of a limit, rounded up. Floating-point errors are removed first, so that 100 ×
 * 0.07 is 7 and not 8.
 */
function localQuota(limit: number, share: number): number {
  return Math.ceil(Number((limit * share).toPrecision(15)));
}
