import type { Rule, Window } from "../../src/config/rule.ts";
import { bodyCostOf, hasCustomCost, unknownCost } from "../../src/request/custom-calls.ts";
import type { LoggedRequest } from "./logged-request.ts";

/**
 * Returns the cost of a request that the request itself determines; undefined if it does not. A cost that a
 * function determines is unknown.
 */
export function requestCostOf(
  rule: Rule,
  windows: readonly Window[],
  request: LoggedRequest,
): number | undefined {
  const { cost } = rule;
  if (typeof cost === "object" && hasCustomCost(rule)) return unknownCost(cost, 1);
  return bodyCostOf(rule, windows, request, () => {});
}
