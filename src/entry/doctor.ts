import { type Env, originFaults, resolveBindings } from "../config/bindings.ts";
import type { Config } from "../config/schema.ts";
import type { Demand } from "../engine/counter.ts";
import { createStore } from "../stores/create-store.ts";
import type { Store } from "../stores/store.ts";

// The endpoint that `weir doctor --at <url>` calls. cli/doctor/worker.ts reads its responses.

export const DOCTOR_PATH = "/_weir/doctor";

const DECISIONS = 5;
/** The time in milliseconds after which a run makes no more decisions. */
const MAX_RUN_MS = 10_000;
/**
 * The maximum number of calls after `MAX_RUN_MS`: the last decision, and up to two calls that remove the counter.
 */
const LAST_CALLS = 3;

/** The latest time at which the current run ends. A cancelled run does not reset this time. */
let busyUntil = 0;

/** Measures the store, for a request of an operator. An isolate has one run at a time. */
export async function runDoctor(
  request: Request,
  config: Config,
  env: Env,
  usesOrigin: boolean,
): Promise<Response> {
  const now = Date.now();
  if (now < busyUntil) return respond({ weir: "busy" }, 503);
  const until = now + MAX_RUN_MS + LAST_CALLS * config.timeoutMs;
  busyUntil = until;
  try {
    return respond({ ...(await examine(config, env, usesOrigin)), colo: request.cf?.colo });
  } finally {
    // A cancelled run may end during the next run.
    if (busyUntil === until) busyUntil = 0;
  }
}

function respond(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { "Cache-Control": "no-store" } });
}

/** Makes decisions about a new counter, one after the other, and then removes the counter. */
async function examine(config: Config, env: Env, usesOrigin: boolean): Promise<object> {
  const { timeoutMs } = config;
  const bindings = resolveBindings(config, env);
  const { store: binding, clock, mode, limiterFaults, requestFaults } = bindings;
  const identity = crypto.randomUUID();
  // The database's token may be restricted to keys with Weir's prefix, so these keys have this prefix. They differ
  // from all keys of rules, in which a window follows the rule's name.
  const prefix = `${bindings.prefix}:doctor-${identity.slice(0, 8)}`;
  const store = createStore(binding, { clock, timeoutMs, prefix });
  const quota = { limit: DECISIONS, ceiling: DECISIONS, windowMs: 60_000, offsetMs: 0, cost: 1 };
  const counter: Demand = { key: `${prefix}:${identity}`, identity, ...quota };
  const measured = await measure(store, counter);
  // With `clock: "edge"`, Redis returns the Worker's own time.
  const { kind } = binding;
  const hasClock = kind === "durable-object" || (kind === "upstash" && clock === "store");
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

async function measure(store: Store, counter: Demand) {
  const decisionsMs: number[] = [];
  let fastestMs = Infinity;
  let skewMs: number | undefined;
  let error: string | undefined;
  const startedAt = Date.now();
  try {
    while (decisionsMs.length < DECISIONS && Date.now() - startedAt < MAX_RUN_MS) {
      const before = Date.now();
      const [answer] = await Promise.all(store.decide([[counter]]));
      const tookMs = Date.now() - before;
      decisionsMs.push(tookMs);
      if (!answer || tookMs >= fastestMs) continue;
      fastestMs = tookMs;
      skewMs = answer.now - before - tookMs / 2;
    }
  } catch (failure) {
    // A `StoreError` contains neither keys nor secrets.
    error = String(failure);
  }
  try {
    // A failed decision may have charged the counter.
    await store.reset([counter]);
  } catch (failure) {
    error ??= String(failure);
  }
  return { decisionsMs, skewMs, error };
}
