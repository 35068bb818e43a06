import { parseAccessLog, readAccessLog } from "../access-log.ts";
import type { Random } from "../random.ts";
import type { Scenario } from "../scenario.ts";
import { syntheticLog } from "../synthetic-log.ts";
import { DEFAULTS, HOUR, MINUTE } from "./defaults.ts";

/** The limits of each address. */
const LIMITS = [
  { limit: 20, windowMs: MINUTE, words: "20 a minute" },
  { limit: 200, windowMs: HOUR, words: "200 an hour" },
];

/**
 * The requests of an access log, in which each address is a client. A log does not name isolates, so the scenario
 * assumes them. Most requests of a client go to its home isolate, and one in twenty goes to a random isolate. A home
 * changes every ten minutes on average, and one isolate in a hundred ends in a minute.
 *
 * @param file the path of a log; if it is undefined, a log is generated
 */
export function accessLog(file: string | undefined): Scenario[] {
  const load = (random: Random) =>
    file === undefined ? parseAccessLog(syntheticLog(random), random) : readAccessLog(file, random);
  return [10, 100].flatMap((isolates) =>
    LIMITS.map(
      ({ limit, windowMs, words }): Scenario => ({
        ...DEFAULTS,
        group: "log",
        name: `${file === undefined ? "a generated log" : "the log"}, ${isolates} isolates, ${words}`,
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
