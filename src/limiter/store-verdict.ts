import type { Rule } from "../config/rule.ts";
import type { GroupAnswer, Verdict } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import type { RuleCounter } from "./counters.ts";
import {
  type Allowed,
  type Limited,
  NO_ENFORCED_RULE,
  type ShadowResult,
  type ShadowUndecided,
  toUndecided,
} from "./decision.ts";
import { isViolated, quotasOf } from "./quotas.ts";

/**
 * Turns a store's verdict into a decision. If there are enforced rules, the first group of the
 * verdict belongs to them. Each other group belongs to one rule in shadow mode.
 *
 * @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left
 */
export function decisionOf(
  { groups, now }: Verdict,
  enforcedCounters: readonly RuleCounter[],
  shadowGroups: readonly (readonly RuleCounter[])[],
): Allowed | Limited {
  const answers = [...groups];
  const enforcedAnswer = enforcedCounters.length > 0 ? answers.shift() : undefined;
  const shadow = shadowGroups.flatMap((ruleCounters, index) =>
    shadowResultsOf(ruleCounters, answers[index] as GroupAnswer, now),
  );
  if (!enforcedAnswer) return { ...NO_ENFORCED_RULE, shadow };
  const quotas = quotasOf(enforcedCounters, enforcedAnswer, now);
  if (enforcedAnswer.admitted) {
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    return { outcome: "allowed", quotas, shadow, reservationDelayMs };
  }
  const violated = quotas.filter(isViolated);
  const deniedBy = enforcedCounters.find(({ window }) => window.policy === violated[0]?.policy);
  if (!deniedBy) {
    throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
  }
  const retryAfterMs = Math.max(...violated.map((quota) => quota.retryAfterMs));
  return { outcome: "limited", quotas, shadow, retryAfterMs, rule: deniedBy.rule };
}

/**
 * Returns a shadow rule's violated quotas, or a promise of them if the store decides the rule
 * later.
 */
function shadowResultsOf(
  ruleCounters: readonly RuleCounter[],
  answer: GroupAnswer,
  now: number,
): (ShadowResult | Promise<ShadowResult[]>)[] {
  const { later } = answer;
  if (!later) return quotasOf(ruleCounters, answer, now).filter(isViolated);
  const results = later.then(
    (verdict) =>
      quotasOf(ruleCounters, verdict.groups[0] as GroupAnswer, verdict.now).filter(isViolated),
    (error) => [shadowUndecided((ruleCounters[0] as RuleCounter).rule, error)],
  );
  return [results];
}

export function shadowUndecided({ name }: Rule, error: unknown): ShadowUndecided {
  const { cause, detail } = toUndecided(error, []);
  return { policy: name, cause, detail };
}
