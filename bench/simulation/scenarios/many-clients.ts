import type { Scenario } from "../scenario.ts";
import { anyOf, steady, uneven } from "../traffic.ts";
import { ALL, FIVE_TIMES, MINUTE, open, USUAL } from "./defaults.ts";

const CLIENTS = 50;
const LIMIT = 200;

/** Fifty clients, each at home on one isolate: its lease is of use to nobody once it has moved. */
export function moves(): Scenario[] {
  const WAYS = [
    { way: "clients stay", movesPerMinute: 0, strays: 0 },
    { way: "a request in 20 strays", movesPerMinute: 0, strays: 0.05 },
    { way: "clients move once a minute", movesPerMinute: 1, strays: 0 },
    { way: "clients move every 10 s", movesPerMinute: 6, strays: 0 },
    { way: "clients move every second", movesPerMinute: 60, strays: 0 },
  ];
  return WAYS.flatMap(({ way, ...routing }) =>
    [ALL, FIVE_TIMES].map(({ times, demand }) => {
      const perSecond = (CLIENTS * times * LIMIT) / 60;
      return {
        ...USUAL,
        group: "moves",
        name: `${way}, ${demand}`,
        limit: LIMIT,
        demand,
        routing,
        runs: 1,
        traffic: (random) =>
          open(steady(perSecond), perSecond, 3 * MINUTE, random, anyOf(CLIENTS, random)),
      };
    }),
  );
}

/** A thousand clients, some of which ask far more often than others. */
export function unevenClients(): Scenario[] {
  return [10, 100, 1000].map((isolates) => ({
    ...USUAL,
    group: "uneven",
    name: `1,000 clients by Zipf, ${isolates.toLocaleString("en-US")} isolates`,
    isolates,
    limit: 50,
    demand: "–",
    routing: { movesPerMinute: 0.1, strays: 0.05 },
    deathsPerMinute: 0.01,
    runs: 1,
    traffic: (random) =>
      open(steady(500), 500, 3 * MINUTE, random, uneven(1000, 1.1, random.below(2 ** 31))),
  }));
}
