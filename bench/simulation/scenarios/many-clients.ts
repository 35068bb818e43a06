import type { Scenario } from "../scenario.ts";
import { constantRate, uniformClients, zipfClients } from "../traffic.ts";
import { ALL, DEFAULTS, FIVE_TIMES, MINUTE, openTraffic } from "./defaults.ts";

const CLIENTS = 50;
const LIMIT = 200;

/**
 * Fifty clients, each with a home isolate. After a client has moved, its lease in the old isolate
 * stays unused.
 */
export function moves(): Scenario[] {
  const MOVES = [
    { move: "clients stay", movesPerMinute: 0, strays: 0 },
    { move: "a request in 20 strays", movesPerMinute: 0, strays: 0.05 },
    { move: "clients move once a minute", movesPerMinute: 1, strays: 0 },
    { move: "clients move every 10 s", movesPerMinute: 6, strays: 0 },
    { move: "clients move every second", movesPerMinute: 60, strays: 0 },
  ];
  return MOVES.flatMap(({ move, ...routing }) =>
    [ALL, FIVE_TIMES].map(({ times, demand }) => {
      const perSecond = (CLIENTS * times * LIMIT) / 60;
      return {
        ...DEFAULTS,
        group: "moves",
        name: `${move}, ${demand}`,
        limit: LIMIT,
        demand,
        routing,
        runs: 1,
        traffic: (random) =>
          openTraffic(
            constantRate(perSecond),
            perSecond,
            3 * MINUTE,
            random,
            uniformClients(CLIENTS, random),
          ),
      };
    }),
  );
}

/** A thousand clients that send very different numbers of requests. */
export function unevenClients(): Scenario[] {
  return [10, 100, 1000].map((isolates) => ({
    ...DEFAULTS,
    group: "uneven",
    name: `1,000 clients by Zipf, ${isolates.toLocaleString("en-US")} isolates`,
    isolates,
    limit: 50,
    demand: "–",
    routing: { movesPerMinute: 0.1, strays: 0.05 },
    deathsPerMinute: 0.01,
    runs: 1,
    traffic: (random) =>
      openTraffic(
        constantRate(500),
        500,
        3 * MINUTE,
        random,
        zipfClients(1000, 1.1, random.below(2 ** 31)),
      ),
  }));
}
