import type { Measurement } from "../experiments/measure.ts";
import { median } from "../experiments/median.ts";
import type { Latency } from "../load/latency.ts";

/**
 * A summary of one subject's rounds with one workload. Each figure is the median of the rounds.
 * Figures relative to the baseline are first computed within each round. A slow machine slows both
 * the subject and the baseline, so these figures change little.
 */
export interface Summary {
  readonly latency: Latency;
  /** Latency minus the baseline's, in milliseconds. */
  readonly added: Latency;
  /** p50 divided by the baseline's p50. */
  readonly ratio: number;
  readonly requestsPerSecond: number;
  /** CPU time of the workerd process, in microseconds; undefined if it cannot be read. */
  readonly cpuPerRequest: number | undefined;
  readonly restCallsPerRequest: number;
  readonly commandsPerRequest: number;
  readonly objectCallsPerRequest: number;
  readonly rowsPerRequest: number;
  readonly dollarsPerMillion: number;
  /** Requests admitted over the limit, summed over all rounds. */
  readonly over: number;
  /** Requests denied although quota was left, summed over all rounds. */
  readonly under: number;
  /** Requests that were neither forwarded nor denied, summed over all rounds. */
  readonly failed: number;
}

export function summarize(
  rounds: readonly Measurement[],
  baseline: readonly Measurement[],
): Summary {
  const medianOf = (value: (round: Measurement) => number) => median(rounds.map(value));
  const medianBeside = (value: (round: Measurement, baseline: Measurement) => number) =>
    median(rounds.map((round, index) => value(round, baseline[index] as Measurement)));
  const sumOf = (value: (round: Measurement) => number) =>
    rounds.reduce((total, round) => total + value(round), 0);
  const forEachQuantile = (value: (quantile: keyof Latency) => number): Latency => ({
    p50: value("p50"),
    p95: value("p95"),
    p99: value("p99"),
  });
  const hasCpu = rounds.every(({ cpuPerRequest }) => cpuPerRequest !== undefined);

  return {
    latency: forEachQuantile((quantile) => medianOf(({ latency }) => latency[quantile])),
    added: forEachQuantile((quantile) =>
      medianBeside((round, base) => round.latency[quantile] - base.latency[quantile]),
    ),
    ratio: medianBeside((round, base) => round.latency.p50 / base.latency.p50),
    requestsPerSecond: medianOf((round) => round.requestsPerSecond),
    cpuPerRequest: hasCpu ? medianOf(({ cpuPerRequest = 0 }) => cpuPerRequest) : undefined,
    restCallsPerRequest: medianOf((round) => round.restCallsPerRequest),
    commandsPerRequest: medianOf((round) => round.commandsPerRequest),
    objectCallsPerRequest: medianOf((round) => round.objectCallsPerRequest),
    rowsPerRequest: medianOf((round) => round.rowsPerRequest),
    dollarsPerMillion: medianOf((round) => round.dollarsPerMillion),
    over: sumOf((round) => round.over),
    under: sumOf((round) => round.under),
    failed: sumOf((round) => round.failed),
  };
}
