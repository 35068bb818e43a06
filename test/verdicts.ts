import {
  type Decision,
  isViolated,
  type Quota,
  type RuleVerdict,
  settledVerdictsOf,
} from "../src/limiter/decision.ts";
import type { AppliedRule } from "../src/request/rule-applier.ts";

/** The result of a rule in shadow mode: a quota that the request exceeds, or the reason why the rule is undecided. */
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
 * Waits for the rules in shadow mode. Returns each exceeded quota with its rule, client and cost, and the failure of
 * each undecided rule.
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
