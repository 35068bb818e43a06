import type { Rule } from "../config/rule.ts";
import type { AppliedRule } from "../request/applied-rule.ts";

/** The parts of an origin's response that determine what the request cost. */
export interface ResponseFacts {
  readonly status: number;
  readonly headers: Headers;
}

/** What a response cost by one rule. */
export interface Charge {
  readonly appliedRule: AppliedRule;
  /** Quota to charge; more than 0. */
  readonly cost: number;
}

/** The charges for a response, without the rules by which it costs nothing. */
export function chargesOf(appliedRules: readonly AppliedRule[], response: ResponseFacts): Charge[] {
  return appliedRules
    .map((appliedRule) => ({ appliedRule, cost: costOf(appliedRule.rule, response) }))
    .filter(({ cost }) => cost > 0);
}

/** The cost by one rule: 1 if the rule reads a header field that is missing or not a whole number. */
function costOf({ cost, countStatus }: Rule, { status, headers }: ResponseFacts): number {
  if (countStatus && !countStatus.includes(status)) return 0;
  if (typeof cost === "number") return cost;
  const text = headers.get(cost.header)?.trim() ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : 1;
}
