import { windowAt } from "../engine/counter.ts";
import type { RuleCounter } from "./counters.ts";
import type { Allowed, Limited } from "./decision.ts";
import { decisionOf } from "./store-verdict.ts";

/**
 * Denies a request if one of its enforced counters has a limit of 0. Such a counter never has quota,
 * so Weir does not call the store. So a rule with a limit of 0 needs no call, and also denies while
 * the store fails. The denial starts no ban, and has only the quotas of counters with a limit of 0.
 *
 * @param now this isolate's time; the store's clock is unknown
 * @returns undefined if the store must decide
 */
export function certainDenialOf(
  enforcedCounters: readonly RuleCounter[],
  now: number,
): Allowed | Limited | undefined {
  if (!enforcedCounters.some(deniesCertainly)) return undefined;
  const tallies = enforcedCounters.map((ruleCounter) =>
    deniesCertainly(ruleCounter)
      ? { count: 0, resetMs: windowAt(now, ruleCounter.counter).endsAt - now, banMs: 0 }
      : undefined,
  );
  return decisionOf({ now, groups: [{ admitted: false, tallies }] }, enforcedCounters, []);
}

/**
 * Whether a counter certainly denies this request. A request with a cost of 0 is admitted, because
 * it takes no quota.
 */
function deniesCertainly({ counter: { ceiling, cost } }: RuleCounter): boolean {
  return ceiling === 0 && cost > 0;
}
