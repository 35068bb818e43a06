import { Random } from "../../../../bench/simulation/random.ts";
import type { Scenario } from "../../../../bench/simulation/scenario.ts";
import { anyOf, bursts, of, poisson, steady } from "../../../../bench/simulation/traffic.ts";

const SECOND = 1000;

/** Two isolates near a store, one client that asks for twice its limit, for three windows. */
export function smallScenario(but: Partial<Scenario> = {}): Scenario {
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
    traffic: evenly(10, 30 * SECOND),
    ...but,
  };
}

/** One client, at so many requests per second. */
export function evenly(perSecond: number, durationMs: number): Scenario["traffic"] {
  return (random) => ({
    kind: "open",
    durationMs,
    arrivals: of(() => 0, poisson(steady(perSecond), perSecond, durationMs, random)),
  });
}

/** Anything that may happen, all at once: short windows, far stores, clocks that are wrong, deaths. */
export function anyScenario(seed: number): Scenario {
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
      arrivals: of(
        anyOf(clients, draws),
        burst > 0
          ? bursts(burst, perSecond, durationMs, draws)
          : poisson(steady(perSecond), perSecond, durationMs, draws),
      ),
    }),
  });
}
