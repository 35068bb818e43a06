import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

/** Three quantiles of the time from sending a request to having its whole answer, in ms. */
export type Latency = { p50: number; p95: number; p99: number };

const MICROSECONDS_PER_MS = 1000;
const LONGEST_MICROSECONDS = 60_000_000;

/** Collects latencies in Node's own HDR histogram, exact to three digits. */
export function latencies(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: LONGEST_MICROSECONDS, figures: 3 });
}

export function recordMs(histogram: RecordableHistogram, ms: number): void {
  const microseconds = Math.round(ms * MICROSECONDS_PER_MS);
  histogram.record(Math.min(Math.max(microseconds, 1), LONGEST_MICROSECONDS));
}

export function quantiles(histogram: RecordableHistogram): Latency {
  const at = (percentile: number) => histogram.percentile(percentile) / MICROSECONDS_PER_MS;
  return { p50: at(50), p95: at(95), p99: at(99) };
}
