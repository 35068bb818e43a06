import { zipf } from "../../load/zipf.ts";
import type { Scenario } from "../scenario.ts";
import { constantRate } from "../traffic.ts";
import { DEFAULTS, FIVE_TIMES, openTraffic, SECOND } from "./defaults.ts";

const OFFERED = 5000;

/**
 * In one window, one client sends five times its limit to eight isolates, as in the bench's
 * `isolates` experiment.
 */
export function eightIsolates(): Scenario[] {
  const eight = { ...DEFAULTS, group: "eight", isolates: 8, demand: FIVE_TIMES.demand, runs: 20 };
  const perSecond = OFFERED / 58;
  return [
    {
      ...eight,
      name: "8 isolates, 5,000 evenly within a minute",
      traffic: (random) => openTraffic(constantRate(perSecond), perSecond, 58 * SECOND, random),
    },
    ...[16, 64, 256].map((concurrency): Scenario => {
      const clients = new Array(OFFERED).fill(0);
      return {
        ...eight,
        name: `8 isolates, 5,000, ${concurrency} at a time`,
        traffic: () => ({ kind: "closed", clients, concurrency, handlingMs: 1 }),
      };
    }),
  ];
}

/** One isolate gets requests of a thousand clients, as in the bench's `zipf-1k` workload. */
export function oneIsolate(): Scenario[] {
  const base = { count: 4000, concurrency: 16, limit: 50, roundTripMs: 20, handlingMs: 1 };
  return [
    { ...base, but: "16 at a time" },
    { ...base, but: "handled in 5 ms", handlingMs: 5 },
    { ...base, but: "handled in 20 ms", handlingMs: 20 },
    { ...base, but: "20,000 requests", count: 20_000 },
    { ...base, but: "64 at a time", concurrency: 64 },
    { ...base, but: "near", roundTripMs: 1 },
    { ...base, but: "far", roundTripMs: 100 },
    { ...base, but: "a smaller limit", limit: 20 },
    { ...base, but: "a larger limit", limit: 1000 },
  ].map(({ but, count, concurrency, limit, roundTripMs, handlingMs }) => ({
    ...DEFAULTS,
    group: "zipf",
    name: `1,000 clients by Zipf, ${but}`,
    isolates: 1,
    limit,
    roundTripMs,
    demand: "–",
    runs: 5,
    traffic: (random) => {
      const seed = random.below(2 ** 31);
      const clients = zipf({ keys: 1000, exponent: 1.1, count, seed });
      return { kind: "closed", clients, concurrency, handlingMs };
    },
  }));
}
