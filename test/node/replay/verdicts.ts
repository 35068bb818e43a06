import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayedRequest, RuleVerdict } from "../../../cli/replay/engine.ts";
import type { ReplayedRule } from "../../../cli/replay/report.ts";
import { logged } from "./requests.ts";

/** A rule as engines describe it. */
export function ruleNamed(name: string, mode: ReplayedRule["mode"] = "enforce"): ReplayedRule {
  return { name, mode, key: "ip", limits: "10 per 1m", match: "every request" };
}

/** The verdict of the first rule on a request. */
export function verdictOn(request: LogRequest, fields: Partial<RuleVerdict> = {}): RuleVerdict {
  return { rule: 0, client: request.ip ?? "unknown", denied: false, ...fields };
}

/** A decided request that the first rule counts, and denies or not. */
export function decided(
  second: number,
  denied: boolean,
  fields: Partial<LogRequest> = {},
  verdict: Partial<RuleVerdict> = {},
): ReplayedRequest {
  const request = logged(second, fields);
  return {
    request,
    outcome: denied ? "limited" : "allowed",
    verdicts: [verdictOn(request, { denied, ...verdict })],
  };
}
