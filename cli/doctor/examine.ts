import { randomBytes, randomUUID } from "node:crypto";
import { formatCount } from "../../src/admin/format.ts";
import { calendarOf, calendarStartAt } from "../../src/config/calendar.ts";
import { parseOriginUrl } from "../../src/config/origin.ts";
import { banKey, strikesKey } from "../../src/engine/bans.ts";
import { type Counter, storedKey } from "../../src/engine/counter.ts";
import { type Store, StoreError } from "../../src/stores/store.ts";
import { createUpstashStore } from "../../src/stores/upstash/upstash-store.ts";
import { quoted } from "../print/text.ts";
import {
  checkCommands,
  checkKeys,
  checkMemory,
  checkQuota,
  checkTiming,
  checkToken,
  checkTokenForm,
  checkUrl,
  readInfo,
  timeIn,
} from "./database.ts";
import { type Examination, MAX_KEY_AGE_MS, newKey } from "./examination.ts";
import { type Finding, finding, refusal } from "./findings.ts";
import {
  CallFailure,
  type Command,
  createRestClient,
  createScriptClient,
  type RestClient,
} from "./rest.ts";
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
async function checkVectors(examination: Examination, acceptsFlag: boolean): Promise<Finding[]> {
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
    const value = `${differences.length} of ${formatCount(count, "vector")}: ${differences[0]}`;
    return [finding("vector-differs", value)];
  }
  return [finding("vectors-ok", `${formatCount(count, "vector")}, each as expected`)];
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

/**
 * The exit codes of programs that a signal has ended, by convention: 128 plus the number of the
 * signal.
 */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

type Signal = keyof typeof EXIT_CODES;

/** A second signal within this time, in milliseconds, is ignored. */
const SAME_INTERRUPTION_MS = 1000;

/** The signals that end a run, so that it can remove its keys first. */
interface Interruption {
  /** The exit code of the signal that ended the run; undefined if there was none. */
  exitCode(): number | undefined;
  /** Gives the signals their default effect again. */
  [Symbol.dispose](): void;
}

/**
 * Stops a run at Ctrl-C, when its terminal is closed, and at SIGTERM. A second signal ends the process
 * at once. At Ctrl-C, npx and npm pass the signal on to a process that has already received it from
 * the terminal. So a second signal counts only some time after the first one.
 */
export function onInterruption(stop: (reason: string) => void): Interruption {
  let [exitCode, firstAt]: [number | undefined, number] = [undefined, 0];
  const interrupt = (signal: Signal) => {
    if (exitCode !== undefined) {
      if (performance.now() - firstAt > SAME_INTERRUPTION_MS) process.exit(EXIT_CODES[signal]);
      return;
    }
    [exitCode, firstAt] = [EXIT_CODES[signal], performance.now()];
    stop(`ended by ${signal}`);
  };
  const signals = Object.keys(EXIT_CODES) as Signal[];
  for (const signal of signals) process.on(signal, interrupt);
  return {
    exitCode: () => exitCode,
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, interrupt);
    },
  };
}

const KEYS_PER_CALL = 100;
/** The shortest deadline of a call that removes keys, in milliseconds. */
const MIN_CALL_MS = 3000;

/** The reason why keys may be left. */
interface Obstacle {
  readonly reason: string;
  readonly left: number;
  /** Whether the database did not answer, so that more calls are useless. */
  readonly isSilent: boolean;
}

/**
 * Removes all keys that the doctor may have written, and checks that they are gone. It never
 * throws. It has its own client, because it runs even if the rest of the run was stopped.
 *
 * A call without an answer may write its key after the removal. So the function waits for such calls
 * as long as for any other call, and then removes the keys again.
 */
