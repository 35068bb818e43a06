import type { GroupAnswer, Verdict } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import type { RuleCounter } from "./counters.ts";
import {
  type Allowed,
  type ExceededRule,
  type Limited,
  NO_ENFORCED_RULE,
  type ShadowDenial,
  type ShadowResult,
} from "./decision.ts";
import { ruleUndecided } from "./marks.ts";
import { isViolated, quotasOf } from "./quotas.ts";
import { type RuleVerdict, verdictsOf, verdictsSaying } from "./rule-verdict.ts";

/**
 * Turns a store's verdict into a decision. If there are enforced rules, the first group of the
 * verdict belongs to them. Then each rule in shadow mode has one group. The groups of rules with
 * the mode `mark` come last; `withMarks` in marks.ts adds them to the decision.
 *
 * @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left
 */
export function decisionOf(
  { groups, now, fromMemory }: Verdict,
  enforcedCounters: readonly RuleCounter[],
  shadowGroups: readonly (readonly RuleCounter[])[],
): Allowed | Limited {
  const answers = [...groups];
  const enforcedAnswer = enforcedCounters.length > 0 ? answers.shift() : undefined;
  const shadow = shadowGroups.flatMap((ruleCounters, index) =>
    shadowResultsOf(ruleCounters, answers[index] as GroupAnswer, now),
  );
  const shadowVerdicts = shadowGroups.flatMap((ruleCounters, index) =>
    shadowVerdictsOf(ruleCounters, answers[index] as GroupAnswer, now),
  );
  if (!enforcedAnswer) return { ...NO_ENFORCED_RULE, shadow, verdicts: shadowVerdicts };
  const quotas = quotasOf(enforcedCounters, enforcedAnswer, now);
  if (enforcedAnswer.admitted) {
    const ownVerdicts = verdictsOf(enforcedCounters, enforcedAnswer, now);
    const verdicts =
      shadowVerdicts.length === 0 ? ownVerdicts : [...ownVerdicts, ...shadowVerdicts];
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    // Both forms are written out, because a spread is slower, and this code runs for each request.
    return fromMemory
      ? { outcome: "allowed", quotas, shadow, verdicts, reservationDelayMs, fromMemory }
      : { outcome: "allowed", quotas, shadow, verdicts, reservationDelayMs };
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
    shadow,
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

/**
 * Returns a shadow rule's violated quotas, or a promise of them if the store decides the rule
 * later.
 */
function shadowResultsOf(
  ruleCounters: readonly RuleCounter[],
  answer: GroupAnswer,
  now: number,
): (ShadowResult | Promise<readonly ShadowResult[]>)[] {
  const { later } = answer;
  const exceeded = exceededRuleOf(ruleCounters[0] as RuleCounter);
  const read = (decided: GroupAnswer, decidedAt: number): ShadowDenial[] => {
    const quotas = quotasOf(ruleCounters, decided, decidedAt).filter(isViolated);
    return quotas.map((quota) => ({ ...quota, ...exceeded }));
  };
  if (!later) return read(answer, now);
  const results = later.then<readonly ShadowResult[], readonly ShadowResult[]>(
    (verdict) => read(verdict.groups[0] as GroupAnswer, verdict.now),
    (error) => [ruleUndecided((ruleCounters[0] as RuleCounter).rule, error)],
  );
  return [results];
}

/** Returns a shadow rule's verdict, if its cost depends on the response. */
function shadowVerdictsOf(
  ruleCounters: readonly RuleCounter[],
  answer: GroupAnswer,
  now: number,
): readonly RuleVerdict[] {
  if (!answer.later) return verdictsOf(ruleCounters, answer, now);
  const { later } = answer;
  const undecided = verdictsSaying("undecided", [(ruleCounters[0] as RuleCounter).appliedRule]);
  return undecided.map((verdict) => ({
    ...verdict,
    later: later.then(
      (decided) => verdictsOf(ruleCounters, decided.groups[0] as GroupAnswer, decided.now),
      () => undecided,
    ),
  }));
}
