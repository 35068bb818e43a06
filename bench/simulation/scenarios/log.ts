import { parseAccessLog, readAccessLog } from "../access-log.ts";
import type { Random } from "../random.ts";
import type { Scenario } from "../scenario.ts";
import { madeUpLog } from "../synthetic-log.ts";
import { HOUR, MINUTE, USUAL } from "./defaults.ts";

/** As many requests as the limit allows in the window, for each address. */
const LIMITS = [
  { limit: 20, windowMs: MINUTE, words: "20 a minute" },
  { limit: 200, windowMs: HOUR, words: "200 an hour" },
];

/**
 * Requests as they are in an access log, each address a client. A log does not tell where requests
 * were served: most of a client's come to its home, one in twenty to any isolate, and the home becomes
 * another one every ten minutes on average. One isolate in a hundred dies in a minute.
 *
 * @param file in Common or Combined Log Format; without one, a log is made up
 */
export function accessLog(file: string | undefined): Scenario[] {
  const load = (random: Random) =>
    file === undefined ? parseAccessLog(madeUpLog(random), random) : readAccessLog(file, random);
  return [10, 100].flatMap((isolates) =>
    LIMITS.map(
      ({ limit, windowMs, words }): Scenario => ({
        ...USUAL,
        group: "log",
        name: `${file === undefined ? "a made-up log" : "the log"}, ${isolates} isolates, ${words}`,
        isolates,
        limit,
        windowMs,
        demand: "–",
        routing: { movesPerMinute: 0.1, strays: 0.05 },
        deathsPerMinute: 0.01,
        runs: 1,
        traffic: async (random) => {
          const { arrivals, durationMs } = await load(random);
          return { kind: "open", arrivals, durationMs };
        },
      }),
    ),
  );
}
