import { type Tally, windowAt } from "../engine/counter.ts";
import { blockedTally, withoutCost } from "./blocked.ts";
import type { RuleCounter } from "./counters.ts";
import type { Limited } from "./decision.ts";
import { decisionOf, exceededRuleOf } from "./store-verdict.ts";

/**
 * Denies a request if one of its enforced counters has a limit of 0, or if the client is blocked under its
 * rule. Such a counter never has quota, so Weir does not call the store. So a rule with a limit of 0 needs
 * no call, and also denies while the store fails. The denial starts no ban, and has only the quotas of
 * such counters.
 *
 * @param now this isolate's time; the store's clock is unknown
 * @returns undefined if the store must decide
 */
export function certainDenialOf(
  enforcedCounters: readonly RuleCounter[],
  now: number,
): Limited | undefined {
  const tallies = certainTalliesOf(enforcedCounters, now);
  if (!tallies) return undefined;
  const counters = enforcedCounters.map((each) => (isBlocked(each) ? withoutCost(each) : each));
  const decision = decisionOf({ now, admitted: false, tallies, fromMemory: true }, counters);
  if (decision.outcome !== "limited") return undefined;
  const { rule } = decision;
  const deniedBy = enforcedCounters.find((each) => each.rule === rule) as RuleCounter;
  return { ...decision, exceeded: exceededRuleOf(deniedBy) };
}

/**
 * Returns the states of the counters that certainly deny a request, and `undefined` for all others.
 *
 * @returns undefined if no counter certainly denies the request
 */
export function certainTalliesOf(
  enforcedCounters: readonly RuleCounter[],
  now: number,
): (Tally | undefined)[] | undefined {
  if (!enforcedCounters.some(deniesCertainly)) return undefined;
  return enforcedCounters.map((ruleCounter) => {
    if (isBlocked(ruleCounter)) return blockedTally(ruleCounter, now);
    if (!deniesCertainly(ruleCounter)) return undefined;
    return { count: 0, resetMs: windowAt(now, ruleCounter.counter).endsAt - now, banMs: 0 };
  });
}

/**
 * Whether a counter certainly denies this request. A request with a cost of 0 is admitted unless the
 * client is blocked, because it takes no quota.
 */
function deniesCertainly(ruleCounter: RuleCounter): boolean {
  const { ceiling, cost } = ruleCounter.counter;
  return (ceiling === 0 && cost > 0) || isBlocked(ruleCounter);
}

function isBlocked({ appliedRule }: RuleCounter): boolean {
  return appliedRule.blockedUntil !== undefined;
}
