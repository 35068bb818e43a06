import { parseOriginUrl } from "../../src/config/origin.ts";
import type { Config } from "../../src/config/schema.ts";
import { quoted } from "../print/text.ts";
import { type DoctorFinding, finding } from "./findings.ts";
import { isText, type RestClient, type Wait } from "./rest.ts";

/** The values that all checks of a database use. */
export interface Examination {
  readonly rest: RestClient;
  readonly url: string;
  readonly token: string;
  readonly config: Pick<Config, "clock" | "prefix" | "timeoutMs">;
  /**
   * The start of all keys that the doctor writes: Weir's prefix, because a token may be limited to it, and a random
   * name, which no other program uses. No rule has such keys, because in a rule's keys, a window such as `1m` follows
   * the name.
   */
  readonly ownPrefix: string;
  /** All keys that the doctor may have written. A check adds a key before it writes the key. */
  readonly writtenKeys: Set<string>;
  /** Aborted when the run must end. */
  readonly stop: AbortSignal;
  /** How the deadlines of calls wait. */
  readonly wait?: Wait | undefined;
}

/** Hosts that only this machine can reach, so http is safe. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Checks the form of the database's URL without a call. */
export function checkUrl(text: string): DoctorFinding {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return finding("url-invalid", "UPSTASH_REDIS_REST_URL is not a URL");
  }
  // The URL itself is not printed, because users paste redis://default:PASSWORD@host here.
  if (!/^https?:$/.test(url.protocol)) {
    return finding("url-invalid", `the URL begins with ${url.protocol}`);
  }
  if (url.username || url.password || url.search || url.hash) {
    return finding("url-invalid", "the URL has a user, a password, a query or a fragment");
  }
  if (parseOriginUrl(text) === undefined) {
    return finding("url-invalid", "the URL has an empty query, an empty fragment, or a backslash");
  }
  if (isReadableOnTheWay(url)) {
    return finding("url-not-https", `http to ${url.host}`);
  }
  return finding("url-ok", `${url.protocol}//${url.host}`);
}

/** Whether a URL sends a token without encryption to another machine. */
export function isReadableOnTheWay({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && !LOOPBACK.test(hostname);
}

/**
 * Checks the form of a token without a call.
 *
 * @param name the name of the setting
 */
export function checkTokenForm(name: string, token: string): DoctorFinding | undefined {
  if (/^[\x21-\x7e]+$/.test(token)) return undefined;
  return finding(
    "token-malformed",
    `${name} has white space or characters other than printable ASCII`,
  );
}

/** The error of Redis if the user of the token may not use a key. */
const NO_KEY = /^NOPERM\b.*\baccess\b.*\bkeys?\b/i;

/**
 * Returns the finding for a database's error after a refused write.
 *
 * @returns undefined if the error has another reason
 */
export function refusal(error: string): DoctorFinding | undefined {
  if (NO_KEY.test(error)) return finding("keys-not-permitted", error);
  if (/^(?:NOPERM|READONLY)\b/.test(error)) return finding("token-read-only", error);
  if (/capacity quota exceeded|^OOM\b/i.test(error)) return finding("database-full", error);
  return undefined;
}

/** Checks that the token may write. It writes one key, which expires after a minute. */
export async function checkToken({
  rest,
  ownPrefix,
  writtenKeys,
}: Examination): Promise<DoctorFinding> {
  const key = `${ownPrefix}:write`;
  writtenKeys.add(key);
  const answer = await rest.run(["SET", key, "1", "PX", 60_000]);
  if ("reply" in answer) return finding("token-ok", "the token may read and write");
  // The key was never written, so it needs no removal. Such a token could not remove it anyway.
  writtenKeys.delete(key);
  return refusal(answer.error) ?? finding("write-refused", answer.error);
}

/** Returns the fields of INFO; an empty map if the database does not answer this command. */
export async function readInfo({ rest, token }: Examination): Promise<Map<string, string>> {
  const answer = await rest.run(["INFO"]);
  const fields = new Map<string, string>();
  if ("error" in answer || typeof answer.reply !== "string") return fields;
  for (const line of answer.reply.replaceAll(token, "…").split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at > 0) fields.set(line.slice(0, at), line.slice(at + 1).trim());
  }
  return fields;
}

