import type { Counter } from "../../src/engine/counter.ts";
import {
  chargedCountersOf,
  costOfHead,
  type FinalCost,
  responseChargesOf,
  withCause,
} from "../../src/limiter/cost.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import type { RuleVerdict } from "../../src/limiter/decision.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { LogRequest } from "../logs/log-request.ts";

/** A status that no response has and no rule counts. */
const NO_STATUS = 0;

/**
 * Returns the counters that a response charges, for each call of the Worker: the enforced rules and those
 * with the mode `mark` in one call, the rules in shadow mode in another.
 */
export function responseCountersOf(
  verdicts: readonly RuleVerdict[],
  request: LogRequest,
  prefix: string,
): Counter[][] {
  const isShadow = ({ appliedRule }: RuleVerdict) => appliedRule.rule.mode === "shadow";
  return [verdicts.filter((each) => !isShadow(each)), verdicts.filter(isShadow)]
    .map((each) => {
      const charges = responseChargesOf(each, (appliedRule) => finalCostOf(appliedRule, request));
      return charges.flatMap((charge) => countersOf(chargedCountersOf(charge, prefix)));
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
