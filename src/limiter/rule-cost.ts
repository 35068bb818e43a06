import type { Cost } from "../config/cost.ts";
import type { Rule } from "../config/rule.ts";

/**
 * Whether the final cost of a request is unknown when it is admitted: the response determines the
 * cost, or a program settles the reserve.
 */
export function dependsOnResponse({ cost, count }: Rule): boolean {
  if (count !== undefined) return true;
  return typeof cost !== "number" && (cost.settle !== undefined || typeof cost.before === "number");
}

/** Whether a rule charges a reserve before the response, and settles it after the response. */
export function isSettled(rule: Rule): boolean {
  return dependsOnResponse(rule) && !isChargedByResponse(rule);
}

/** Whether a rule charges a request only after its response has arrived. */
export function isChargedByResponse({ cost, count }: Rule): boolean {
  if (count && !count.reserve) return true;
  return typeof cost !== "number" && cost.before === undefined;
}

/**
 * Returns what a rule charges before the response, unless a value of the request determines it. If
 * only the response determines the cost, the client needs a quota of at least 1.
 */
export function costBefore(cost: Cost): number {
  if (typeof cost === "number") return cost;
  return typeof cost.before === "number" ? cost.before : 1;
}
