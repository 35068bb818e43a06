import type { Stage } from "../environment/environment.ts";
import { FLOOR, type Subject } from "../environment/subjects.ts";
import { clientAddress, LIMITED_PATH } from "../load/clients.ts";
import { closedLoop } from "../load/closed-loop.ts";
import { untilWindowHasRoom } from "../load/window.ts";
import type { Workload } from "../load/workloads.ts";
import { warmUp } from "./rounds.ts";

export const ISOLATES = 8;
export const ISOLATES_LIMIT = 1000;
const OFFERED = 5000;
const WARM_UP = 400;
const RUN_MS = 20_000;

/** How many requests of one client a number of isolates admitted, run by run. */
export type IsolatesResult = { subject: Subject; admitted: number[]; failed: number };

const ONE_CLIENT: Workload = {
  name: "isolates",
  title: "one key on 8 isolates",
  limit: ISOLATES_LIMIT,
  count: { full: OFFERED, quick: OFFERED },
  clients: (count) => Array.from({ length: count }, () => 0),
};

/** The binding of the platform counts for a location, and its emulation for all: no comparison. */
export function countsAcrossIsolates({ name }: Subject): boolean {
  return name !== FLOOR && name !== "native";
}

/**
 * Offers one client's requests to eight isolates in turn, five times as many as its limit, so that
 * nothing is denied but for the limit. Each run has a client of its own.
 */
export async function runIsolates(
  stage: Stage,
  subject: Subject,
  distanceMs: number,
  runs: number,
): Promise<IsolatesResult> {
  // The clients are the same as in what was measured before.
  await stage.watch.empty();
  const options = { ...subject.runtime(ISOLATES_LIMIT), isolates: ISOLATES };
  const runtime = await stage.start(options, distanceMs);
  const result: IsolatesResult = { subject, admitted: [], failed: 0 };
  try {
    await warmUp(runtime, ONE_CLIENT, WARM_UP);
    for (let run = 1; run <= runs; run++) {
      const client = clientAddress(run, 0);
      const requests = Array.from({ length: OFFERED }, () => ({ client, path: LIMITED_PATH }));
      await untilWindowHasRoom(subject.windowMs, RUN_MS);
      const { admissions } = await closedLoop(runtime.urls, requests);
      const { admitted, failed } = admissions.summary(ISOLATES_LIMIT);
      result.admitted.push(admitted);
      result.failed += failed;
    }
    return result;
  } finally {
    await runtime.stop();
  }
}
