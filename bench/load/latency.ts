import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

/** Quantiles of the time from sending a request to the end of its response, in milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

const MICROSECONDS_PER_MS = 1000;
const LONGEST_MICROSECONDS = 60_000_000;

/**
 * Creates a histogram of latencies in microseconds, exact to three digits (Node's HDR histogram).
 */
export function createLatencyHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: LONGEST_MICROSECONDS, figures: 3 });
}

/**
 * Records a latency in milliseconds. A value below 1 µs or above 60 s is replaced by that bound.
 */
export function recordMs(histogram: RecordableHistogram, ms: number): void {
  const microseconds = Math.round(ms * MICROSECONDS_PER_MS);
  histogram.record(Math.min(Math.max(microseconds, 1), LONGEST_MICROSECONDS));
}

/**
 * Returns a percentile of the recorded latencies, in milliseconds.
 *
 * @param percentile a number above 0 and at most 100
 */
export function percentileMs(histogram: RecordableHistogram, percentile: number): number {
  return histogram.percentile(percentile) / MICROSECONDS_PER_MS;
}

export function quantilesOf(histogram: RecordableHistogram): Latency {
  const at = (percentile: number) => percentileMs(histogram, percentile);
  return { p50: at(50), p95: at(95), p99: at(99) };
}
