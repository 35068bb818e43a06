import type { Measurement } from "../experiments/measure.ts";
import { median } from "../experiments/median.ts";
import type { Latency } from "../load/latency.ts";

/**
 * A subject on a workload. Each figure is the median of the rounds, and each comparison with the
 * floor is made within a round first: times drift together, so their ratio does not.
 */
export type Summary = {
  latency: Latency;
  /** Latency over the floor's, in ms. */
  added: Latency;
  /** p50 by the floor's p50. */
  ratio: number;
  requestsPerSecond: number;
  /** Microseconds of the workerd process; undefined where they cannot be read. */
  cpuPerRequest: number | undefined;
  restCallsPerRequest: number;
  commandsPerRequest: number;
  objectCallsPerRequest: number;
  rowsPerRequest: number;
  dollarsPerMillion: number;
  /** Of all rounds together, as are the next two. */
  over: number;
  under: number;
  failed: number;
};

export function summarize(rounds: readonly Measurement[], floor: readonly Measurement[]): Summary {
  const of = (value: (round: Measurement) => number) => median(rounds.map(value));
  const beside = (value: (round: Measurement, floor: Measurement) => number) =>
    median(rounds.map((round, index) => value(round, floor[index] as Measurement)));
  const sum = (value: (round: Measurement) => number) =>
    rounds.reduce((total, round) => total + value(round), 0);
  const latency = (value: (quantile: keyof Latency) => number): Latency => ({
    p50: value("p50"),
    p95: value("p95"),
    p99: value("p99"),
  });
  const hasCpu = rounds.every(({ cpuPerRequest }) => cpuPerRequest !== undefined);
  const cpu = ({ cpuPerRequest = 0 }: Measurement) => cpuPerRequest;

  return {
    latency: latency((quantile) => of((round) => round.latency[quantile])),
    added: latency((quantile) =>
      beside((round, base) => round.latency[quantile] - base.latency[quantile]),
    ),
    ratio: beside((round, base) => round.latency.p50 / base.latency.p50),
    requestsPerSecond: of((round) => round.requestsPerSecond),
    cpuPerRequest: hasCpu ? of(cpu) : undefined,
    restCallsPerRequest: of((round) => round.restCallsPerRequest),
    commandsPerRequest: of((round) => round.commandsPerRequest),
    objectCallsPerRequest: of((round) => round.objectCallsPerRequest),
    rowsPerRequest: of((round) => round.rowsPerRequest),
    dollarsPerMillion: of((round) => round.dollarsPerMillion),
    over: sum((round) => round.over),
    under: sum((round) => round.under),
    failed: sum((round) => round.failed),
  };
}

/** The p50 of one subject by another's, within each round, and of that the median. */
export function p50Ratio(rounds: readonly Measurement[], others: readonly Measurement[]): number {
  return median(
    rounds.map(({ latency }, index) => latency.p50 / (others[index] as Measurement).latency.p50),
  );
}
