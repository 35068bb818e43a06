import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

/** Quantiles of the time from sending a request to the end of its response, in milliseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

const MICROSECONDS_PER_MS = 1000;
const LONGEST_MICROSECONDS = 60_000_000;

/** A histogram of latencies in microseconds: Node's HDR histogram, with three exact digits. */
export function createLatencyHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: LONGEST_MICROSECONDS, figures: 3 });
}

/** Records a latency in milliseconds. The histogram takes 1 µs to 60 s; values beyond are clamped. */
export function recordMs(histogram: RecordableHistogram, ms: number): void {
  const microseconds = Math.round(ms * MICROSECONDS_PER_MS);
  histogram.record(Math.min(Math.max(microseconds, 1), LONGEST_MICROSECONDS));
}

/** A percentile of the recorded latencies, in milliseconds. @param percentile above 0, up to 100 */
export function percentileMs(histogram: RecordableHistogram, percentile: number): number {
  return histogram.percentile(percentile) / MICROSECONDS_PER_MS;
}

export function quantilesOf(histogram: RecordableHistogram): Latency {
  const at = (percentile: number) => percentileMs(histogram, percentile);
  return { p50: at(50), p95: at(95), p99: at(99) };
}
