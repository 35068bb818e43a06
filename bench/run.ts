import type { Stage } from "./environment/environment.ts";
import { machine, versions } from "./environment/machine.ts";
import { type AddedCpuOptions, measureAddedCpu } from "./experiments/added-cpu.ts";
import { measureDecisionCpu } from "./experiments/decision-cpu.ts";
import { runFlood } from "./experiments/flood.ts";
import { countsAcrossIsolates, runIsolates } from "./experiments/isolates.ts";
import { measureManyRules } from "./experiments/many-rules.ts";
import { type Effort, runWorkload } from "./experiments/rounds.ts";
import { CONNECTIONS } from "./load/closed-loop.ts";
import { WORKLOADS } from "./load/workloads.ts";
import type { BenchOptions } from "./options.ts";
import { mainDistance, type Results } from "./report/results.ts";

/** How much is done, of each of the things that there are to do. */
type Extent = {
  effort: Effort;
  /** Runs on eight isolates: Weir's target is set for 20, and for others fewer tell as much. */
  isolates: { weir: number; others: number };
  flood: { rounds: number; seconds: number };
  addedCpu: AddedCpuOptions;
  decisions: { rounds: number; decisions: number };
};

const FULL: Extent = {
  effort: { rounds: 3, warmUp: 600, count: "full" },
  isolates: { weir: 20, others: 2 },
  flood: { rounds: 4, seconds: 2 },
  addedCpu: { rounds: 8, requests: 4000, warmUp: 6000 },
  decisions: { rounds: 5, decisions: 20_000 },
};

const QUICK: Extent = {
  effort: { rounds: 1, warmUp: 50, count: "quick" },
  isolates: { weir: 1, others: 0 },
  flood: { rounds: 1, seconds: 2 },
  addedCpu: { rounds: 1, requests: 400, warmUp: 200 },
  decisions: { rounds: 1, decisions: 3000 },
};

/** A flood is slow to measure, and a few subjects show what there is to see. */
const FLOODED = ["floor", "weir", "weir-durable-object", "upstash-ratelimit"];

/**
 * Measures what was asked for, one thing after the other.
 *
 * @param progress is told what comes next
 */
export async function run(
  stage: Stage,
  options: BenchOptions,
  progress: (text: string) => void,
): Promise<Results> {
  const { quick, distances, subjects, parts } = options;
  const { effort, isolates, flood, addedCpu, decisions } = quick ? QUICK : FULL;
  const distance = mainDistance(distances);
  const results: Results = {
    date: new Date().toISOString(),
    machine: machine(),
    versions: versions(stage.redis.version),
    options: { quick, distances, connections: CONNECTIONS, rounds: effort.rounds },
    workloads: [],
    isolates: [],
    flood: [],
  };

  for (const distanceMs of distances) {
    for (const workload of WORKLOADS.filter(({ name }) => parts.includes(name))) {
      progress(`${workload.title}, Redis ${distanceMs} ms away`);
      const rounds = await runWorkload(stage, workload, subjects, distanceMs, effort);
      const requests = workload.count[effort.count];
      results.workloads.push({ workload, distanceMs, requests, subjects: rounds });
    }
  }
  if (parts.includes("isolates")) {
    for (const subject of subjects.filter(countsAcrossIsolates)) {
      const runs = subject.name === "weir" ? isolates.weir : isolates.others;
      if (runs === 0) continue;
      progress(`eight isolates: ${subject.title}`);
      results.isolates.push(await runIsolates(stage, subject, distance, runs));
    }
  }
  if (parts.includes("flood")) {
    progress("a flood of random keys");
    const flooded = subjects.filter(({ name }) => FLOODED.includes(name));
    results.flood = await runFlood(stage, flooded, distance, flood);
  }
  if (parts.includes("added-cpu")) {
    progress("CPU time that Weir adds to a request");
    results.addedCpu = await measureAddedCpu(stage, distance, addedCpu);
  }
  if (parts.includes("cpu")) {
    progress("CPU time of Weir");
    results.decisionCpu = await measureDecisionCpu(stage, distance, decisions);
    results.manyRules = await measureManyRules(stage, distance, effort);
  }
  return results;
}
