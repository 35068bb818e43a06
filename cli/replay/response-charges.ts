import type { Rule } from "../../src/config/rule.ts";
import type { Counter } from "../../src/engine/counter.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import { reserveOf } from "../../src/limiter/reserves.ts";
import {
  chargedCountersOf,
  costOfHead,
  type FinalCost,
  responseChargesOf,
  withCause,
} from "../../src/limiter/response-charges.ts";
import { dependsOnResponse } from "../../src/limiter/rule-cost.ts";
import type { AppliedRule } from "../../src/request/applied-rule.ts";
import type { LogRequest } from "../logs/log-request.ts";
import type { AppliedClient } from "./applied-client.ts";
import type { GroupAnswers } from "./group-answers.ts";

/** A status that no response has and no rule counts. */
const NO_STATUS = 0;

/** Returns the rules that an admitted request may be charged under: all except exceeded marks. */
export function chargedRulesOf(
  applied: readonly AppliedClient[],
  { marks }: GroupAnswers,
): AppliedRule[] {
  let mark = 0;
  return applied
    .map(({ appliedRule }) => appliedRule)
    .filter(({ rule }) => rule.mode !== "mark" || marks[mark++]?.admitted);
}

/**
 * Returns the counters that a response charges, for each call of the Worker: the enforced rules and those
 * with the mode `mark` in one call, the rules in shadow mode in another.
 *
 * @param appliedRules the rules to charge an admitted request under
 */
export function responseCountersOf(
  appliedRules: readonly AppliedRule[],
  request: LogRequest,
  prefix: string,
): Counter[][] {
  const charged = appliedRules.filter(({ rule }) => dependsOnResponse(rule));
  const isShadow = ({ rule }: { readonly rule: Rule }) => rule.mode === "shadow";
  return [charged.filter((each) => !isShadow(each)), charged.filter(isShadow)]
    .map((rules) => {
      const charges = responseChargesOf(rules, (each) => finalCostOf(each, request));
      return charges.flatMap((charge) =>
        countersOf(chargedCountersOf(charge, reserveOf(charge.appliedRule), prefix)),
      );
    })
    .filter((counters) => counters.length > 0);
}

function finalCostOf(appliedRule: AppliedRule, request: LogRequest): FinalCost {
  const { status = NO_STATUS, responseHeaders } = request;
  const headers = { get: (name: string) => responseHeaders?.get(name) ?? null };
  // A cost that a function of the user would read from the response is unknown.
  const cost = costOfHead(appliedRule, { status, headers }) ?? "missing";
  return status === NO_STATUS ? withCause(cost, "no-response") : cost;
}
