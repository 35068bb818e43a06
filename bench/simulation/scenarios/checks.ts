import { zipf } from "../../load/zipf.ts";
import type { Scenario } from "../scenario.ts";
import { steady } from "../traffic.ts";
import { FIVE_TIMES, open, SECOND, USUAL } from "./defaults.ts";

const OFFERED = 5000;

/** Eight isolates and one key, five times its limit within one window: none over, few under. */
export function eightIsolates(): Scenario[] {
  const eight = { ...USUAL, group: "eight", isolates: 8, demand: FIVE_TIMES.demand, runs: 20 };
  const perSecond = OFFERED / 58;
  return [
    {
      ...eight,
      name: "8 isolates, 5,000 evenly within a minute",
      traffic: (random) => open(steady(perSecond), perSecond, 58 * SECOND, random),
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

/** A thousand clients on one isolate, as `npm run bench` has them, and what it depends on. */
export function oneIsolate(): Scenario[] {
  const usual = { count: 4000, concurrency: 16, limit: 50, roundTripMs: 20, handlingMs: 1 };
  return [
    { ...usual, but: "16 at a time" },
    { ...usual, but: "handled in 5 ms", handlingMs: 5 },
    { ...usual, but: "handled in 20 ms", handlingMs: 20 },
    { ...usual, but: "20,000 requests", count: 20_000 },
    { ...usual, but: "64 at a time", concurrency: 64 },
    { ...usual, but: "near", roundTripMs: 1 },
    { ...usual, but: "far", roundTripMs: 100 },
    { ...usual, but: "a smaller limit", limit: 20 },
    { ...usual, but: "a larger limit", limit: 1000 },
  ].map(({ but, count, concurrency, limit, roundTripMs, handlingMs }) => ({
    ...USUAL,
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
