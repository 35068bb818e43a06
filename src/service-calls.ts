import {
  type LimitGranted,
  type LimitResult,
  type LimitUndecided,
  toLimitResult,
} from "./limit-result.ts";
import type { DecideOptions } from "./limiter/counters.ts";
import { type Decision, type Quota, type RuleUndecided, toUndecided } from "./limiter/decision.ts";
import { logDecision, logUndecided } from "./log.ts";
import type { CheckOptions } from "./service-options.ts";
import type { ServiceRule } from "./service-rule.ts";
import { reserveOriginOf } from "./service-settle.ts";

// These functions are not methods of the class `WeirService`, because other Workers could then call
// them over RPC.

/** The result of a call while the rule does not limit the client. */
const GRANTED: LimitResult = { ok: true, quotas: [] };

/** Decides a call, and takes the quota unless `checkOnly` is set. */
export async function decide(
  serviceRule: ServiceRule,
  { cost, reserve = false, throws = false }: CheckOptions,
  checkOnly: boolean,
): Promise<LimitResult> {
  const { limiting, limiter, denialLog, control } = serviceRule;
  if (!limiting) {
    if (!checkOnly) control?.record([], undefined, Date.now());
    return GRANTED;
  }
  const options: DecideOptions = { ...(cost !== undefined && { cost }), reserve, checkOnly };
  const decision = await limiter.decide([limiting], options);
  logDecision(decision, denialLog);
  if (!checkOnly) control?.record([limiting], decision, Date.now());
  const failure = await shadowFailureOf(decision);
  if (failure) return { ok: true, undecided: failure.cause };
  const result = toLimitResult(decision, limiting.rule.name, throws);
  // If this isolate has decided alone, the store has charged nothing, so there is no reserve to
  // settle.
  if (decision.outcome !== "allowed" || !result.ok || !result.quotas) return result;
  const [verdict] = decision.verdicts;
  const [decided] = (await verdict?.later) ?? [verdict];
  const reserved = decided?.reserve;
  if (!reserved) return result;
  return { ...result, reserved: { ...reserved, ...reserveOriginOf(serviceRule) } };
}

/** Waits for a rule in shadow mode, and returns why it could not be decided. */
async function shadowFailureOf(decision: Decision): Promise<RuleUndecided | undefined> {
  if (decision.outcome !== "allowed" || decision.shadow.length === 0) return undefined;
  const results = (await Promise.all(decision.shadow)).flat();
  return results.find((result): result is RuleUndecided => "cause" in result);
}

/** Charges a client or gives quota back, also above the limit. */
export async function adjust(
  { configured, limiting }: ServiceRule,
  call: () => Promise<readonly Quota[]>,
): Promise<LimitGranted | LimitUndecided> {
  const { rule } = limiting ?? configured;
  try {
    const quotas = await call();
    return { ok: true, quotas: rule.mode === "shadow" ? [] : quotas };
  } catch (error) {
    const undecided = toUndecided(error, [rule]);
    logUndecided(undecided);
    // The result is `ok` even with `onError: "closed"`, because an adjustment needs no permission.
    return { ok: true, undecided: undecided.cause };
  }
}
