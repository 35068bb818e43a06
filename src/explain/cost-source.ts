import type { Cost, RequestCost } from "../config/cost.ts";
import type { Rule } from "../config/rule.ts";
import { isChargedByResponse } from "../limiter/counters.ts";
import type { CostFailure } from "../request/custom-calls.ts";

/** The reasons why a cost is unknown, as parts of sentences. */
const FAILURES: Readonly<Record<CostFailure, string>> = {
  timeout: "the function took too long",
  threw: "the function threw an error",
  missing: "the request does not have it",
  invalid: "it is no whole number",
};

/**
 * Returns what determines the cost of a request under a rule.
 *
 * @param failure why the cost before the request could not be read, if it could not
 */
export function costSourceOf(rule: Rule, failure: CostFailure | undefined): string {
  const { cost, count } = rule;
  const before = sourceBefore(cost);
  const parts = [
    failure ? `${before} is unknown, because ${FAILURES[failure]}` : before,
    count && `only responses with the status ${count.statuses.join(", ")} are charged`,
    typeof cost === "object" &&
      cost.settle &&
      `settled by ${cost.settle.kind}:${cost.settle.name} of the response`,
    isChargedByResponse(rule) && "nothing is charged before the response",
  ];
  return parts.filter(Boolean).join("; ");
}

function sourceBefore(cost: Cost): string {
  if (typeof cost === "number") return `cost: ${cost}`;
  const { before } = cost;
  if (before === undefined) return "a quota of 1 must be left";
  return typeof before === "number" ? `reserve: ${before}` : nameOf(before);
}

function nameOf(source: RequestCost): string {
  return source.kind === "body" ? "body:bytes" : `custom:${source.name}`;
}
