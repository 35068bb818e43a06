import { Random } from "../../../../bench/simulation/random.ts";
import type { Scenario } from "../../../../bench/simulation/scenario.ts";
import {
  arrivalsOf,
  bursts,
  constantRate,
  poisson,
  uniformClients,
} from "../../../../bench/simulation/traffic.ts";

const SECOND = 1000;

/**
 * Returns a scenario with two isolates and one client. The client sends twice its limit in each of
 * three windows.
 */
export function smallScenario(overrides: Partial<Scenario> = {}): Scenario {
  return {
    group: "test",
    name: "small",
    isolates: 2,
    limit: 50,
    windowMs: 10 * SECOND,
    roundTripMs: 20,
    demand: "",
    routing: { movesPerMinute: 0, strays: 1 },
    deathsPerMinute: 0,
    skewMs: 0,
    lossShare: 0,
    runs: 1,
    traffic: constantTraffic(10, 30 * SECOND),
    ...overrides,
  };
}

/** Returns the traffic of one client that sends requests at a constant rate. */
export function constantTraffic(perSecond: number, durationMs: number): Scenario["traffic"] {
  return (random) => ({
    kind: "open",
    durationMs,
    arrivals: arrivalsOf(() => 0, poisson(constantRate(perSecond), perSecond, durationMs, random)),
  });
}

/**
 * Returns a scenario that combines short windows, distant stores, wrong clocks, deaths of isolates
 * and lost calls at random.
 */
export function randomScenario(seed: number): Scenario {
  const random = new Random(seed, "scenario");
  const oneOf = (values: readonly number[]) => values[random.below(values.length)] as number;
  const windowMs = oneOf([SECOND, 2 * SECOND, 10 * SECOND]);
  const limit = oneOf([1, 3, 20, 100, 500]);
  const clients = oneOf([1, 3, 20]);
  const perSecond = Math.min(100, (clients * limit * oneOf([0.5, 1, 2, 5]) * SECOND) / windowMs);
  const durationMs = 5 * windowMs;
  const burst = oneOf([0, 0, 10, 100]);
  return smallScenario({
    name: `seed ${seed}`,
    isolates: oneOf([1, 2, 8, 30]),
    limit,
    windowMs,
    roundTripMs: oneOf([1, 20, 100, 300]),
    routing: { movesPerMinute: oneOf([0, 6, 60]), strays: oneOf([0, 0.05, 1]) },
    deathsPerMinute: oneOf([0, 0.1, 1, 10]),
    skewMs: oneOf([0, 50, SECOND, 30 * SECOND]),
    lossShare: oneOf([0, 0, 0.01, 0.1]),
    traffic: (draws) => ({
      kind: "open",
      durationMs,
      arrivals: arrivalsOf(
        uniformClients(clients, draws),
        burst > 0
          ? bursts(burst, perSecond, durationMs, draws)
          : poisson(constantRate(perSecond), perSecond, durationMs, draws),
      ),
    }),
  });
}
