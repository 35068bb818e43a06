import { randomUUID } from "node:crypto";
import { calendarOf, calendarStartAt } from "../../src/config/calendar.ts";
import { banKey, strikesKey } from "../../src/engine/bans.ts";
import { type Counter, storedKey } from "../../src/engine/counter.ts";
import { type Store, StoreError } from "../../src/stores/store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { type Examination, newKey } from "./examination.ts";
import { type Finding, finding, plural, quoted } from "./finding.ts";
import { refusal } from "./refusal.ts";
import { createScriptClient } from "./script-client.ts";
import { timeIn } from "./timing.ts";
import { DOCTOR_VECTORS } from "./vectors/doctor-vectors.ts";
import { baseOf, complete, type PreparedStep, prepareStep, runStep } from "./vectors/run-step.ts";
import type { Outcome, Step, Vector } from "./vectors/vector.ts";

/**
 * The largest allowed difference from a ban's expected time, in milliseconds. A ban runs in real
 * time, but a vector sets its own times.
 */
const BAN_TOLERANCE_MS = 60_000;
/**
 * The length of the windows with the clock of Redis, in milliseconds. A run must not cross the end
 * of a window, so it begins in the middle of one.
 */
const WINDOW_MS = 120_000;

/** The vectors that need no clock: all of their steps are made at the same time. */
const CLOCKLESS = DOCTOR_VECTORS.filter(({ steps }) =>
  steps.every(({ at }) => at === steps[0]?.at),
);

/** Runs a vector on a store. Returns the first difference as a text; undefined if there is none. */
type Runner = (store: Store, vector: Vector) => Promise<string | undefined>;

/**
 * Runs vectors through Weir's own store. With the clock `redis`, the caller cannot set times, so
 * only vectors without times run. All vectors run with the clock `edge`, if the server accepts the
 * flag of its script.
 */
export async function checkVectors(
  examination: Examination,
  acceptsFlag: boolean,
): Promise<Finding[]> {
  const runs: { clock: "edge" | "redis"; vectors: readonly Vector[] }[] = [];
  if (examination.config.clock === "redis") runs.push({ clock: "redis", vectors: CLOCKLESS });
  if (acceptsFlag) runs.push({ clock: "edge", vectors: DOCTOR_VECTORS });
  const differences: string[] = [];
  const client = createScriptClient(examination.rest);
  const { url, token, rest } = examination;
  const timeoutMs = rest.callTimeoutMs;
  try {
    for (const { clock, vectors } of runs) {
      const store = createUpstashStore({ url, token, clock, timeoutMs, client });
      const run = clock === "edge" ? timedRunner(examination) : await clocklessRunner(examination);
      for (const vector of vectors) {
        const difference = await run(store, vector);
        if (difference) differences.push(`"${vector.name}" (clock ${clock}): ${difference}`);
      }
    }
  } catch (error) {
    // If a call fails, the store throws its own error, which does not contain the reason.
    if (client.failure) throw client.failure;
    if (!(error instanceof StoreError)) throw error;
    return [failureFinding(error, token)];
  }
  const count = runs.reduce((sum, { vectors }) => sum + vectors.length, 0);
  if (differences.length > 0) {
    const value = `${differences.length} of ${plural(count, "vector")}: ${differences[0]}`;
    return [finding("vector-differs", value)];
  }
  return [finding("vectors-ok", `${plural(count, "vector")}, each as expected`)];
}

function failureFinding({ failure, message }: StoreError, token: string): Finding {
  const error = quoted(message, [token]);
  return refusal(error) ?? finding("vectors-failed", `${failure}: ${error}`);
}

/** Runs a vector at times that the caller chooses, and compares all of its results. */
function timedRunner(examination: Examination): Runner {
  return async (store, vector) => {
    const base = baseOf(vector);
    const key = newCounterKey(examination);
    for (const [index, step] of vector.steps.entries()) {
      const prepared = prepareStep(key, vector, step, base);
      noteKeys(examination, prepared.counter, [prepared.now]);
      const { outcome } = await runStep(store, step, prepared);
      const difference = compare(step.expect && complete(step.expect), outcome);
      if (difference) return `step ${index + 1}: ${difference}`;
    }
    return undefined;
  };
}

/** Runs a vector at the time of Redis, and compares the results that do not depend on the time. */
async function clocklessRunner(examination: Examination): Promise<Runner> {
  const answer = await examination.rest.run(["TIME"]);
  const redisMs = ("reply" in answer ? timeIn(answer.reply) : undefined) ?? Date.now();
  const startedAt = Date.now();
  return async (store, vector) => {
    const now = redisMs + Date.now() - startedAt;
    const counter = { ...vector.counter, ...windowsAround(now, vector) };
    const key = newCounterKey(examination);
    for (const [index, step] of vector.steps.entries()) {
      const atNow = { ...step, at: 0 };
      const prepared: PreparedStep = prepareStep(key, { ...vector, counter }, atNow, now);
      // The server computes the window, so the keys of the previous and the next window are noted too.
      noteKeys(examination, prepared.counter, [now - WINDOW_MS, now, now + WINDOW_MS]);
      const { outcome, decidedAt = now } = await runStep(store, step, prepared);
      // The time of a decision may differ from TIME, for example behind a faulty proxy.
      noteKeys(examination, prepared.counter, [decidedAt]);
      const difference = compare(withoutTimes(step), outcome);
      if (difference) return `step ${index + 1}: ${difference}`;
    }
    return undefined;
  };
}

/**
 * Returns windows of the vector's kind: fixed windows or local days. One of these windows ends
 * `WINDOW_MS / 2` after `now`.
 */
function windowsAround(now: number, { counter: { calendar } }: Vector) {
  const offsetMs = now - WINDOW_MS / 2;
  if (!calendar) return { windowMs: WINDOW_MS, offsetMs };
  const { timeMs } = calendarStartAt("UTC", now + WINDOW_MS / 2);
  return { calendar: calendarOf("day", "UTC", { timeMs }) };
}

function withoutTimes({ expect }: Step): Partial<Outcome> | undefined {
  if (!expect) return undefined;
  const { value, admitted, banMs = 0 } = expect;
  return { value, banMs, ...(admitted !== undefined && { admitted }) };
}

function newCounterKey(examination: Examination): Pick<Counter, "key" | "identity"> {
  const identity = randomUUID();
  return { key: newKey(examination, `vector:1m:${identity}`), identity };
}

/** Notes all keys that a call may write, so that they can be removed even if the call fails. */
function noteKeys({ writtenKeys }: Examination, counter: Counter, times: readonly number[]): void {
  writtenKeys.add(counter.key);
  for (const time of times) writtenKeys.add(storedKey(counter, time));
  if (counter.banMs) writtenKeys.add(banKey(counter));
  if (counter.escalation) writtenKeys.add(strikesKey(counter));
}

/** @returns the first difference as a text; undefined if there is none */
function compare(
  expected: Partial<Outcome> | undefined,
  outcome: Outcome | undefined,
): string | undefined {
  if (!expected || !outcome) return undefined;
  const isBanned = (expected.banMs ?? 0) > 0;
  for (const [field, value] of Object.entries(expected)) {
    const actual = outcome[field as keyof Outcome];
    // The time until a retry contains the rest of the ban.
    const isAsExpected =
      isBanned && (field === "banMs" || field === "retryMs")
        ? isNear(Number(actual), Number(value))
        : actual === value;
    if (!isAsExpected) return `${field} is ${actual}, expected ${value}`;
  }
  return undefined;
}

function isNear(actual: number, expected: number): boolean {
  return Math.abs(actual - expected) <= BAN_TOLERANCE_MS;
}
