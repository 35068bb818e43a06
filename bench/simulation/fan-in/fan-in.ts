import { Random } from "../../../cli/simulation/random.ts";
import { VirtualTime } from "../../../cli/simulation/virtual-time.ts";
import { GLOBAL_OBJECT, parentOf } from "../../../src/control/fan-in.ts";
import { startIsolate } from "./isolate.ts";
import { Objects } from "./objects.ts";

/** The most calls that one object may get in a second. */
export const MAX_CALLS_PER_SECOND = 100;

export interface FanInScenario {
  readonly name: string;
  readonly isolates: number;
  /** The locations, among which the isolates are spread evenly. */
  readonly locations: readonly string[];
  /** All isolates start within this time, at random moments. */
  readonly startWithinMs: number;
  /** The mean life of an isolate; a new one replaces each that ends. */
  readonly meanLifeMs: number;
  /** The mean life of an object in memory. The next call creates it anew. */
  readonly objectLifeMs: number;
  readonly durationMs: number;
  readonly seed: number;
}

export interface Result {
  readonly isolates: number;
  /** For each kind of object, the most calls that one object got in one second. */
  readonly calls: Readonly<Record<"global" | "hub" | "collector", number>>;
  /** The number of objects that were called in the last minute. */
  readonly objects: number;
  /** The greatest age of overrides that an answer had when it arrived at an isolate. */
  readonly oldestOverridesMs: number;
  /** The requests that all isolates have handled. */
  readonly requests: number;
  /** The requests that the global object has counted at the end. */
  readonly counted: number;
}

/** Simulates isolates that are always busy, so that each hands over sums every five seconds. */
export async function simulateFanIn(scenario: FanInScenario): Promise<Result> {
  const { isolates, locations, startWithinMs, durationMs, seed } = scenario;
  const startsAt = Date.UTC(2026, 0, 1);
  const time = new VirtualTime(startsAt);
  const random = new Random(seed, "fan-in");
  const objects = new Objects(time, random, scenario.objectLifeMs);
  const run = {
    time,
    random,
    objects,
    endsAt: startsAt + durationMs,
    meanLifeMs: scenario.meanLifeMs,
  };
  const counts = { requests: 0, oldestOverridesMs: 0 };
  for (let i = 0; i < isolates; i++) {
    const location = locations[i % locations.length] as string;
    startIsolate(run, counts, location, startsAt + random.uniform() * startWithinMs);
  }
  await time.run();
  const calls = { global: 0, hub: 0, collector: 0 };
  for (const [name, most] of objects.mostCalls) {
    const kind = kindOf(name);
    calls[kind] = Math.max(calls[kind], most);
  }
  const called = objects.calledSince(run.endsAt - 60_000);
  return { isolates, calls, objects: called, ...counts, counted: objects.counted };
}

function kindOf(name: string): "global" | "hub" | "collector" {
  if (name === GLOBAL_OBJECT) return "global";
  return parentOf(name) === GLOBAL_OBJECT ? "hub" : "collector";
}
