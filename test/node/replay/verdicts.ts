import type { LogRequest } from "../../../cli/logs/log-request.ts";
import type { ReplayedRequest, RuleVerdict } from "../../../cli/replay/groups.ts";
import type { ReplayedRule } from "../../../cli/replay/report.ts";
import { logged } from "./requests.ts";

/** A rule as engines describe it. */
export function ruleNamed(name: string, mode: ReplayedRule["mode"] = "enforce"): ReplayedRule {
  return { name, mode, key: "ip", limits: "10 per 1m", match: "every request" };
}

/** The verdict of the first rule on a request, in a window of a minute. */
export function verdictOn(request: LogRequest, fields: Partial<RuleVerdict> = {}): RuleVerdict {
  const windowStart = Math.floor(request.at / 60_000) * 60_000;
  return {
    rule: 0,
    client: request.ip ?? "unknown",
    denied: false,
    windowStart,
    windowEnd: windowStart + 60_000,
    policy: "api",
    counted: {},
    ...fields,
  };
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
