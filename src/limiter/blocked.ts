import { countsUntil, type Tally, withCost } from "../engine/counter.ts";
import { SLOT_RETRY_MS } from "../engine/slots.ts";
import type { RuleCounter } from "./counters.ts";
import { decisionOf, type Limited, type RuleVerdict, verdictsOf } from "./decision.ts";

// Denies requests that are certainly denied: the limit is 0, or an operator has blocked the client under the rule
// (see `blockedUntil` of AppliedRule). Makes no call to the store, charges nothing, and begins no ban.

/** Whether the client is blocked under the rule of these counters. */
export function isBlocked([first]: readonly RuleCounter[]): boolean {
  return first !== undefined && isBlockedCounter(first);
}

/** Returns the verdict of a rule under which the client is blocked. */
export function blockedVerdictOf(ruleCounters: readonly RuleCounter[], now: number): RuleVerdict {
  const tallies = ruleCounters.map((each) => blockedTally(each, now));
  const [verdict] = verdictsOf(ruleCounters.map(withoutCost), { admitted: false, tallies, now });
  return withCostOf(verdict as RuleVerdict, ruleCounters);
}

/**
 * Denies a request if one of its enforced counters certainly denies it, also while the store fails. The denial has
 * the quotas of these counters only.
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
  return { ...decision, deniedBy: withCostOf(decision.deniedBy, enforcedCounters) };
}

/**
 * Returns the states of the counters that certainly deny a request, and `undefined` for all other counters.
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
    return { count: 0, resetMs: resetMsOf(ruleCounter, now), banMs: 0 };
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

/**
 * Returns the state of a blocked client's counter. The client should retry when the block or the window ends,
 * whichever is sooner. Slots alone have no window.
 */
function blockedTally(ruleCounter: RuleCounter, now: number): Tally {
  const { blockedUntil = now } = ruleCounter.appliedRule;
  const resetMs = resetMsOf(ruleCounter, now);
  const banMs = blockedUntil - now;
  const { length } = ruleCounter.appliedRule.windows;
  const hasWindow = !ruleCounter.window.concurrent || length > 1;
  return { count: 0, resetMs, banMs: Math.max(1, hasWindow ? Math.min(resetMs, banMs) : banMs) };
}

function resetMsOf({ window, counter }: RuleCounter, now: number): number {
  return window.concurrent ? SLOT_RETRY_MS : countsUntil(now, counter) - now;
}

/** Returns the counter with a cost of 0. With a cost, the time until a retry could be longer. */
function withoutCost(ruleCounter: RuleCounter): RuleCounter {
  return { ...ruleCounter, counter: withCost(ruleCounter.counter, 0) };
}

/** Returns the verdict with the cost that the counters of its rule have. */
function withCostOf(verdict: RuleVerdict, ruleCounters: readonly RuleCounter[]): RuleVerdict {
  const own = ruleCounters.find(({ appliedRule }) => appliedRule === verdict.appliedRule);
  return { ...verdict, cost: own?.counter.cost ?? verdict.cost };
}
