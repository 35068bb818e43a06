import type { Stage } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Subject } from "../environment/subjects.ts";
import type { AdmissionSummary } from "../load/admissions.ts";
import { clientAddress, FREE_PATH, LIMITED_PATH, type Outgoing } from "../load/clients.ts";
import { type Latency, quantilesOf } from "../load/latency.ts";
import { openLoop } from "../load/open-loop.ts";
import { untilWindowHasRoom } from "../load/window.ts";

/** Slow enough that the CPU has time to spare: what is looked for is waiting, not saturation. */
const RATE_PER_SECOND = 300;
/** Of so many requests one is the paying client's. */
const PAYING_EVERY = 3;
const LIMIT = 10_000;
const PAYING = 0;
const FLOODING = 1;

/** What a client who pays had to wait, and whether it was served, before a flood and in it. */
export type FloodRound = {
  before: Latency;
  during: Latency;
  admissions: AdmissionSummary;
  restCallsPerRequest: number;
};

export type FloodResult = { subject: Subject; rounds: FloodRound[] };

/**
 * A flood of clients that each come once, beside one who comes again and again. Before it, as many
 * requests go to a path that no rule is about.
 */
export async function runFlood(
  stage: Stage,
  subjects: readonly Subject[],
  distanceMs: number,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<FloodResult[]> {
  const started: { subject: Subject; runtime: Runtime; rounds: FloodRound[] }[] = [];
  // The clients are the same as in what was measured before.
  await stage.watch.empty();
  try {
    for (const subject of subjects) {
      const runtime = await stage.start(subject.runtime(LIMIT), distanceMs);
      started.push({ subject, runtime, rounds: [] });
      await floodOnce(stage, runtime, 0, 1);
    }
    for (let round = 1; round <= rounds; round++) {
      for (const { subject, runtime, rounds } of started) {
        await untilWindowHasRoom(subject.windowMs, 4 * seconds * 1000);
        rounds.push(await floodOnce(stage, runtime, round, seconds));
      }
    }
    return started.map(({ subject, rounds }) => ({ subject, rounds }));
  } finally {
    for (const { runtime } of started) await runtime.stop();
  }
}

async function floodOnce(
  stage: Stage,
  runtime: Runtime,
  round: number,
  seconds: number,
): Promise<FloodRound> {
  const [url] = runtime.urls as [URL];
  const count = seconds * RATE_PER_SECOND;
  const paying = clientAddress(round, PAYING);
  const isPaying = ({ client }: Outgoing) => client === paying;
  const requests = (path: string) =>
    Array.from({ length: count }, (_, index) =>
      index % PAYING_EVERY === 0
        ? { client: paying, path: LIMITED_PATH }
        : { client: clientAddress(round, FLOODING + index), path },
    );

  // What a client's first requests take is no matter of the flood.
  await openLoop(url, requests(FREE_PATH).slice(0, RATE_PER_SECOND), RATE_PER_SECOND, isPaying);
  const before = await openLoop(url, requests(FREE_PATH), RATE_PER_SECOND, isPaying);
  const callsBefore = await stage.backend.restCalls();
  const during = await openLoop(url, requests(LIMITED_PATH), RATE_PER_SECOND, isPaying);
  const calls = (await stage.backend.restCalls()) - callsBefore;
  return {
    before: quantilesOf(before.latency),
    during: quantilesOf(during.latency),
    admissions: during.admissions.summary(LIMIT),
    restCallsPerRequest: calls / count,
  };
}
