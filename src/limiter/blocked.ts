import type { Mode } from "../config/rule.ts";
import { type Tally, windowAt } from "../engine/counter.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { RuleCounter } from "./counters.ts";
import {
  type Decision,
  decisionOf,
  exceededRuleOf,
  type Limited,
  type Quota,
  quotasOf,
  type ShadowDenial,
  verdictsSaying,
} from "./decision.ts";

// Clients that an operator has blocked under a rule: see `blockedUntil` of AppliedRule. A blocked client is
// treated like a banned one, but no store is called, nothing is charged, and no ban begins.

/**
 * Whether the client is blocked under a rule that denies nothing: in shadow mode, or with the mode `mark`.
 * The store does not decide such a rule: see {@link withBlocked}. Enforced rules deny a blocked client:
 * see `certainDenialOf`.
 */
export function isBlockedUnenforced({ rule, blockedUntil }: AppliedRule): boolean {
  return blockedUntil !== undefined && rule.mode !== "enforce";
}

/** Whether the client is blocked under the rule of these counters. */
export function isBlocked(ruleCounters: readonly RuleCounter[]): boolean {
  return ruleCounters[0]?.appliedRule.blockedUntil !== undefined;
}

/**
 * Returns the state of a blocked client's counter. The client should retry when the window ends, as with
 * a limit of 0, or when the block ends, if that is sooner.
 */
function blockedTally({ appliedRule, counter }: RuleCounter, now: number): Tally {
  const { blockedUntil = now } = appliedRule;
  const resetMs = windowAt(now, counter).endsAt - now;
  return { count: 0, resetMs, banMs: Math.max(1, Math.min(resetMs, blockedUntil - now)) };
}

/** Returns the counter with a cost of 0. Otherwise its cost could make the time to retry longer. */
function withoutCost(ruleCounter: RuleCounter): RuleCounter {
  return { ...ruleCounter, counter: { ...ruleCounter.counter, cost: 0 } };
}

/**
 * Adds the results of rules under which the client is blocked, and which deny nothing.
 *
 * @param groups the counters of each such rule
 * @param now the time in milliseconds since the Unix epoch
 */
export function withBlocked<D extends Decision>(
  decision: D,
  groups: readonly (readonly RuleCounter[])[],
  now: number,
): D {
  if (decision.outcome === "undecided") return decision;
  const inMode = (mode: Mode) => groups.filter(([first]) => first?.rule.mode === mode);
  const shadow = [...decision.shadow, ...blockedInShadow(inMode("shadow"), now)];
  if (decision.outcome === "limited" || decision.storeFailure) return { ...decision, shadow };
  const marks = inMode("mark").flatMap((each) => blockedQuotas(each, now));
  const blocked = groups.map(([first]) => (first as RuleCounter).appliedRule);
  const verdicts = [...decision.verdicts, ...verdictsSaying("blocked", blocked)];
  return { ...decision, quotas: [...decision.quotas, ...marks], shadow, verdicts };
}

/** Returns the results of the rules in shadow mode that would have denied a blocked client. */
export function blockedInShadow(
  groups: readonly (readonly RuleCounter[])[],
  now: number,
): ShadowDenial[] {
  return groups.filter(isBlocked).flatMap((ruleCounters) => {
    const exceeded = exceededRuleOf(ruleCounters[0] as RuleCounter);
    return blockedQuotas(ruleCounters, now).map((quota) => ({ ...quota, ...exceeded }));
  });
}

function blockedQuotas(ruleCounters: readonly RuleCounter[], now: number): Quota[] {
  const tallies = ruleCounters.map((each) => blockedTally(each, now));
  return quotasOf(ruleCounters.map(withoutCost), { admitted: false, tallies, now });
}

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
  const counters = enforcedCounters.map((each) =>
    isBlockedCounter(each) ? withoutCost(each) : each,
  );
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
    if (isBlockedCounter(ruleCounter)) return blockedTally(ruleCounter, now);
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
  return (ceiling === 0 && cost > 0) || isBlockedCounter(ruleCounter);
}

function isBlockedCounter({ appliedRule }: RuleCounter): boolean {
  return appliedRule.blockedUntil !== undefined;
}
