import { resolveBindings } from "./config/bindings.ts";
import { type Env, textVar } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import type { Counter } from "./engine/counter.ts";
import { logMisconfigured } from "./log.ts";
import { createStore } from "./stores/create-store.ts";

// The endpoint that `weir doctor --at <url>` calls. cli/doctor/worker.ts reads its answers.

const PATH = "/_weir/doctor";
const ADMIN_TOKEN = "WEIR_ADMIN_TOKEN";
const MIN_ADMIN_TOKEN = 32;

/** The prefix of the counter that a run charges. No rule has this prefix by default. */
const PREFIX = "weir-doctor";
const DECISIONS = 5;
/** A run makes no more decisions after this time, in milliseconds. */
const MAX_RUN_MS = 10_000;

/**
 * Answers a request to the doctor's endpoint that has the admin token. Every other request gets no
 * answer, so that it continues like all requests, and nobody can find out whether the endpoint exists.
 *
 * @returns undefined, also as a promise, if the request has to continue
 */
export type Doctor = (request: Request) => Promise<Response | undefined> | undefined;

/**
 * Creates the doctor of an isolate. If the admin token is faulty, logs the fault.
 *
 * @returns undefined if no valid admin token is set, so that requests cost nothing extra
 */
export function createDoctor(config: Config, env: Env): Doctor | undefined {
  const token = textVar(env, ADMIN_TOKEN);
  if (token === undefined) return undefined;
  if (token.length < MIN_ADMIN_TOKEN) {
    logMisconfigured(`${ADMIN_TOKEN} has fewer than ${MIN_ADMIN_TOKEN} characters`);
    return undefined;
  }
  return (request) => {
    if (request.method !== "POST" || URL.parse(request.url)?.pathname !== PATH) return undefined;
    return answer(request, token, config, env);
  };
}

/** The time until which a run may last. A run that was cancelled does not reset it. */
let busyUntil = 0;

async function answer(request: Request, token: string, config: Config, env: Env) {
  const sent = request.headers.get("authorization") ?? "";
  if (!(await isSame(sent, `Bearer ${token}`))) return undefined;
  const now = Date.now();
  if (now < busyUntil) return respond({ weir: "busy" }, 503);
  const until = now + MAX_RUN_MS + config.timeoutMs;
  busyUntil = until;
  try {
    return respond({ ...(await examine(config, env)), colo: request.cf?.colo });
  } finally {
    // A run that was cancelled may end while the next run lasts.
    if (busyUntil === until) busyUntil = 0;
  }
}

/** Compares texts in constant time. The hashes have the same length, and the texts may not. */
async function isSame(one: string, other: string): Promise<boolean> {
  const hash = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await hash(one), await hash(other));
}

function respond(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { "Cache-Control": "no-store" } });
}

/** Makes decisions about a counter of its own, one after the other, and then removes the counter. */
async function examine(config: Config, env: Env): Promise<object> {
  const { clock, timeoutMs } = config;
  const { store: binding, origin, limiterFaults, requestFaults } = resolveBindings(config, env);
  const store = createStore(binding, { clock, timeoutMs, prefix: PREFIX });
  const identity = crypto.randomUUID();
  const quota = { limit: DECISIONS, ceiling: DECISIONS, windowMs: 60_000, offsetMs: 0, cost: 1 };
  const counter: Counter = { key: `${PREFIX}:${identity}`, identity, ...quota };
  const decisionsMs: number[] = [];
  let [fastestMs, skewMs, error]: [number, number | undefined, unknown] = [
    Infinity,
    undefined,
    undefined,
  ];
  const startedAt = Date.now();
  try {
    while (decisionsMs.length < DECISIONS && Date.now() - startedAt < MAX_RUN_MS) {
      const before = Date.now();
      const { now } = await store.decide([[counter]]);
      const tookMs = Date.now() - before;
      decisionsMs.push(tookMs);
      if (tookMs < fastestMs) [fastestMs, skewMs] = [tookMs, now - before - tookMs / 2];
    }
    await store.reset([counter]);
  } catch (failure) {
    // A `StoreError` contains neither keys nor secrets.
    error = String(failure);
  }
  // With `clock: "edge"`, Redis returns the Worker's own time.
  const { kind } = binding;
  const hasClock = kind === "durable-object" || (kind === "upstash" && clock === "redis");
  return {
    weir: "doctor",
    store: kind,
    timeoutMs,
    decisionsMs,
    skewMs: hasClock ? skewMs : undefined,
    faults: [...limiterFaults, ...requestFaults, ...("fault" in origin ? [origin.fault] : [])],
    error,
  };
}
