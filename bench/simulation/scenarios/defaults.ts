import type { Random } from "../random.ts";
import { ANYWHERE, type Scenario } from "../scenario.ts";
import {
  arrivalsOf,
  constantRate,
  oneClient,
  poisson,
  type Rate,
  type Traffic,
} from "../traffic.ts";

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** The default scenario: one busy client, whose requests go to random isolates out of 100. */
export const DEFAULTS = {
  isolates: 100,
  limit: 1000,
  windowMs: MINUTE,
  roundTripMs: 20,
  routing: ANYWHERE,
  deathsPerMinute: 0,
  skewMs: 0,
  lossShare: 0,
  runs: 3,
} as const;

/** The number of requests that a client sends, as a multiple of the limit, and a name for it. */
export const HALF = { times: 0.5, demand: "half" } as const;
export const ALL = { times: 1, demand: "all" } as const;
export const FIVE_TIMES = { times: 5, demand: "5 ×" } as const;

interface Demand {
  readonly times: number;
  readonly demand: string;
}

/**
 * Returns a scenario in which one client sends requests at a constant rate for three windows, or
 * for two windows if its limit is large.
 */
export function withDemand({ times, demand }: Demand, rest: Omit<Scenario, "traffic" | "demand">) {
  const perSecond = (times * rest.limit * SECOND) / rest.windowMs;
  const durationMs = (rest.limit > 10_000 ? 2 : 3) * rest.windowMs;
  return {
    ...rest,
    demand,
    traffic: (random: Random) =>
      openTraffic(constantRate(perSecond), perSecond, durationMs, random),
  };
}

/** Returns traffic with a given rate, by default from one client. */
export function openTraffic(
  rate: Rate,
  peakPerSecond: number,
  durationMs: number,
  random: Random,
  nextClient = oneClient(),
): Traffic {
  const times = poisson(rate, peakPerSecond, durationMs, random);
  return { kind: "open", durationMs, arrivals: arrivalsOf(nextClient, times) };
}
