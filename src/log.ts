import { waitUntil } from "cloudflare:workers";
import type { Decision, ShadowResults, ShadowUndecided, Undecided } from "./limiter/decision.ts";
import type { CustomKeyFailure } from "./request/custom-key.ts";
import type { BreakerScope, BreakerState } from "./stores/breaker.ts";

// Operators read these log lines in `wrangler tail` and Workers Logs. The lines are JSON, and
// contain no keys, addresses or secrets. docs/responses.md lists every line.

/** An isolate logs outages at most once in this many milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;
/** An isolate logs the failures of a function at most once in this many milliseconds. */
const CUSTOM_KEY_INTERVAL_MS = 1000;
/** The maximum number of keys for which an isolate remembers when it logged a failure. */
const MAX_CUSTOM_KEYS = 1000;

/**
 * If a decision is undecided or was made by this isolate alone, logs the reason. Also logs the
 * rules in shadow mode that would have denied the request. Logs nothing in all other cases.
 */
export function logDecision(decision: Decision): void {
  if (decision.outcome === "undecided") {
    logUndecided(decision, decision.open ? "pass" : "503");
    return;
  }
  logShadow(decision.shadow);
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
    else if ("cause" in result) logShadowUndecided(result);
    else log("log", "shadow-denied", { policy: result.policy });
  }
}

let lastShadowOutageAt = Number.NEGATIVE_INFINITY;

function logShadowUndecided({ policy, cause, detail }: ShadowUndecided): void {
  const now = Date.now();
  if (isRecent(lastShadowOutageAt, now)) return;
  lastShadowOutageAt = now;
  log("error", "shadow-undecided", { policy, cause, detail });
}

/** The time at which this isolate last logged a failure of a function, by the name of its key. */
const lastCustomFailures = new Map<string, number>();

/** Logs that a function for a key `custom:NAME` failed, at most once a second for each key. */
export function logCustomKeyFailed(key: string, cause: CustomKeyFailure): void {
  const now = Date.now();
  const last = lastCustomFailures.get(key);
  if (last !== undefined && isRecent(last, now, CUSTOM_KEY_INTERVAL_MS)) return;
  // A program can create configurations at run time, so the number of names is bounded here.
  if (lastCustomFailures.size >= MAX_CUSTOM_KEYS) lastCustomFailures.clear();
  lastCustomFailures.set(key, now);
  log("error", "custom-key-failed", { key, cause });
}

/** A time in the future does not count as recent, because it shows that the clock was set back. */
function isRecent(then: number, now: number, intervalMs = OUTAGE_INTERVAL_MS): boolean {
  return then <= now && now - then < intervalMs;
}

function log(level: "log" | "error", event: string, fields: Record<string, unknown>): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}
