import type { Rule } from "../config/rule.ts";
import type { Answer } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import type { RuleCounter } from "./counters.ts";
import { type Allowed, type Quota, type RuleUndecided, toUndecided } from "./decision.ts";
import { isViolated, quotasOf } from "./quotas.ts";
import { type RuleVerdict, verdictsOf, verdictsSaying } from "./rule-verdict.ts";

// Rules with the mode `mark`. Each rule is a dependent group in the call to the store: it is charged
// only if the enforced rules admit the request and the rule has quota left in all of its windows.

/**
 * Adds the results of the mark rules to a decision. Waits for their answers, because the origin must
 * get the mark with the request. The store bounds this time. Never rejects.
 *
 * @param groups the counters of each mark rule
 * @param answered the answer for each mark rule
 */
export async function withMarks(
  decision: Allowed,
  groups: readonly (readonly RuleCounter[])[],
  answered: readonly Promise<Answer>[],
): Promise<Allowed> {
  const quotas: Quota[] = [];
  const verdicts: RuleVerdict[] = [...decision.verdicts];
  const undecidedMarks: RuleUndecided[] = [];
  for (const [index, ruleCounters] of groups.entries()) {
    try {
      const answer = (await answered[index]) as Answer;
      quotas.push(...markQuotasOf(ruleCounters, answer));
      verdicts.push(...verdictsOf(ruleCounters, answer));
    } catch (error) {
      const { appliedRule, rule } = ruleCounters[0] as RuleCounter;
      undecidedMarks.push(ruleUndecided(rule, error));
      verdicts.push(...verdictsSaying("undecided", [appliedRule]));
    }
  }
  const delays = quotas.filter((quota) => !quota.violated).map((quota) => quota.reservationDelayMs);
  return {
    ...decision,
    quotas: [...decision.quotas, ...quotas],
    verdicts,
    reservationDelayMs: Math.max(decision.reservationDelayMs, ...delays),
    ...(undecidedMarks.length > 0 && { undecidedMarks }),
  };
}

/** @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left */
function markQuotasOf(ruleCounters: readonly RuleCounter[], answer: Answer): Quota[] {
  const quotas = quotasOf(ruleCounters, answer);
  if (answer.admitted || quotas.some(isViolated)) return quotas;
  throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
}

export function ruleUndecided({ name }: Rule, error: unknown): RuleUndecided {
  const { cause, detail } = toUndecided(error, []);
  return { policy: name, cause, detail };
}
