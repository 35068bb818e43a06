import type { Stage } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Subject } from "../environment/subjects.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { untilWindowHasRoom } from "../load/window.ts";
import { requestsOf, type Workload } from "../load/workloads.ts";
import { type Measurement, measure } from "./measure.ts";
import { turn } from "./paired-rounds.ts";

/** How much is done to be sure of a figure. */
export type Effort = {
  /** How often each subject gets each workload. */
  rounds: number;
  /** Requests before any are measured: connections, scripts in Redis, compiled code. */
  warmUp: number;
  count: "full" | "quick";
};

/** What a subject did with a workload, round by round. */
export type Rounds = { subject: Subject; rounds: Measurement[] };

/** Longer than any round takes. */
const ROUND_MS = 15_000;

/** Gives all subjects the same requests, in rounds: what the machine does meanwhile meets them all. */
export async function runWorkload(
  stage: Stage,
  workload: Workload,
  subjects: readonly Subject[],
  distanceMs: number,
  effort: Effort,
): Promise<Rounds[]> {
  const started: { subject: Subject; runtime: Runtime; rounds: Measurement[] }[] = [];
  // The clients are the same as in what was measured before.
  await stage.watch.empty();
  try {
    for (const subject of subjects) {
      const runtime = await stage.start(subject.runtime(workload.limit), distanceMs);
      started.push({ subject, runtime, rounds: [] });
      await warmUp(runtime, workload, effort.warmUp);
    }
    for (let round = 1; round <= effort.rounds; round++) {
      const requests = requestsOf(workload, workload.count[effort.count], round);
      // Each round another subject begins, so that none is always the one after the same other.
      for (const { subject, runtime, rounds } of turn(started, (round - 1) * 2)) {
        await untilWindowHasRoom(subject.windowMs, ROUND_MS);
        const { limit } = workload;
        const options = { stage, runtime, billing: subject.billing, limit, distanceMs };
        rounds.push(await measure(options, () => closedLoop(runtime.urls, requests)));
      }
    }
    return started.map(({ subject, rounds }) => ({ subject, rounds }));
  } finally {
    for (const { runtime } of started) await runtime.stop();
  }
}

/** With clients of their own, in round 0, that no measured round has. */
export async function warmUp(
  { urls }: Pick<Runtime, "urls">,
  workload: Workload,
  count: number,
): Promise<void> {
  // One alone, for what a limiter prepares once and lets all others wait for.
  for (const url of urls) await closedLoop([url], requestsOf(workload, 1, 0));
  await closedLoop(urls, requestsOf(workload, count, 0));
}
