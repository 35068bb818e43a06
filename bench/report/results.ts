import type { Machine } from "../environment/machine.ts";
import { BASELINE } from "../environment/subjects.ts";
import type { AddedCpu } from "../experiments/added-cpu.ts";
import { ISOLATES, type IsolatesResult } from "../experiments/isolates.ts";
import type { Measurement } from "../experiments/measure.ts";
import type { SubjectRounds } from "../experiments/rounds.ts";
import type { Workload } from "../load/workloads.ts";
import { type Summary, summarize } from "./summary.ts";

/** The measurements of all subjects with one workload and one latency of Redis. */
export interface WorkloadResult {
  readonly workload: Workload;
  readonly redisLatencyMs: number;
  /** The number of connections that sent the requests. */
  readonly connections: number;
  readonly requests: number;
  readonly subjects: readonly SubjectRounds[];
}

/** The results of a run. Experiments that the run left out are empty or undefined. */
export interface Results {
  readonly date: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly options: {
    readonly quick: boolean;
    readonly redisLatenciesMs: readonly number[];
    readonly connections: readonly number[];
    readonly rounds: number;
  };
  readonly workloads: readonly WorkloadResult[];
  readonly isolates: readonly IsolatesResult[];
  readonly addedCpu?: AddedCpu | undefined;
}

const MAIN_REDIS_LATENCY_MS = 20;

/**
 * Returns the latency of Redis for every experiment except the workloads: 20 ms if the run has this latency, otherwise the run's first latency.
 */
export function mainRedisLatency(redisLatenciesMs: readonly number[]): number {
  const hasMain = redisLatenciesMs.includes(MAIN_REDIS_LATENCY_MS);
  return hasMain ? MAIN_REDIS_LATENCY_MS : (redisLatenciesMs[0] ?? 0);
}

/** Summarizes the rounds of a subject, compared with the same rounds of the baseline. */
export function summaryOf({ subjects }: WorkloadResult, name: string): Summary | undefined {
  const rounds = roundsOf(subjects, name);
  const baseline = roundsOf(subjects, BASELINE);
  return rounds && baseline && summarize(rounds, baseline);
}

export function roundsOf(
  subjects: readonly SubjectRounds[],
  name: string,
): readonly Measurement[] | undefined {
  return subjects.find(({ subject }) => subject.name === name)?.rounds;
}

/** The requests that Weir admitted over what a limit allows, in all parts of the run. It must be 0. */
export function excessOfWeir({ workloads, isolates }: Results, isolatesLimit: number): number {
  const excesses = [
    ...workloads.flatMap(({ subjects }) =>
      subjects.flatMap(({ subject, rounds }) =>
        subject.isWeir
          ? rounds.map(({ over, mostOver }) => (mostOver > (subject.mayExceedBy ?? 0) ? over : 0))
          : [],
      ),
    ),
    ...isolates.flatMap(({ subject, admitted }) => {
      const allowed = isolatesLimit + ISOLATES * (subject.mayExceedBy ?? 0);
      return subject.isWeir ? admitted.map((count) => Math.max(0, count - allowed)) : [];
    }),
  ];
  return excesses.reduce((sum, excess) => sum + excess, 0);
}
