import type { Answer } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import type { RuleCounter } from "./counters.ts";
import type { Allowed, ExceededRule, Limited, ShadowResult } from "./decision.ts";
import { ruleUndecided } from "./marks.ts";
import { isViolated, quotasOf } from "./quotas.ts";
import { type RuleVerdict, verdictsOf, verdictsSaying } from "./rule-verdict.ts";

/**
 * Turns a store's answer for the enforced rules into a decision.
 *
 * @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left
 */
export function decisionOf(
  answer: Answer,
  enforcedCounters: readonly RuleCounter[],
): Allowed | Limited {
  const { fromMemory } = answer;
  const quotas = quotasOf(enforcedCounters, answer);
  if (answer.admitted) {
    const verdicts = verdictsOf(enforcedCounters, answer);
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    // Both forms are written out, because a spread is slower, and this code runs for each request.
    return fromMemory
      ? { outcome: "allowed", quotas, shadow: [], verdicts, reservationDelayMs, fromMemory }
      : { outcome: "allowed", quotas, shadow: [], verdicts, reservationDelayMs };
  }
  const violated = quotas.filter(isViolated);
  const deniedBy = enforcedCounters.find(({ window }) => window.policy === violated[0]?.policy);
  if (!deniedBy) {
    throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
  }
  const retryAfterMs = Math.max(...violated.map((quota) => quota.retryAfterMs));
  const { rule } = deniedBy;
  return {
    outcome: "limited",
    quotas,
    shadow: [],
    retryAfterMs,
    rule,
    exceeded: exceededRuleOf(deniedBy),
    ...(fromMemory && { fromMemory }),
  };
}

/** @param ruleCounter any counter of the rule, because all of them have the same cost */
export function exceededRuleOf({ appliedRule, counter }: RuleCounter): ExceededRule {
  const { rule, identity } = appliedRule;
  return { rule, identity, cost: counter.cost };
}

/** Returns the violated quotas of a rule in shadow mode. Never rejects. */
export async function shadowResultsOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): Promise<readonly ShadowResult[]> {
  const [first] = ruleCounters as [RuleCounter];
  try {
    const exceeded = exceededRuleOf(first);
    const quotas = quotasOf(ruleCounters, await answered).filter(isViolated);
    return quotas.map((quota) => ({ ...quota, ...exceeded }));
  } catch (error) {
    return [ruleUndecided(first.rule, error)];
  }
}

/** Returns the verdict of a rule in shadow mode, if its cost depends on the response. Never rejects. */
export function shadowVerdictsOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): readonly RuleVerdict[] {
  const undecided = verdictsSaying("undecided", [(ruleCounters[0] as RuleCounter).appliedRule]);
  const later = answered.then(
    (answer) => verdictsOf(ruleCounters, answer),
    () => undecided,
  );
  return undecided.map((verdict) => ({ ...verdict, later }));
}
