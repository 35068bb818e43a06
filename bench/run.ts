import type { Environment } from "./environment/environment.ts";
import { readMachine, readVersions } from "./environment/machine.ts";
import { type AddedCpuOptions, measureAddedCpu } from "./experiments/added-cpu.ts";
import { type ControlCostOptions, measureControlCost } from "./experiments/control.ts";
import { measureDecisionCpu } from "./experiments/decision-cpu.ts";
import { countsAcrossIsolates, type IsolatesResult, runIsolates } from "./experiments/isolates.ts";
import { measureManyRules } from "./experiments/many-rules.ts";
import { runWorkload, type SampleSize } from "./experiments/rounds.ts";
import { WORKLOADS } from "./load/workloads.ts";
import type { BenchOptions } from "./options.ts";
import { mainRedisLatency, type Results, type WorkloadResult } from "./report/results.ts";

/** The sample size of each part of a run. */
interface SampleSizes {
  readonly workloads: SampleSize;
  /** The numbers of runs on eight isolates. Weir's target is defined for 20 runs. */
  readonly isolates: { readonly weir: number; readonly others: number };
  readonly addedCpu: AddedCpuOptions;
  readonly control: ControlCostOptions;
  readonly decisions: { readonly rounds: number; readonly decisions: number };
}

const FULL: SampleSizes = {
  workloads: { rounds: 3, warmUp: 600, count: "full" },
  isolates: { weir: 20, others: 2 },
  addedCpu: { rounds: 8, requests: 4000, warmUp: 6000 },
  control: { rounds: 8, decisions: 5000, requests: 500 },
  decisions: { rounds: 5, decisions: 20_000 },
};

const QUICK: SampleSizes = {
  workloads: { rounds: 1, warmUp: 50, count: "quick" },
  isolates: { weir: 1, others: 0 },
  addedCpu: { rounds: 1, requests: 400, warmUp: 200 },
  control: { rounds: 1, decisions: 500, requests: 50 },
  decisions: { rounds: 1, decisions: 3000 },
};

/**
 * Runs the parts that the options select, one after the other.
 *
 * @param onProgress receives the title of each part before it starts
 */
export async function run(
  environment: Environment,
  options: BenchOptions,
  onProgress: (text: string) => void,
): Promise<Results> {
  const { quick, redisLatenciesMs, connections, parts } = options;
  const sizes = quick ? QUICK : FULL;
  const redisLatencyMs = mainRedisLatency(redisLatenciesMs);
  async function runPart<Result>(
    part: string,
    title: string,
    measure: () => Promise<Result>,
  ): Promise<Result | undefined> {
    if (!parts.includes(part)) return undefined;
    onProgress(title);
    return await measure();
  }

  const date = new Date().toISOString();
  const workloads = await runWorkloads(environment, options, sizes.workloads, onProgress);
  const isolates = parts.includes("isolates")
    ? await runAllIsolates(environment, options, sizes.isolates, onProgress)
    : [];
  const addedCpu = await runPart("added-cpu", "CPU time that Weir adds to a request", () =>
    measureAddedCpu(environment, redisLatencyMs, sizes.addedCpu),
  );
  const control = await runPart("control", "statistics, overrides and the denial log", () =>
    measureControlCost(environment, redisLatencyMs, sizes.control),
  );
  const decisionCpu = await runPart("cpu", "CPU time of a decision from memory", () =>
    measureDecisionCpu(environment, redisLatencyMs, sizes.decisions),
  );
  const manyRules = await runPart("cpu", "CPU time with 2 rules and with 200", () =>
    measureManyRules(environment, redisLatencyMs, sizes.workloads),
  );
  const { rounds } = sizes.workloads;
  return {
    date,
    machine: readMachine(),
    versions: readVersions(environment.redis.version),
    options: { quick, redisLatenciesMs, connections, rounds },
    ...{ workloads, isolates, addedCpu, control, decisionCpu, manyRules },
  };
}

async function runWorkloads(
  environment: Environment,
  { redisLatenciesMs, connections, subjects, parts }: BenchOptions,
  sampleSize: SampleSize,
  onProgress: (text: string) => void,
): Promise<WorkloadResult[]> {
  const results: WorkloadResult[] = [];
  for (const redisLatencyMs of redisLatenciesMs) {
    for (const workload of WORKLOADS.filter(({ name }) => parts.includes(name))) {
      const requests = workload.count[sampleSize.count];
      for (const count of workload.isBurst ? [requests] : connections) {
        onProgress(`${workload.title}, ${count} connections, Redis ${redisLatencyMs} ms away`);
        const rounds = await runWorkload(
          ...([environment, workload, subjects, redisLatencyMs, sampleSize, count] as const),
        );
        results.push({ workload, redisLatencyMs, connections: count, requests, subjects: rounds });
      }
    }
  }
  return results;
}

async function runAllIsolates(
  environment: Environment,
  { redisLatenciesMs, subjects }: BenchOptions,
  runs: SampleSizes["isolates"],
  onProgress: (text: string) => void,
): Promise<IsolatesResult[]> {
  const results: IsolatesResult[] = [];
  for (const subject of subjects.filter(countsAcrossIsolates)) {
    const runsOfSubject = subject.name === "weir" ? runs.weir : runs.others;
    if (runsOfSubject === 0) continue;
    onProgress(`eight isolates: ${subject.title}`);
    const redisLatencyMs = mainRedisLatency(redisLatenciesMs);
    results.push(await runIsolates(environment, subject, redisLatencyMs, runsOfSubject));
  }
  return results;
}
