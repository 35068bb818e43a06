import type { Environment } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Subject } from "../environment/subjects.ts";
import { CONNECTIONS, closedLoop } from "../load/closed-loop.ts";
import { waitForWindow } from "../load/window.ts";
import { requestsOf, type Workload } from "../load/workloads.ts";
import { type Measurement, measure } from "./measure.ts";
import { rotate } from "./paired-rounds.ts";

/** The numbers of rounds and requests from which a figure is calculated. */
export interface SampleSize {
  /** The number of rounds in which each subject gets each workload. */
  readonly rounds: number;
  /**
   * The number of requests that are sent before the measurement. They open connections, load
   * scripts into Redis, and compile code.
   */
  readonly warmUp: number;
  /** Whether to send the number of requests of a whole run ("full") or of a quick run ("quick"). */
  readonly count: "full" | "quick";
}

/** The measurements of one subject, one for each round. */
export interface SubjectRounds {
  readonly subject: Subject;
  readonly rounds: readonly Measurement[];
}

/** Every round takes less than this time, in milliseconds. */
const ROUND_MS = 15_000;

/**
 * Sends the same requests to all subjects, in rounds. Rounds make the subjects comparable, because
 * a machine that slows down during a round slows all subjects.
 */
export async function runWorkload(
  environment: Environment,
  workload: Workload,
  subjects: readonly Subject[],
  redisLatencyMs: number,
  sampleSize: SampleSize,
  connections = CONNECTIONS,
): Promise<SubjectRounds[]> {
  const started: { subject: Subject; runtime: Runtime; rounds: Measurement[] }[] = [];
  // Earlier measurements used the same clients, so Redis may still have counters for them.
  await environment.redisMeter.deleteCounters();
  try {
    for (const subject of subjects) {
      const options = subject.runtimeOptions(workload.limit);
      const runtime = await environment.startWorker(options, redisLatencyMs);
      started.push({ subject, runtime, rounds: [] });
      await warmUp(runtime, workload, sampleSize.warmUp);
    }
    for (let round = 1; round <= sampleSize.rounds; round++) {
      const requests = requestsOf(workload, workload.count[sampleSize.count], round);
      // The order of the subjects changes from round to round, because a subject may slow the
      // subject that comes next.
      for (const { subject, runtime, rounds } of rotate(started, (round - 1) * 2)) {
        await waitForWindow(subject.windowMs, ROUND_MS);
        const { limit } = workload;
        const options = { environment, runtime, billing: subject.billing, limit, redisLatencyMs };
        const count = workload.isBurst ? requests.length : connections;
        rounds.push(await measure(options, () => closedLoop(runtime.urls, requests, count)));
      }
    }
    return started.map(({ subject, rounds }) => ({ subject, rounds }));
  } finally {
    for (const { runtime } of started) await runtime.stop();
  }
}

/** Sends requests of round 0. Its clients do not appear in the measured rounds, which start at 1. */
export async function warmUp(
  { urls }: Pick<Runtime, "urls">,
  workload: Workload,
  count: number,
): Promise<void> {
  // Each isolate first gets a single request, because a limiter may prepare its state during its first request, and
  // other requests would wait for it.
  for (const url of urls) await closedLoop([url], requestsOf(workload, 1, 0));
  await closedLoop(urls, requestsOf(workload, count, 0));
}