async function cleanUp(examination: Examination): Promise<Finding> {
  const { url, token, rest, ownPrefix } = examination;
  const callTimeoutMs = Math.max(MIN_CALL_MS, rest.callTimeoutMs);
  const stop = new AbortController().signal;
  const cleaner = createRestClient({ url, token, callTimeoutMs, stop });
  const keys = [...examination.writtenKeys];
  const isOpen = rest.writes.count > 0;
  let obstacle = await remove(cleaner, keys);
  const unconfirmed = await rest.writes.settle(obstacle?.isSilent ? 0 : callTimeoutMs);
  if (isOpen && !obstacle?.isSilent) obstacle = await remove(cleaner, keys);
  const expiry = `under "${ownPrefix}"; they expire within ${MAX_KEY_AGE_MS / 60_000} minutes`;
  if (obstacle) {
    return finding(
      "keys-left",
      `${obstacle.reason}, so up to ${formatCount(obstacle.left, "key")} may be left ${expiry}`,
    );
  }
  if (unconfirmed.length > 0) {
    const names = [...new Set(unconfirmed)].join(", ");
    const calls = `${formatCount(unconfirmed.length, "call")} (${names})`;
    return finding(
      "keys-left",
      `the database did not confirm ${calls}, which may still write keys ${expiry}`,
    );
  }
  return finding("cleaned-up", `no key is left under "${ownPrefix}"`);
}

/** @returns undefined if the database has confirmed that all keys are gone */
async function remove(rest: RestClient, keys: readonly string[]): Promise<Obstacle | undefined> {
  let [left, name, existing] = [keys.length, "DEL", 0];
  try {
    for (let at = 0; at < keys.length; at += KEYS_PER_CALL) {
      const page = keys.slice(at, at + KEYS_PER_CALL) as [string, ...string[]];
      const call = (command: string) => {
        name = command;
        return rest.run([command, ...page] as Command);
      };
      const removed = await call("DEL");
      if ("error" in removed) {
        return { reason: `DEL was refused (${removed.error})`, left, isSilent: false };
      }
      const found = await call("EXISTS");
      // If EXISTS is refused, the answer to DEL is the confirmation.
      if ("reply" in found && found.reply !== 0) {
        existing += typeof found.reply === "number" ? found.reply : page.length;
      }
      left -= page.length;
    }
  } catch (error) {
    const reason = error instanceof CallFailure ? error.message : "the call failed";
    return { reason: `${name} was not confirmed (${reason})`, left, isSilent: true };
  }
  if (existing === 0) return undefined;
  return { reason: "EXISTS found keys after DEL", left: existing, isSilent: false };
}

type ExamineOptions = Pick<Examination, "url" | "token" | "config" | "stop">;

/** The findings after which no other check can succeed. */
const FATAL: ReadonlySet<string> = new Set([
  "token-read-only",
  "keys-not-permitted",
  "write-refused",
  "database-full",
  "scripts-refused",
  "command-missing",
]);

/**
 * Checks a database. It reads keys, and writes only keys that begin with a random name, which it removes
 * even if a check fails or the run is stopped. A failure of the database is a finding, not an error.
 */
export async function examine(options: ExamineOptions): Promise<Finding[]> {
  const { token, config, stop } = options;
  const address = checkUrl(options.url);
  // The Worker uses the URL in this form too.
  const url = parseOriginUrl(options.url);
  if (address.code === "url-invalid" || url === undefined) return [address];
  const malformed = checkTokenForm("UPSTASH_REDIS_REST_TOKEN", token);
  if (malformed) return [address, malformed];
  const callTimeoutMs = Math.min(10_000, Math.max(1000, 3 * config.timeoutMs));
  const examination: Examination = {
    ...options,
    url,
    rest: createRestClient({ url, token, callTimeoutMs, stop }),
    ownPrefix: `${config.prefix}:doctor-${randomBytes(4).toString("hex")}`,
    writtenKeys: new Set(),
  };
  const findings = [address];
  try {
    await runChecks(examination, findings);
  } catch (error) {
    if (!(error instanceof CallFailure)) throw error;
    findings.push(finding(error.code, error.message));
  } finally {
    if (examination.writtenKeys.size > 0) findings.push(await cleanUp(examination));
  }
  return findings;
}

/** @param findings each check adds its findings, so that they are kept if a later check throws */
async function runChecks(examination: Examination, findings: Finding[]): Promise<void> {
  // The first call also opens the connection, so it is not part of the round trips.
  await examination.rest.run(["PING"]);
  const access = await checkToken(examination);
  findings.push(access, ...(await checkTiming(examination)));
  const info = await readInfo(examination);
  findings.push(checkQuota(info), ...checkMemory(info), ...(await checkKeys(examination)));
  if (FATAL.has(access.code)) return;
  const { findings: commands, acceptsFlag } = await checkCommands(examination);
  findings.push(...commands);
  if (commands.some(({ code }) => FATAL.has(code))) return;
  findings.push(...(await checkVectors(examination, acceptsFlag)));
}
