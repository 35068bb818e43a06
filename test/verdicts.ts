import {
  type Decision,
  isViolated,
  type Quota,
  type RuleVerdict,
  settledVerdictsOf,
} from "../src/limiter/decision.ts";
import type { AppliedRule } from "../src/request/rule-applier.ts";

/** What a rule in shadow mode says: a quota that the request exceeds, or why the rule is undecided. */
type ShadowResult = Partial<Quota & NonNullable<RuleVerdict["failure"]> & AppliedRule> & {
  readonly policy: string;
};

/** Returns a verdict with the given fields. */
export function verdictOn(
  appliedRule: AppliedRule,
  says: RuleVerdict["says"],
  fields: Partial<RuleVerdict> = {},
): RuleVerdict {
  return { appliedRule, says, quotas: [], cost: 1, ...fields };
}

/**
 * Waits for the rules in shadow mode. Returns the quotas that the request exceeds under them, with the rule,
 * the client and the cost, and why such rules are undecided.
 */
export async function shadowResultsOf(decision: Decision): Promise<ShadowResult[]> {
  if (decision.outcome === "undecided") return [];
  const verdicts = await settledVerdictsOf(decision.verdicts);
  return verdicts.flatMap(({ appliedRule, quotas, cost, failure }): ShadowResult[] => {
    const { rule, identity } = appliedRule;
    if (rule.mode !== "shadow") return [];
    if (failure) return [{ policy: rule.name, ...failure }];
    return quotas.filter(isViolated).map((quota) => ({ ...quota, rule, identity, cost }));
  });
}
