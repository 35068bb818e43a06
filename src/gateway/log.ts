import { waitUntil } from "cloudflare:workers";
import type { DeploymentMode } from "../config/bindings.ts";
import type { QuotaEvent } from "../config/custom.ts";
import type { ControlTask } from "../control/control-link.ts";
import type { CustomResponseFailure } from "../http/custom-denial.ts";
import type { UnknownCost } from "../limiter/cost.ts";
import {
  type Decision,
  EXCEEDS_LIMIT,
  isViolated,
  type Quota,
  type RuleVerdict,
  type Undecided,
} from "../limiter/decision.ts";
import type { LimitFailure } from "../request/client-limits.ts";
import { coloOf } from "../request/colo.ts";
import type { CustomFailure } from "../request/custom-calls.ts";
import type { BreakerScope, BreakerState } from "../stores/breaker.ts";

/** The minimum time between two logged outages, in milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;
/** The minimum time between two logged failures of the same key, response or rule, in milliseconds. */
const FAILURE_INTERVAL_MS = 1000;
/** The maximum number of remembered times, because a program can create configurations at run time. */
const MAX_SUBJECTS = 1000;

/** Writes a line of JSON. The lines contain no keys, addresses or secrets. */
export function logLine(
  level: "log" | "error",
  event: string,
  fields: Record<string, unknown>,
): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}

/** The times at which this isolate last logged an outage, or a failure of a key, response or rule. */
const lastTimes = new Map<string, number>();

/** Whether to log an outage or a failure now. If so, stores the time. */
function isDue(subject: string, intervalMs: number): boolean {
  if (lastTimes.size >= MAX_SUBJECTS && !lastTimes.has(subject)) lastTimes.clear();
  const now = Date.now();
  const last = lastTimes.get(subject);
  // A time in the future is not recent, because the clock was then set back.
  if (last !== undefined && last <= now && now - last < intervalMs) return false;
  lastTimes.set(subject, now);
  return true;
}

// Operators read these log lines in `wrangler tail` and Workers Logs. docs/responses.md describes them.

/**
 * Logs which rule denied a request, which rules in shadow mode would have denied it, why the decision or one of its
 * rules is undecided, and why this isolate decided alone. Logs no marks, because the origin gets them.
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
    const time = retryAfterMs === undefined ? {} : { retryAfterMs };
    logDenial(mode, deniedBy, { policy, ...time }, denialsPerSecond, request);
  }
  logOtherRules(verdicts, denialsPerSecond, request);
  if (decision.outcome === "allowed" && decision.ahead) {
    waitUntil(decision.ahead.verdicts.then((late) => logAhead(late, denialsPerSecond, request)));
  }
  if (storeFailure) logUndecided(storeFailure, "counted locally");
}

/**
 * Logs the denials of rules in shadow mode, and the reasons why rules in other modes than `enforce` are undecided.
 */
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
      if (isDue(event, OUTAGE_INTERVAL_MS)) logLine("error", event, { policy: name, ...failure });
    } else if (mode === "shadow") {
      for (const exceeded of quotas.filter(isViolated)) {
        logDenial("shadow", verdict, exceeded, denialsPerSecond, request);
      }
    }
  }
}

/** Logs the rules that have denied a request after it had passed, and the reasons why rules are undecided. */
function logAhead(
  verdicts: readonly RuleVerdict[],
  denialsPerSecond: number,
  request: RequestPlace | undefined,
): void {
  for (const verdict of verdicts) {
    const { quotas, failure } = verdict;
    const exceeded = quotas.find(isViolated);
    if (failure) logUndecided({ outcome: "undecided", open: true, ...failure });
    if (exceeded) logDenial("ahead", verdict, exceeded, denialsPerSecond, request);
  }
}

/** The parts of a request that a log line contains. Both may have any value. */
interface RequestPlace {
  readonly headers: Pick<Headers, "get">;
  readonly cf?: unknown;
}

/**
 * Matches the form that Cloudflare gives to `cf-ray`. Without Cloudflare in front, a client can send any `cf-ray`, so
 * the log omits other texts.
 */
const RAY = /^[0-9a-f]{8,32}(-[A-Z]{3})?$/i;

/** The time of the last denial, in seconds since the Unix epoch, for all configurations of an isolate. */
let denialSecond = 0;
/** The lines about denials in this second. */
let denialLines = 0;
/** The denials without a line since they were last reported. */
let omittedDenials = 0;

