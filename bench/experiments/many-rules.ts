import type { Stage } from "../environment/environment.ts";
import { type Subject, weirConfig } from "../environment/subjects.ts";
import { WORKLOADS, type Workload } from "../load/workloads.ts";
import { median } from "./median.ts";
import { type Effort, runWorkload } from "./rounds.ts";

const FEW = 2;
const MANY = 200;

/** CPU time of a request, in microseconds, through workerd to the origin and back. */
export type ManyRules = {
  few: number;
  many: number;
  /** Many by few, within a round. */
  ratio: number;
};

/** Weir with so many rules, of which one matches what is sent. */
function withRules(count: number): Subject {
  return {
    name: `${count}-rules`,
    title: `Weir with ${count} rules`,
    billing: "redis",
    isWeir: true,
    windowMs: 3_600_000,
    runtime: (limit) => ({
      worker: "weir.ts",
      vars: {
        CONFIG: JSON.stringify({ ...weirConfig(limit, {}, count - 1), prefix: `rules-${count}` }),
      },
    }),
  };
}

/** What rules cost that a request does not fall under. Undefined where CPU time cannot be read. */
export async function measureManyRules(
  stage: Stage,
  distanceMs: number,
  effort: Effort,
): Promise<ManyRules | undefined> {
  const hot = WORKLOADS.find(({ name }) => name === "hot") as Workload;
  const subjects = [withRules(FEW), withRules(MANY)];
  const [few, many] = (await runWorkload(stage, hot, subjects, distanceMs, effort)).map(
    ({ rounds }) => rounds.map(({ cpuPerRequest }) => cpuPerRequest),
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
