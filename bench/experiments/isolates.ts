import type { Environment } from "../environment/environment.ts";
import { BASELINE, type Subject } from "../environment/subjects.ts";
import { clientAddress, LIMITED_PATH } from "../load/clients.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { waitForWindow } from "../load/window.ts";
import type { Workload } from "../load/workloads.ts";
import { warmUp } from "./rounds.ts";

export const ISOLATES = 8;
export const ISOLATES_LIMIT = 1000;
const OFFERED = 5000;
const WARM_UP = 400;
/** Every run takes less than this time, in milliseconds. */
const RUN_MS = 20_000;

/** The number of one client's requests that eight isolates admitted in each run. */
export interface IsolatesResult {
  readonly subject: Subject;
  readonly admitted: readonly number[];
  readonly failed: number;
}

const ONE_CLIENT: Workload = {
  name: "isolates",
  title: "one key on 8 isolates",
  limit: ISOLATES_LIMIT,
  count: { full: OFFERED, quick: OFFERED },
  clients: (count) => Array.from({ length: count }, () => 0),
};

/**
 * Whether a subject counts the requests of all isolates in one counter. False for Cloudflare's binding: it counts in
 * each location separately, but its emulation has one counter, so a comparison would mean nothing.
 */
export function countsAcrossIsolates({ name }: Subject): boolean {
  return name !== BASELINE && name !== "native";
}

/**
 * Sends one client's requests to eight isolates in turn. The client sends five times its limit, so the
 * isolates should admit exactly the limit. Each run has a client of its own.
 */
export async function runIsolates(
  environment: Environment,
  subject: Subject,
  redisLatencyMs: number,
  runs: number,
): Promise<IsolatesResult> {
  // Earlier measurements used the same clients, so Redis may still have counters for them.
  await environment.redisMeter.deleteCounters();
  const options = { ...subject.runtimeOptions(ISOLATES_LIMIT), isolates: ISOLATES };
  const runtime = await environment.startWorker(options, redisLatencyMs);
  const admittedByRun: number[] = [];
  let failedInAll = 0;
  try {
    await warmUp(runtime, ONE_CLIENT, WARM_UP);
    for (let run = 1; run <= runs; run++) {
      const client = clientAddress(run, 0);
      const requests = Array.from({ length: OFFERED }, () => ({ client, path: LIMITED_PATH }));
      await waitForWindow(subject.windowMs, RUN_MS);
      const { admissions } = await closedLoop(runtime.urls, requests);
      const { admitted, failed } = admissions.summary(ISOLATES_LIMIT);
      admittedByRun.push(admitted);
      failedInAll += failed;
    }
    return { subject, admitted: admittedByRun, failed: failedInAll };
  } finally {
    await runtime.stop();
  }
}