/**
 * Logs a line for a denial, but at most `denialsPerSecond` lines in each second of the clock. The first denial of a
 * later second reports the number of denials without a line.
 *
 * @param mode `local`: this isolate counted alone, because the store failed (`onError: "local"`). `ahead`: the request
 * had passed before the store denied it (`async`)
 */
function logDenial(
  mode: "enforce" | "shadow" | "local" | "ahead",
  { appliedRule, cost }: RuleVerdict,
  { policy, retryAfterMs }: Pick<Quota, "policy" | "retryAfterMs">,
  denialsPerSecond: number,
  request: RequestPlace | undefined,
): void {
  if (denialsPerSecond === 0) return;
  const second = Math.floor(Date.now() / 1000);
  if (second !== denialSecond) {
    if (omittedDenials > 0) logLine("log", "denied-omitted", { count: omittedDenials });
    denialSecond = second;
    denialLines = 0;
    omittedDenials = 0;
  }
  if (denialLines >= denialsPerSecond) {
    omittedDenials++;
    return;
  }
  denialLines++;
  const { rule, identity: client } = appliedRule;
  const time = retryAfterMs === undefined ? { reason: EXCEEDS_LIMIT } : { retryAfterMs };
  const denial = { mode, rule: rule.name, policy, client, cost, ...time };
  logLine("log", "denied", { ...denial, ...(request && fieldsOf(request)) });
}

function fieldsOf({ headers, cf }: RequestPlace): { colo?: string; ray?: string } {
  const ray = headers.get("cf-ray");
  const colo = coloOf(cf);
  return {
    ...(colo !== undefined && { colo }),
    ...(ray && RAY.test(ray) && { ray }),
  };
}

/**
 * Logs why the store could not decide a request or make a charge, at most once in ten seconds.
 *
 * @param requests how Weir handled the request; the field `open` of `failure` determines the default
 */
export function logUndecided(
  failure: Undecided,
  requests: "pass" | "503" | "counted locally" = failure.open ? "pass" : "503",
): void {
  if (!isDue("undecided", OUTAGE_INTERVAL_MS)) return;
  const { cause, detail } = failure;
  logLine("error", "undecided", { cause, detail, requests });
}

export function logBreaker(state: BreakerState, scope: BreakerScope): void {
  const isObject = scope === "object";
  logLine(state === "open" ? "error" : "log", "breaker", { state, ...(isObject && { scope }) });
}

export function logMisconfigured(fault: string): void {
  logLine("error", "misconfigured", { fault });
}

/** Logs that all rules are in shadow mode or off, as an error, so that operators notice. */
export function logMode(mode: DeploymentMode): void {
  logLine("error", "mode", { mode });
}

export function logControlFailed(task: ControlTask, detail: string): void {
  if (isDue(task, OUTAGE_INTERVAL_MS)) logLine("error", "control-failed", { task, detail });
}

export function logCustomKeyFailed(key: string, cause: CustomFailure): void {
  if (isDue(`key ${key}`, FAILURE_INTERVAL_MS))
    logLine("error", "custom-key-failed", { key, cause });
}

export function logCustomResponseFailed(response: string, cause: CustomResponseFailure): void {
  if (!isDue(`response ${response}`, FAILURE_INTERVAL_MS)) return;
  logLine("error", "custom-response-failed", { response, cause });
}

export function logUnreadableCost(rule: string, source: string, cause: UnknownCost): void {
  if (isDue(`cost ${rule}`, FAILURE_INTERVAL_MS))
    logLine("error", "cost-unreadable", { rule, source, cause });
}

/** @param client the client's hash, so that operators can find the client whose number is faulty */
export function logUnreadableLimit(source: string, cause: LimitFailure, client: string): void {
  // A client without a number must not hide another one's faulty number.
  if (isDue(`limit ${source} ${cause}`, FAILURE_INTERVAL_MS))
    logLine("error", "limit-unreadable", { source, cause, client });
}

/** Logs that a client has used a share of its quota. Each such event has its line, so that operators can count them. */
export function logQuotaUsed(event: QuotaEvent): void {
  logLine("log", "quota-used", { ...event });
}

export function logEventFailed(rule: string): void {
  if (isDue(`event ${rule}`, FAILURE_INTERVAL_MS)) logLine("error", "event-failed", { rule });
}
