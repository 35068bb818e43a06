import type { Examination } from "./examination.ts";
import { type Finding, finding, isText } from "./finding.ts";

/** One call that returned the time of the store. All values are in milliseconds. */
export interface ClockSample {
  /** The duration of the call. */
  readonly tookMs: number;
  /**
   * The clock of the store minus the clock of the caller, assuming that both ways of the call took
   * equally long.
   */
  readonly skewMs: number;
}

const SAMPLES = 7;

/** A skew up to this value is normal, because one second is the grace time of a key. */
const MAX_SKEW_MS = 1000;
/** Above this skew, the store and the caller are in different windows of one minute. */
const WRONG_CLOCK_MS = 60_000;

/** Measures the round trip and the clock with several calls. */
export async function checkTiming(examination: Examination): Promise<Finding[]> {
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
export function roundTripFinding(tookMs: readonly number[], timeoutMs: number): Finding {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const medianMs = round(sorted[Math.floor(sorted.length / 2)] as number);
  const worstMs = round(sorted.at(-1) as number);
  const value = `median ${medianMs} ms, worst ${worstMs} ms of ${sorted.length} calls; timeoutMs is ${timeoutMs}`;
  const measured = { medianMs, worstMs, timeoutMs, allMs: tookMs.map(round) };
  if (medianMs >= timeoutMs) return finding("round-trip-too-slow", value, measured);
  if (worstMs > timeoutMs / 2) return finding("round-trip-slow", value, measured);
  return finding("round-trip-ok", value, measured);
}

/**
 * Reports the skew of the fastest call, because its uncertainty is the smallest: half of its round
 * trip.
 */
export function clockFinding(samples: readonly ClockSample[]): Finding {
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
