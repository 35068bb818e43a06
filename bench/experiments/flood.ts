import type { Environment } from "../environment/environment.ts";
import type { Runtime } from "../environment/runtime.ts";
import type { Subject } from "../environment/subjects.ts";
import type { AdmissionSummary } from "../load/admissions.ts";
import { clientAddress, FREE_PATH, LIMITED_PATH, type OutgoingRequest } from "../load/clients.ts";
import { type Latency, quantilesOf } from "../load/latency.ts";
import { openLoop } from "../load/open-loop.ts";
import { waitForWindow } from "../load/window.ts";

/** At this rate, requests hardly wait for the CPU. So the experiment measures how long they wait for the limiter. */
const RATE_PER_SECOND = 300;
/** One request in three comes from the paying client. */
const PAYING_EVERY = 3;
const LIMIT = 10_000;
/** The index of the paying client, and of the first client of the flood. */
const PAYING_CLIENT = 0;
const FIRST_FLOOD_CLIENT = 1;

/** The paying client's latency before the flood and during it, and its admissions during the flood. */
export interface FloodRound {
  readonly before: Latency;
  readonly during: Latency;
  readonly admissions: AdmissionSummary;
  readonly restCallsPerRequest: number;
}

export interface FloodResult {
  readonly subject: Subject;
  readonly rounds: readonly FloodRound[];
}

/**
 * Measures one busy client while many other clients send one request each. Before the flood, the other
 * clients send the same number of requests to a path without a rule.
 *
 * @param size the number of rounds, and the length of each half of a round, in seconds
 */
export async function runFlood(
  environment: Environment,
  subjects: readonly Subject[],
  redisLatencyMs: number,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<FloodResult[]> {
  const started: { subject: Subject; runtime: Runtime; rounds: FloodRound[] }[] = [];
  // Earlier measurements used the same clients, so Redis may still have counters for them.
  await environment.redisMeter.deleteCounters();
  try {
    for (const subject of subjects) {
      const runtime = await environment.startWorker(subject.runtimeOptions(LIMIT), redisLatencyMs);
      started.push({ subject, runtime, rounds: [] });
      await floodOnce(environment, runtime, 0, 1);
    }
    for (let round = 1; round <= rounds; round++) {
      for (const { subject, runtime, rounds } of started) {
        await waitForWindow(subject.windowMs, 4 * seconds * 1000);
        rounds.push(await floodOnce(environment, runtime, round, seconds));
      }
    }
    return started.map(({ subject, rounds }) => ({ subject, rounds }));
  } finally {
    for (const { runtime } of started) await runtime.stop();
  }
}

async function floodOnce(
  { backend }: Environment,
  runtime: Runtime,
  round: number,
  seconds: number,
): Promise<FloodRound> {
  const [url] = runtime.urls as [URL];
  const count = seconds * RATE_PER_SECOND;
  const paying = clientAddress(round, PAYING_CLIENT);
  const isPaying = ({ client }: OutgoingRequest) => client === paying;
  const requestsWith = (floodPath: string) =>
    Array.from({ length: count }, (_, index) =>
      index % PAYING_EVERY === 0
        ? { client: paying, path: LIMITED_PATH }
        : { client: clientAddress(round, FIRST_FLOOD_CLIENT + index), path: floodPath },
    );
  const calm = requestsWith(FREE_PATH);
  const flood = requestsWith(LIMITED_PATH);

  // The paying client's first requests always call the store, even without a flood, so these
  // requests are not measured.
  await openLoop(url, calm.slice(0, RATE_PER_SECOND), RATE_PER_SECOND, isPaying);
  const before = await openLoop(url, calm, RATE_PER_SECOND, isPaying);
  const callsBefore = await backend.restCalls();
  const during = await openLoop(url, flood, RATE_PER_SECOND, isPaying);
  const calls = (await backend.restCalls()) - callsBefore;
  return {
    before: quantilesOf(before.latency),
    during: quantilesOf(during.latency),
    admissions: during.admissions.summary(LIMIT),
    restCallsPerRequest: calls / count,
  };
}
