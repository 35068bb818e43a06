import { createHistogram, type RecordableHistogram } from "node:perf_hooks";

export type Quantiles = { p50: number; p99: number; p999: number; max: number };

/** Latencies in Node's own HDR histogram, in microseconds, exact to three digits. */
export function createLatencies(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
}

export function recordMs(histogram: RecordableHistogram, ms: number): void {
  histogram.record(Math.min(Math.max(Math.round(ms * 1000), 1), 60_000_000));
}

/** In milliseconds. */
export function quantilesOf(histogram: RecordableHistogram): Quantiles {
  const at = (percentile: number) => histogram.percentile(percentile) / 1000;
  return { p50: at(50), p99: at(99), p999: at(99.9), max: histogram.max / 1000 };
}
