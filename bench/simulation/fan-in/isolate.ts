import type { Random } from "../../../cli/simulation/random.ts";
import type { VirtualTime } from "../../../cli/simulation/virtual-time.ts";
import { objectNameFor } from "../../../src/control/fan-in.ts";
import { HAND_OVER_INTERVAL_MS, type HandOver } from "../../../src/control/protocol.ts";
import { MINUTE_MS, noSums } from "../../../src/statistics/sums.ts";
import type { Objects } from "./objects.ts";

/** How long an isolate waits for the answer to a hand-over. */
const TIMEOUT_MS = 10_000;

interface Run {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly objects: Objects;
  readonly meanLifeMs: number;
  /** After this time, isolates handle no requests. They hand over their last sums. */
  readonly endsAt: number;
}

/** Starts an isolate that hands over one request every five seconds, and repeats failed hand-overs. */
export function startIsolate(
  run: Run,
  counts: { requests: number; oldestOverridesMs: number },
  location: string,
  startsAt: number,
): void {
  const { time, random, objects, meanLifeMs, endsAt } = run;
  const isolate = { skewMs: 0, isAlive: true };
  const source = `${location}-${random.uniform()}`;
  let collectors: number | undefined;
  let target = "";
  let sequence = 0;
  let overridesVersion = 0;
  let unconfirmed: HandOver | undefined;

  const handOver = async () => {
    const isEnd = time.now >= endsAt;
    if (isEnd && !unconfirmed) return;
    target ||= objectNameFor(location, collectors, () => random.uniform());
    if (!unconfirmed) {
      counts.requests += 1;
      const minutes = [minuteWithRequest(time.now)];
      const fields = { source, isolates: 1, minutes, clients: [], breakerOpen: false };
      unconfirmed = { ...fields, sequence: ++sequence, overridesVersion };
    }
    const beganAt = time.now;
    // The busy isolate hands over again as soon as the interval has passed.
    time.at(beganAt + HAND_OVER_INTERVAL_MS, isolate, handOver);
    const answer = await objects.call(isolate, target, unconfirmed, TIMEOUT_MS);
    if (!answer) return;
    unconfirmed = undefined;
    overridesVersion = answer.overrides?.version ?? overridesVersion;
    if (answer.collectors !== collectors) target = "";
    collectors = answer.collectors;
    const ageMs = (answer.overridesAgeMs ?? 0) + time.now - beganAt;
    counts.oldestOverridesMs = Math.max(counts.oldestOverridesMs, ageMs);
  };

  time.at(startsAt, isolate, handOver);
  if (meanLifeMs === Number.POSITIVE_INFINITY) return;
  const diesAt = startsAt + random.exponential(meanLifeMs);
  if (diesAt >= endsAt) return;
  time.at(diesAt, isolate, () => {
    isolate.isAlive = false;
    startIsolate(run, counts, location, diesAt);
  });
}

function minuteWithRequest(now: number) {
  const sums = noSums(Math.floor(now / MINUTE_MS));
  return { ...sums, requests: { ...sums.requests, requests: 1, unmatched: 1 } };
}
