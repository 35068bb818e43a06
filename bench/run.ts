import type { Environment } from "./environment/environment.ts";
import { readMachine, readVersions } from "./environment/machine.ts";
import { type AddedCpu, type AddedCpuOptions, measureAddedCpu } from "./experiments/added-cpu.ts";
import { countsAcrossIsolates, type IsolatesResult, runIsolates } from "./experiments/isolates.ts";
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
}

const FULL: SampleSizes = {
  workloads: { rounds: 3, warmUp: 600, count: "full" },
  isolates: { weir: 20, others: 2 },
  addedCpu: { rounds: 8, requests: 4000, warmUp: 6000 },
};

const QUICK: SampleSizes = {
  workloads: { rounds: 1, warmUp: 50, count: "quick" },
  isolates: { weir: 1, others: 0 },
  addedCpu: { rounds: 1, requests: 400, warmUp: 200 },
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
  const date = new Date().toISOString();
  const workloads = await runWorkloads(environment, options, sizes.workloads, onProgress);
  const isolates = parts.includes("isolates")
    ? await runAllIsolates(environment, options, sizes.isolates, onProgress)
    : [];
  let addedCpu: AddedCpu | undefined;
  if (parts.includes("added-cpu")) {
    onProgress("CPU time that Weir adds to a request");
    addedCpu = await measureAddedCpu(environment, redisLatencyMs, sizes.addedCpu);
  }
  const { rounds } = sizes.workloads;
  return {
    date,
    machine: readMachine(),
    versions: readVersions(environment.redis.version),
    options: { quick, redisLatenciesMs, connections, rounds },
    ...{ workloads, isolates, addedCpu },
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
