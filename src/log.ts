import { waitUntil } from "cloudflare:workers";
import type { DeploymentMode } from "./config/deployment-mode.ts";
import type { CustomResponseFailure } from "./http/custom-denial.ts";
import type { Decision, RuleUndecided, ShadowResults, Undecided } from "./limiter/decision.ts";
import type { UnknownCost } from "./limiter/response-charges.ts";
import type { CustomFailure } from "./request/custom-calls.ts";
import type { BreakerScope, BreakerState } from "./stores/breaker.ts";

// Operators read these log lines in `wrangler tail` and Workers Logs. The lines are JSON, and
// contain no keys, addresses or secrets. docs/responses.md lists every line.

/** An isolate logs outages at most once in this many milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;
/** The minimum time between two logged failures about the same key, response or rule, in milliseconds. */
const FAILURE_INTERVAL_MS = 1000;
/** The maximum number of entries in `lastFailures`. */
const MAX_SUBJECTS = 1000;

/**
 * Logs why a decision or one of its rules is undecided, why this isolate decided alone, and which
 * rules in shadow mode would have denied the request. In all other cases nothing is logged. A mark
 * is not logged, because the origin gets it.
 */
export function logDecision(decision: Decision): void {
  if (decision.outcome === "undecided") {
    logUndecided(decision, decision.open ? "pass" : "503");
    return;
  }
  logShadow(decision.shadow);
  if (decision.outcome === "allowed") {
    for (const mark of decision.undecidedMarks ?? []) logRuleUndecided("mark-undecided", mark);
  }
  if (decision.storeFailure) logUndecided(decision.storeFailure, "counted locally");
}

/** Logs that this isolate stops or resumes calling the store, or one object of the store. */
export function logBreaker(state: BreakerState, scope: BreakerScope): void {
  const isObject = scope === "object";
  log(state === "open" ? "error" : "log", "breaker", { state, ...(isObject && { scope }) });
}

/** Logs a binding that cannot work. */
export function logMisconfigured(fault: string): void {
  log("error", "misconfigured", { fault });
}

/** Logs that all rules are in shadow mode or off. The level is error, so that operators notice. */
export function logMode(mode: DeploymentMode): void {
  log("error", "mode", { mode });
}

let lastOutageAt = Number.NEGATIVE_INFINITY;

/** @param requests how the request was handled */
function logUndecided(
  { cause, detail }: Undecided,
  requests: "pass" | "503" | "counted locally",
): void {
  const now = Date.now();
  if (isRecent(lastOutageAt, now)) return;
  lastOutageAt = now;
  log("error", "undecided", { cause, detail, requests });
}

function logShadow(shadow: ShadowResults): void {
  for (const result of shadow) {
    if (result instanceof Promise) waitUntil(result.then(logShadow));
    else if ("cause" in result) logRuleUndecided("shadow-undecided", result);
    else log("log", "shadow-denied", { policy: result.policy });
  }
}

const lastRuleOutages = {
  "shadow-undecided": Number.NEGATIVE_INFINITY,
  "mark-undecided": Number.NEGATIVE_INFINITY,
};

function logRuleUndecided(
  event: keyof typeof lastRuleOutages,
  { policy, cause, detail }: RuleUndecided,
): void {
  const now = Date.now();
  if (isRecent(lastRuleOutages[event], now)) return;
  lastRuleOutages[event] = now;
  log("error", event, { policy, cause, detail });
}

/** Logs that a function for a key `custom:NAME` failed, at most once a second for each key. */
export function logCustomKeyFailed(key: string, cause: CustomFailure): void {
  if (isDue(`key ${key}`)) log("error", "custom-key-failed", { key, cause });
}

/** Logs that a function in `custom.responses` failed, at most once a second for each function. */
export function logCustomResponseFailed(response: string, cause: CustomResponseFailure): void {
  if (isDue(`response ${response}`)) log("error", "custom-response-failed", { response, cause });
}

/** Logs that the cost of a request could not be read, at most once a second for each rule. */
export function logUnreadableCost(rule: string, source: string, cause: UnknownCost): void {
  if (isDue(`cost ${rule}`)) log("error", "cost-unreadable", { rule, source, cause });
}

/** The times at which this isolate last logged a failure, by the key, response or rule. */
const lastFailures = new Map<string, number>();

/** Whether to log a failure about a key, response or rule now. If so, records the time. */
function isDue(subject: string): boolean {
  const now = Date.now();
  const last = lastFailures.get(subject);
  if (last !== undefined && isRecent(last, now, FAILURE_INTERVAL_MS)) return false;
  // A program can create configurations at run time, so the number of names is bounded here.
  if (lastFailures.size >= MAX_SUBJECTS) lastFailures.clear();
  lastFailures.set(subject, now);
  return true;
}

/** A time in the future does not count as recent, because it shows that the clock was set back. */
function isRecent(then: number, now: number, intervalMs = OUTAGE_INTERVAL_MS): boolean {
  return then <= now && now - then < intervalMs;
}

function log(level: "log" | "error", event: string, fields: Record<string, unknown>): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}
