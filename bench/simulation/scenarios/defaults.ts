import type { Random } from "../random.ts";
import { ANYWHERE, type Scenario } from "../scenario.ts";
import { of, oneClient, poisson, type Rate, steady, type Traffic } from "../traffic.ts";

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;

/** One client of a busy API, whose requests come to any of 100 isolates: what others vary. */
export const USUAL = {
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

/** How much is offered: a multiple of the limit, and its name. */
export const HALF = { times: 0.5, demand: "half" } as const;
export const ALL = { times: 1, demand: "all" } as const;
export const FIVE_TIMES = { times: 5, demand: "5 ×" } as const;

type Demand = { readonly times: number; readonly demand: string };

/** One client that asks evenly, for three windows; for two where a limit is large. */
export function offered({ times, demand }: Demand, rest: Omit<Scenario, "traffic" | "demand">) {
  const perSecond = (times * rest.limit * SECOND) / rest.windowMs;
  const durationMs = (rest.limit > 10_000 ? 2 : 3) * rest.windowMs;
  return {
    ...rest,
    demand,
    traffic: (random: Random) => open(steady(perSecond), perSecond, durationMs, random),
  };
}

/** Requests of one client, or of many, at a rate. */
export function open(
  rate: Rate,
  peakPerSecond: number,
  durationMs: number,
  random: Random,
  clients = oneClient(),
): Traffic {
  const times = poisson(rate, peakPerSecond, durationMs, random);
  return { kind: "open", durationMs, arrivals: of(clients, times) };
}
