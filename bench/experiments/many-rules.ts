import type { Environment } from "../environment/environment.ts";
import { type Subject, weirConfig } from "../environment/subjects.ts";
import { WORKLOADS, type Workload } from "../load/workloads.ts";
import { median } from "./median.ts";
import { runWorkload, type SampleSize } from "./rounds.ts";

const FEW = 2;
const MANY = 200;

/** The CPU time that workerd needs to forward one request, in microseconds. */
export interface ManyRules {
  /** CPU time if the configuration has 2 rules. */
  readonly few: number;
  /** CPU time if the configuration has 200 rules. */
  readonly many: number;
  /** The median of `many` / `few` over the rounds. */
  readonly ratio: number;
}

/** Weir with `count` rules. One of them matches the requests of the bench. */
function weirWithRules(count: number): Subject {
  return {
    name: `${count}-rules`,
    title: `Weir with ${count} rules`,
    billing: "redis",
    isWeir: true,
    windowMs: 3_600_000,
    runtimeOptions: (limit) => ({
      worker: "weir.ts",
      vars: {
        CONFIG: JSON.stringify({ ...weirConfig(limit, {}, count - 1), prefix: `rules-${count}` }),
      },
    }),
  };
}

/**
 * Measures the CPU time of rules that do not match the request.
 *
 * @returns undefined if CPU time cannot be read
 */
export async function measureManyRules(
  environment: Environment,
  redisLatencyMs: number,
  sampleSize: SampleSize,
): Promise<ManyRules | undefined> {
  const hot = WORKLOADS.find(({ name }) => name === "hot") as Workload;
  const subjects = [weirWithRules(FEW), weirWithRules(MANY)];
  const results = await runWorkload(environment, hot, subjects, redisLatencyMs, sampleSize);
  const [few, many] = results.map(({ rounds }) =>
    rounds.map(({ cpuPerRequest }) => cpuPerRequest),
  ) as [(number | undefined)[], (number | undefined)[]];
  if (!areNumbers(few) || !areNumbers(many)) return undefined;
  return {
    few: median(few),
    many: median(many),
    ratio: median(many.map((cpu, round) => cpu / (few[round] as number))),
  };
}

function areNumbers(values: (number | undefined)[]): values is number[] {
  return values.every((value) => value !== undefined);
}
