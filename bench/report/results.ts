import type { Machine } from "../environment/machine.ts";
import { FLOOR } from "../environment/subjects.ts";
import type { AddedCpu } from "../experiments/added-cpu.ts";
import type { DecisionCpu } from "../experiments/decision-cpu.ts";
import type { FloodResult } from "../experiments/flood.ts";
import type { IsolatesResult } from "../experiments/isolates.ts";
import type { ManyRules } from "../experiments/many-rules.ts";
import type { Rounds } from "../experiments/rounds.ts";
import type { Workload } from "../load/workloads.ts";
import { type Summary, summarize } from "./summary.ts";

/** A workload at a distance, and what each subject did with it. */
export type WorkloadResult = {
  workload: Workload;
  distanceMs: number;
  requests: number;
  subjects: Rounds[];
};

/** All that a run has found; what was not asked for is not there. */
export type Results = {
  date: string;
  machine: Machine;
  versions: Record<string, string>;
  options: { quick: boolean; distances: number[]; connections: number; rounds: number };
  workloads: WorkloadResult[];
  isolates: IsolatesResult[];
  flood: FloodResult[];
  addedCpu?: AddedCpu | undefined;
  decisionCpu?: DecisionCpu | undefined;
  manyRules?: ManyRules | undefined;
};

const MAIN_DISTANCE_MS = 20;

/** The distance that targets are set for, and that all but plain workloads run at: 20 ms if it is there. */
export function mainDistance(distances: readonly number[]): number {
  return distances.includes(MAIN_DISTANCE_MS) ? MAIN_DISTANCE_MS : (distances[0] ?? 0);
}

/** A subject's figures, beside those of the floor in the same rounds. */
export function summaryOf({ subjects }: WorkloadResult, name: string): Summary | undefined {
  const rounds = roundsOf(subjects, name);
  const floor = roundsOf(subjects, FLOOR);
  return rounds && floor && summarize(rounds, floor);
}

export function roundsOf(subjects: readonly Rounds[], name: string): Rounds["rounds"] | undefined {
  return subjects.find(({ subject }) => subject.name === name)?.rounds;
}

/** Requests that Weir admitted over a limit, in any part of the run. There must be none. */
export function weirsExcess(
  { workloads, isolates, flood }: Results,
  isolatesLimit: number,
): number {
  const overs = [
    ...workloads.flatMap(({ subjects }) =>
      subjects.flatMap(({ subject, rounds }) =>
        subject.isWeir ? rounds.map(({ over }) => over) : [],
      ),
    ),
    ...isolates.flatMap(({ subject, admitted }) =>
      subject.isWeir ? admitted.map((count) => Math.max(0, count - isolatesLimit)) : [],
    ),
    ...flood.flatMap(({ subject, rounds }) =>
      subject.isWeir ? rounds.map(({ admissions }) => admissions.over) : [],
    ),
  ];
  return overs.reduce((sum, over) => sum + over, 0);
}
