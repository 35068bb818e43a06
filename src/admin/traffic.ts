import type { Bucket } from "../control/protocol.ts";
import {
  addRequests,
  addStoreSums,
  LATENCY_BOUNDS_MS,
  noRequests,
  noStoreSums,
  type RequestSums,
  type StoreSums,
} from "../statistics/sums.ts";
import { formatMilliseconds } from "./format.ts";

// Computes figures from a report, for the dashboard and the command `weir stats`.

/** Adds up the buckets of a report. */
export function sumsOfBuckets(buckets: readonly Bucket[]): {
  readonly requests: RequestSums;
  readonly store: StoreSums;
} {
  const sums = { requests: noRequests(), store: noStoreSums() };
  for (const { requests, store } of buckets) {
    addRequests(sums.requests, requests);
    addStoreSums(sums.store, store);
  }
  return sums;
}

/** The greatest duration that the histogram distinguishes, in milliseconds. */
const MAX_BOUND_MS = LATENCY_BOUNDS_MS[LATENCY_BOUNDS_MS.length - 1] as number;

/**
 * Estimates a quantile of durations. Within a bucket of the histogram, assumes that the durations are spread evenly,
 * like the function `histogram_quantile` of Prometheus.
 *
 * @param latency the counts of the buckets, see `StoreSums.latency`
 * @param quantile such as 0.95
 * @returns milliseconds; {@link MAX_BOUND_MS} for durations of the last bucket; undefined without calls
 */
export function latencyQuantile(latency: readonly number[], quantile: number): number | undefined {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = quantile * total;
  let below = 0;
  for (const [index, count] of latency.entries()) {
    if (count > 0 && below + count >= rank) {
      const upper = LATENCY_BOUNDS_MS[index];
      if (upper === undefined) return MAX_BOUND_MS;
      const lower = LATENCY_BOUNDS_MS[index - 1] ?? 0;
      return lower + ((upper - lower) * (rank - below)) / count;
    }
    below += count;
  }
  return MAX_BOUND_MS;
}

/** Returns a quantile as text; `> 5 s` if the histogram does not reach that far. */
export function quantileText(latency: readonly number[], quantile: number): string {
  const ms = latencyQuantile(latency, quantile);
  if (ms === undefined) return "–";
  return ms >= MAX_BOUND_MS ? `> ${formatMilliseconds(MAX_BOUND_MS)}` : formatMilliseconds(ms);
}
