import type { Rule } from "../config/rule.ts";
import type { CostFailure } from "../request/custom-calls.ts";
import type { ReadonlyHeaders } from "../request/headers.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import {
  dependsOnResponse,
  inWindowsOf,
  isChargedByResponse,
  type RuleCounter,
  ruleCountersOf,
} from "./counters.ts";
import type { RuleVerdict } from "./decision.ts";

/** The parts of an origin's response that determine the cost of the request. */
interface ResponseFacts {
  readonly status: number;
  readonly headers: Pick<ReadonlyHeaders, "get">;
}

/** The charge that remains after a response under one rule. */
export interface ResponseCharge {
  readonly verdict: Pick<RuleVerdict, "appliedRule" | "shard" | "reserve">;
  /** The quota to charge; negative if a part of the reserve is given back; never 0. */
  readonly cost: number;
}

/**
 * The reason why a cost is unknown. `no-response`: the origin has sent no response that a function could read.
 * `broken-off`: the response broke off before it stated the cost.
 */
export type UnknownCost = CostFailure | "no-response" | "broken-off";

/** A cost of which a settle function knows only a minimum. */
interface MinimumCost {
  readonly atLeast: number;
  readonly cause: UnknownCost;
}

/** A final cost, or the reason why it is unknown. */
export type FinalCost = number | UnknownCost | MinimumCost;

/** Returns the final cost under a rule; undefined if it will be known later. */
export type CostOf = (appliedRule: AppliedRule) => FinalCost | undefined;

/** Returns the reason why a cost is unknown; undefined if the cost is known. */
export function causeOf(cost: FinalCost): UnknownCost | undefined {
  if (typeof cost === "number") return undefined;
  return typeof cost === "string" ? cost : cost.cause;
}

/** Replaces the reason why a cost is unknown. Returns a known cost unchanged. */
export function withCause(cost: FinalCost, cause: UnknownCost): FinalCost {
  if (typeof cost === "number") return cost;
  return typeof cost === "string" ? cause : { ...cost, cause };
}

/**
 * Returns the charges that remain after a response. A rule is charged only if the rule itself has admitted the
 * request, and if its final cost is known.
 */
export function responseChargesOf(
  verdicts: readonly RuleVerdict[],
  costOf: CostOf,
): ResponseCharge[] {
  return verdicts.flatMap((verdict): ResponseCharge | never[] => {
    const isCharged = verdict.says === "admitted" && dependsOnResponse(verdict.appliedRule.rule);
    const finalCost = isCharged ? costOf(verdict.appliedRule) : undefined;
    if (finalCost === undefined) return [];
    const cost = remainingCharge(verdict, finalCost);
    return cost === 0 ? [] : { verdict, cost };
  });
}

/**
 * Returns the counters to change, in the shard that has decided. A refund changes them only in the windows that the
 * decision charged.
 */
export function chargedCountersOf(
  { verdict, cost }: ResponseCharge,
  prefix: string,
): RuleCounter[] {
  const { appliedRule, reserve, shard = reserve?.shards?.[0] } = verdict;
  // A deploy may have removed the shard since the reserve of a program's call.
  const existing = shard !== undefined && shard < appliedRule.rule.shards ? shard : undefined;
  const ruleCounters = ruleCountersOf(appliedRule, prefix, { cost }, existing);
  return reserve && cost < 0 ? inWindowsOf(reserve, ruleCounters) : ruleCounters;
}

/** Returns the final cost minus the quota that the decision has charged. */
function remainingCharge(
  { appliedRule, reserve }: ResponseCharge["verdict"],
  finalCost: FinalCost,
): number {
  const { rule } = appliedRule;
  const { max = Number.POSITIVE_INFINITY, default: standard } =
    typeof rule.cost === "number" ? {} : rule.cost;
  const atLeast = typeof finalCost === "object" ? finalCost.atLeast : 0;
  if (isChargedByResponse(rule)) {
    if (typeof finalCost === "number") return Math.min(max, finalCost);
    // A client can break off the response, so `default` never lowers the cost in this case.
    if (causeOf(finalCost) === "broken-off" && max < Number.POSITIVE_INFINITY) return max;
    return Math.min(max, Math.max(atLeast, standard ?? 1));
  }
  // If the decision has charged nothing, there is nothing to settle.
  if (!reserve) return 0;
  if (typeof finalCost === "number") return Math.min(max, finalCost) - reserve.cost;
  // If a response breaks off, the reserve stays charged. Otherwise clients would break off responses to pay only
  // `default`.
  const cause = causeOf(finalCost);
  const isWhole = cause !== "no-response" && cause !== "broken-off";
  const cost = isWhole && standard !== undefined ? standard : reserve.cost;
  return Math.max(cost, Math.min(max, atLeast)) - reserve.cost;
}

/**
 * Returns the final cost of a request under a rule, if the head of the response determines this cost.
 *
 * @returns undefined if a function determines the cost
 */
export function costOfHead(
  { rule, cost: costOfRequest }: AppliedRule,
  { status, headers }: ResponseFacts,
): FinalCost | undefined {
  const { cost, count } = rule;
  if (count && !count.statuses.includes(status)) return 0;
  if (typeof cost === "number") return cost;
  if (!cost.settle) return costOfRequest ?? (typeof cost.before === "number" ? cost.before : 1);
  if (cost.settle.kind === "custom") return undefined;
  const text = headers.get(cost.settle.name)?.trim();
  if (text === undefined) return "missing";
  return /^\d{1,15}$/.test(text) ? Number(text) : "invalid";
}

/** Whether a function may determine the final cost of a response. */
export function hasSettleFunction({ cost }: Rule): boolean {
  return typeof cost !== "number" && cost.settle?.kind === "custom";
}

/**
 * Returns the name of the function that determines the final cost; undefined if the head of the
 * response determines it.
 */
export function settleFunctionOf({ cost, count }: Rule, status: number): string | undefined {
  if (typeof cost === "number" || cost.settle?.kind !== "custom") return undefined;
  return count && !count.statuses.includes(status) ? undefined : cost.settle.name;
}
