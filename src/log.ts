import { waitUntil } from "cloudflare:workers";
import type { DeploymentMode } from "./config/bindings.ts";
import type { ControlTask } from "./control/control-link.ts";
import { type Denial, DenialLog, type RequestPlace } from "./denial-log.ts";
import type { CustomResponseFailure } from "./http/custom-denial.ts";
import type { UnknownCost } from "./limiter/cost.ts";
import {
  type Decision,
  isViolated,
  type Quota,
  type RuleVerdict,
  type Undecided,
} from "./limiter/decision.ts";
import type { CustomFailure } from "./request/custom-calls.ts";
import type { BreakerScope, BreakerState } from "./stores/breaker.ts";

/** An isolate logs outages at most once in this many milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;
/** The minimum time between two logged failures about the same key, response or rule, in milliseconds. */
const FAILURE_INTERVAL_MS = 1000;
/** The maximum number of entries in `lastFailures`. */
const MAX_SUBJECTS = 1000;

/** Writes a line of JSON. The lines contain no keys, addresses or secrets. */
export function logLine(
  level: "log" | "error",
  event: string,
  fields: Record<string, unknown>,
): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}

/** The events and tasks whose failures an isolate logs at most once in ten seconds. */
export type OutageEvent =
  | "undecided"
  | "shadow-undecided"
  | "mark-undecided"
  | "upload"
  | "load-overrides";

const lastOutages = new Map<OutageEvent, number>();

/** Whether to log an outage now. If so, records the time. */
export function isOutageDue(event: OutageEvent): boolean {
  return isDue(lastOutages, event, OUTAGE_INTERVAL_MS);
}

/** The times at which this isolate last logged a failure, by the key, response or rule. */
const lastFailures = new Map<string, number>();

/** Whether to log a failure about a key, response or rule now. If so, records the time. */
export function isFailureDue(subject: string): boolean {
  // A program can create configurations at run time, so the number of names is bounded here.
  if (lastFailures.size >= MAX_SUBJECTS && !lastFailures.has(subject)) lastFailures.clear();
  return isDue(lastFailures, subject, FAILURE_INTERVAL_MS);
}

function isDue<Subject>(lastTimes: Map<Subject, number>, subject: Subject, intervalMs: number) {
  const now = Date.now();
  const last = lastTimes.get(subject);
  // A time in the future does not count as recent, because it shows that the clock was set back.
  if (last !== undefined && last <= now && now - last < intervalMs) return false;
  lastTimes.set(subject, now);
  return true;
}

// Operators read these log lines in `wrangler tail` and Workers Logs. docs/responses.md lists every
// line.

/** The denials of this isolate. All configurations of an isolate share the number of lines. */
const denialLog = new DenialLog((event, fields) => logLine("log", event, fields), waitUntil);

/**
 * Logs which rule denied a request, which rules in shadow mode would have denied it, why the
 * decision or one of its rules is undecided, and why this isolate decided alone. In all other cases
 * nothing is logged. A mark is not logged, because the origin gets it.
 *
 * @param denialsPerSecond the maximum number of lines about denials: the field `denialLog`
 * @param request undefined for calls of programs
 */
export function logDecision(
  decision: Decision,
  denialsPerSecond: number,
  request?: RequestPlace,
): void {
  if (decision.outcome === "undecided") {
    logUndecided(decision);
    return;
  }
  const { verdicts, storeFailure } = decision;
  if (decision.outcome === "limited") {
    const { deniedBy, quotas, retryAfterMs } = decision;
    const policy = quotas.find(isViolated)?.policy ?? deniedBy.appliedRule.rule.name;
    const mode = storeFailure ? "local" : "enforce";
    logDenial(mode, deniedBy, { policy, retryAfterMs }, denialsPerSecond, request);
  }
  logOtherRules(verdicts, denialsPerSecond, request);
  if (storeFailure) logUndecided(storeFailure, "counted locally");
}

/** Logs the denials of rules in shadow mode, and why rules in other modes than `enforce` are undecided. */
function logOtherRules(
  verdicts: readonly RuleVerdict[],
  denialsPerSecond: number,
  request: RequestPlace | undefined,
): void {
  for (const verdict of verdicts) {
    const { appliedRule, quotas, failure, pendingVerdict } = verdict;
    const { mode, name } = appliedRule.rule;
    if (mode === "enforce") continue;
    if (pendingVerdict) {
      waitUntil(pendingVerdict.then((late) => logOtherRules(late, denialsPerSecond, request)));
    } else if (failure) {
      const event = `${mode}-undecided` as const;
      if (isOutageDue(event)) logLine("error", event, { policy: name, ...failure });
    } else if (mode === "shadow") {
      for (const exceeded of quotas.filter(isViolated)) {
        logDenial("shadow", verdict, exceeded, denialsPerSecond, request);
      }
    }
  }
}

function logDenial(
  mode: Denial["mode"],
  { appliedRule, cost }: RuleVerdict,
  { policy, retryAfterMs }: Pick<Quota, "policy" | "retryAfterMs">,
  denialsPerSecond: number,
  request: RequestPlace | undefined,
): void {
  const { rule, identity: client } = appliedRule;
  const denial = { mode, rule: rule.name, policy, client, cost, retryAfterMs };
  denialLog.add(denial, denialsPerSecond, request);
}

/**
 * Logs why the store could not decide a request or make a charge, at most once in ten seconds.
 *
 * @param requests how the request was handled; by default, as `failure` says
 */
export function logUndecided(
  failure: Undecided,
  requests: "pass" | "503" | "counted locally" = failure.open ? "pass" : "503",
): void {
  if (!isOutageDue("undecided")) return;
  const { cause, detail } = failure;
  logLine("error", "undecided", { cause, detail, requests });
}

/** Logs that this isolate stops or resumes calling the store, or one object of the store. */
export function logBreaker(state: BreakerState, scope: BreakerScope): void {
  const isObject = scope === "object";
  logLine(state === "open" ? "error" : "log", "breaker", { state, ...(isObject && { scope }) });
}

/** Logs a binding that cannot work. */
export function logMisconfigured(fault: string): void {
  logLine("error", "misconfigured", { fault });
}

/** Logs that all rules are in shadow mode or off. The level is error, so that operators notice. */
export function logMode(mode: DeploymentMode): void {
  logLine("error", "mode", { mode });
}

/** Logs that a call to the control object failed, at most once in ten seconds for each task. */
export function logControlFailed(task: ControlTask, detail: string): void {
  if (isOutageDue(task)) logLine("error", "control-failed", { task, detail });
}

/** Logs that a function for a key `custom:NAME` failed, at most once a second for each key. */
export function logCustomKeyFailed(key: string, cause: CustomFailure): void {
  if (isFailureDue(`key ${key}`)) logLine("error", "custom-key-failed", { key, cause });
}

/** Logs that a function in `custom.responses` failed, at most once a second for each function. */
export function logCustomResponseFailed(response: string, cause: CustomResponseFailure): void {
  if (!isFailureDue(`response ${response}`)) return;
  logLine("error", "custom-response-failed", { response, cause });
}

/** Logs that the cost of a request could not be read, at most once a second for each rule. */
export function logUnreadableCost(rule: string, source: string, cause: UnknownCost): void {
  if (isFailureDue(`cost ${rule}`)) logLine("error", "cost-unreadable", { rule, source, cause });
}
