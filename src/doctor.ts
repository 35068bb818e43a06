import { ADMIN_TOKEN } from "./config/binding-names.ts";
import { originFaults, resolveBindings } from "./config/bindings.ts";
import { type Env, textVar } from "./config/env.ts";
import type { Config } from "./config/schema.ts";
import type { Counter } from "./engine/counter.ts";
import { logMisconfigured } from "./log.ts";
import { createStore } from "./stores/create-store.ts";
import type { Store } from "./stores/store.ts";

// The endpoint that `weir doctor --at <url>` calls. cli/doctor/worker.ts reads its answers.

const PATH = "/_weir/doctor";
const MIN_ADMIN_TOKEN = 32;

const DECISIONS = 5;
/** A run makes no more decisions after this time, in milliseconds. */
const MAX_RUN_MS = 10_000;
/**
 * The number of calls that a run may make after this time: the last decision, and the removal of
 * the counter, which takes two calls if Redis does not have the script.
 */
const LAST_CALLS = 3;

/**
 * Answers a request to the doctor's endpoint that has the admin token. For every other request, it
 * returns undefined. Such a request continues like any request, so that nobody can find out whether the
 * endpoint exists.
 *
 * @param usesOrigin whether Weir forwards requests to the configured origin, so that a fault of the
 * origin matters
 * @returns undefined, also as a promise, if the request has to continue
 */
export type Doctor = (
  request: Request,
  usesOrigin: boolean,
) => Promise<Response | undefined> | undefined;

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
  return (request, usesOrigin) => {
    if (request.method !== "POST" || URL.parse(request.url)?.pathname !== PATH) return undefined;
    return answer(request, token, () => examine(config, env, usesOrigin), config.timeoutMs);
  };
}

/** The time until which a run may last. A run that was cancelled does not reset it. */
let busyUntil = 0;

async function answer(
  request: Request,
  token: string,
  run: () => Promise<object>,
  timeoutMs: number,
) {
  const sent = request.headers.get("authorization") ?? "";
  if (!(await isSame(sent, `Bearer ${token}`))) return undefined;
  const now = Date.now();
  if (now < busyUntil) return respond({ weir: "busy" }, 503);
  const until = now + MAX_RUN_MS + LAST_CALLS * timeoutMs;
  busyUntil = until;
  try {
    return respond({ ...(await run()), colo: request.cf?.colo });
  } finally {
    // A run that was cancelled may end while the next run lasts.
    if (busyUntil === until) busyUntil = 0;
  }
}

/** Compares texts in constant time. It compares hashes, because the texts may have different lengths. */
async function isSame(one: string, other: string): Promise<boolean> {
  const hash = (text: string) => crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return crypto.subtle.timingSafeEqual(await hash(one), await hash(other));
}

function respond(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { "Cache-Control": "no-store" } });
}

/** Makes decisions about a counter of its own, one after the other, and then removes the counter. */
async function examine(config: Config, env: Env, usesOrigin: boolean): Promise<object> {
  const { clock, timeoutMs } = config;
  const bindings = resolveBindings(config, env);
  const { store: binding, mode, limiterFaults, requestFaults } = bindings;
  const identity = crypto.randomUUID();
  // A token may be limited to Weir's prefix. No key of a rule begins with this text: in such a key,
  // a window, such as `1m`, comes directly after the rule's name.
  const prefix = `${bindings.prefix}:doctor-${identity.slice(0, 8)}`;
  const store = createStore(binding, { clock, timeoutMs, prefix });
  const quota = { limit: DECISIONS, ceiling: DECISIONS, windowMs: 60_000, offsetMs: 0, cost: 1 };
  const counter: Counter = { key: `${prefix}:${identity}`, identity, ...quota };
  const measured = await measure(store, counter);
  // With `clock: "edge"`, Redis returns the Worker's own time.
  const { kind } = binding;
  const hasClock = kind === "durable-object" || (kind === "upstash" && clock === "redis");
  return {
    weir: "doctor",
    store: kind,
    mode,
    timeoutMs,
    ...measured,
    skewMs: hasClock ? measured.skewMs : undefined,
    faults: [...limiterFaults, ...requestFaults, ...(usesOrigin ? originFaults(bindings) : [])],
  };
}

async function measure(store: Store, counter: Counter) {
  const decisionsMs: number[] = [];
  let [fastestMs, skewMs, error]: [number, number | undefined, string | undefined] = [
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
  } catch (failure) {
    // A `StoreError` contains neither keys nor secrets.
    error = String(failure);
  }
  try {
    // A decision that failed may have charged the counter.
    await store.reset([counter]);
  } catch (failure) {
    error ??= String(failure);
  }
  return { decisionsMs, skewMs, error };
}
