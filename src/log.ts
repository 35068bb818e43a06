import { waitUntil } from "cloudflare:workers";
import type { ShadowResults, ShadowUndecided, Undecided } from "./limiter/decision.ts";
import type { BreakerScope, BreakerState } from "./stores/breaker.ts";

// What operators see in `wrangler tail`: lines of JSON, without keys, addresses or secrets.

/** Outages are told at most this often by an isolate, in milliseconds. */
const OUTAGE_INTERVAL_MS = 10_000;

/** What becomes of undecided requests with `onError: "local"`. */
export const COUNTED_LOCALLY = "counted locally";

let lastOutageAt = Number.NEGATIVE_INFINITY;

/** Says that the store could not decide, why, and what became of the requests. */
export function logUndecided(
  { cause, detail, open }: Undecided,
  requests = open ? "pass" : "503",
): void {
  const now = Date.now();
  if (isRecent(lastOutageAt, now)) return;
  lastOutageAt = now;
  log("error", "undecided", { cause, detail, requests });
}

/** Logs that the store, or one object of it, is left alone from now on, or called again. */
export function logBreaker(state: BreakerState, scope: BreakerScope): void {
  const isObject = scope === "object";
  log(state === "open" ? "error" : "log", "breaker", { state, ...(isObject && { scope }) });
}

/** Logs which policies of rules in shadow mode would have denied a request, and which are undecided. */
export function logShadow(shadow: ShadowResults): void {
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

/** Says what of the bindings cannot work. */
export function logMisconfigured(fault: string): void {
  log("error", "misconfigured", { fault });
}

/** A time to come is one by a clock that has been put back. */
function isRecent(then: number, now: number): boolean {
  return then <= now && now - then < OUTAGE_INTERVAL_MS;
}

function log(level: "log" | "error", event: string, fields: Record<string, unknown>): void {
  console[level](JSON.stringify({ weir: event, ...fields }));
}