/**
 * Checks the eviction policy. Reads it from INFO, because CONFIG GET does not return it on Upstash.
 *
 * @param info the fields of INFO; empty if the database does not answer INFO
 */
export function checkEviction(info: ReadonlyMap<string, string>): DoctorFinding {
  const policy = info.get("maxmemory_policy");
  if (!policy) return finding("eviction-unknown", "INFO has no maxmemory_policy");
  return finding(
    policy === "noeviction" ? "eviction-off" : "eviction-on",
    `maxmemory_policy is ${quoted(policy)}`,
  );
}

/** One call that returned the time of the store. All values are in milliseconds. */
interface ClockSample {
  /** The duration of the call. */
  readonly tookMs: number;
  /**
   * The clock of the store minus the clock of the caller, assuming that both ways of the call took
   * equally long.
   */
  readonly skewMs: number;
}

const SAMPLES = 7;

/** A skew up to this value does no harm, because keys live one second longer than their windows. */
const MAX_SKEW_MS = 1000;
/** Above this skew, the store and the caller are in different windows of one minute. */
const WRONG_CLOCK_MS = 60_000;

/** Measures the round trip and the clock with several calls. */
export async function checkTiming(examination: Examination): Promise<DoctorFinding[]> {
  const tookMs: number[] = [];
  const samples: ClockSample[] = [];
  for (let call = 0; call < SAMPLES; call++) {
    const startedAt = Date.now();
    const started = performance.now();
    const answer = await examination.rest.run(["TIME"]);
    const took = performance.now() - started;
    tookMs.push(took);
    const time = "reply" in answer ? timeIn(answer.reply) : undefined;
    if (time !== undefined) samples.push({ tookMs: took, skewMs: time - (startedAt + took / 2) });
  }
  return [roundTripFinding(tookMs, examination.config.timeoutMs), clockFinding(samples)];
}

/**
 * Reads the reply of TIME, a list of seconds and microseconds.
 *
 * @returns milliseconds; undefined if the reply has another form
 */
export function timeIn(reply: unknown): number | undefined {
  if (!Array.isArray(reply) || reply.length !== 2) return undefined;
  if (!reply.every((part) => /^\d{1,15}$/.test(isText(part) ? `${part}` : ""))) return undefined;
  return Number(reply[0]) * 1000 + Number(reply[1]) / 1000;
}

/** @param tookMs the durations of calls; at least one */
export function roundTripFinding(tookMs: readonly number[], timeoutMs: number): DoctorFinding {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const medianMs = round(sorted[Math.floor(sorted.length / 2)] as number);
  const worstMs = round(sorted.at(-1) as number);
  const value = `median ${medianMs} ms, worst ${worstMs} ms of ${sorted.length} calls; timeoutMs is ${timeoutMs}`;
  const measured = { medianMs, worstMs, timeoutMs, allMs: tookMs.map(round) };
  if (medianMs >= timeoutMs) return finding("round-trip-too-slow", value, measured);
  if (worstMs > timeoutMs / 2) return finding("round-trip-slow", value, measured);
  return finding("round-trip-ok", value, measured);
}

/** Reports the skew of the fastest call. Its uncertainty is the smallest: half of its round trip. */
export function clockFinding(samples: readonly ClockSample[]): DoctorFinding {
  if (samples.length === 0) return finding("clock-unknown", "the store returned no time");
  const best = samples.reduce((one, other) => (other.tookMs < one.tookMs ? other : one));
  const [skewMs, uncertaintyMs] = [round(best.skewMs), Math.ceil(best.tookMs / 2)];
  const direction = skewMs < 0 ? "behind" : "ahead of";
  const value = `the store is ${Math.abs(skewMs)} ms ${direction} this clock (± ${uncertaintyMs} ms)`;
  const measured = { skewMs, uncertaintyMs };
  const leastMs = Math.abs(skewMs) - uncertaintyMs;
  if (leastMs > WRONG_CLOCK_MS) return finding("clock-wrong", value, measured);
  if (leastMs > MAX_SKEW_MS) return finding("clock-skewed", value, measured);
  if (uncertaintyMs > MAX_SKEW_MS) return finding("clock-unknown", value, measured);
  return finding("clock-ok", value, measured);
}

function round(ms: number): number {
  return Math.round(ms);
}
