import type { Rule } from "../config/rule.ts";
import type { AppliedRule } from "../request/applied-rule.ts";

/** The parts of an origin's response that determine what the request cost. */
export interface ResponseFacts {
  readonly status: number;
  readonly headers: Headers;
}

/** The cost of a response under one rule. */
export interface ResponseCharge {
  readonly appliedRule: AppliedRule;
  /** The quota to charge; more than 0. */
  readonly cost: number;
}

/**
 * Returns the charges for a response. Rules under which the response costs nothing get no charge.
 */
export function responseChargesOf(
  appliedRules: readonly AppliedRule[],
  response: ResponseFacts,
): ResponseCharge[] {
  return appliedRules
    .map((appliedRule) => ({ appliedRule, cost: costOf(appliedRule.rule, response) }))
    .filter(({ cost }) => cost > 0);
}

/**
 * Returns the cost of a response under one rule. The cost is 1 if the rule reads it from a header
 * field that is missing or not a whole number.
 */
function costOf({ cost, countStatus }: Rule, { status, headers }: ResponseFacts): number {
  if (countStatus && !countStatus.includes(status)) return 0;
  if (typeof cost === "number") return cost;
  const text = headers.get(cost.header)?.trim() ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : 1;
}
