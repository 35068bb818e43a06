// Which object an isolate hands its sums over to. Isolates call the global object or, if there are
// many isolates, collectors of their location. Collectors pass sums on to the hub of their location, and
// hubs to the global object. So no object gets more than about 100 calls a second, even if 10,000
// isolates of one location start within five seconds. `npm run simulate:fan-in` shows the calls.

/** The name of the object with all statistics, the overrides and the audit list. */
export const GLOBAL_OBJECT = "global";

/** The maximum number of collectors of a location. New isolates choose one of that many. */
export const MAX_COLLECTORS = 64;

/** The number of isolates that one collector serves. Each calls once in five seconds. */
const ISOLATES_PER_COLLECTOR = 200;

/** With more isolates than this, isolates call collectors in place of the global object. */
const MAX_DIRECT_ISOLATES = 100;

/** Once collectors are in use, isolates call the global object again below this number. */
const MIN_COLLECTED_ISOLATES = 50;

/** The location of isolates whose continent is unknown. */
const UNKNOWN_LOCATION = "XX";

/** Returns an isolate's location, from the continent of the first request that it has handled. */
export function locationOf(continent: unknown): string {
  return typeof continent === "string" && /^[A-Z]{2}$/.test(continent)
    ? continent
    : UNKNOWN_LOCATION;
}

/**
 * Returns the name of the object that an isolate calls.
 *
 * An isolate chooses again only if an answer has another number of collectors than the answer before.
 * It repeats a failed hand-over at the same object, because only this object knows whether it has
 * added the sums already.
 *
 * @param collectors the number of the last answer; undefined for the first call of an isolate
 * @param random returns a number from 0 to less than 1
 */
export function objectNameFor(
  location: string,
  collectors: number | undefined,
  random: () => number = Math.random,
): string {
  if (collectors === 0) return GLOBAL_OBJECT;
  const count = Math.min(collectors ?? MAX_COLLECTORS, MAX_COLLECTORS);
  return `${location}:${Math.floor(random() * count)}`;
}

/**
 * Returns the name of the object to which an object passes on sums: the hub of the location, such as
 * `EU` for the collector `EU:17`, and the global object for a hub.
 *
 * @returns undefined for the global object
 */
export function parentOf(name: string | undefined): string | undefined {
  if (name === undefined || name === GLOBAL_OBJECT) return undefined;
  const [location, index] = name.split(":");
  return index === undefined ? GLOBAL_OBJECT : location;
}

/**
 * Returns the number of collectors that each location should use.
 *
 * It is enough for a deployment whose isolates are all in one location. For a short time after an
 * isolate has changed from the global object to a collector or back, it is counted twice. So both
 * limits leave a factor of two between growing and shrinking. Otherwise the number would alternate.
 *
 * @param isolates the number of isolates that were seen lately
 * @param before the number that this function returned before
 */
export function collectorCount(isolates: number, before: number): number {
  const needed = Math.min(Math.ceil(isolates / ISOLATES_PER_COLLECTOR), MAX_COLLECTORS);
  if (before === 0) return isolates > MAX_DIRECT_ISOLATES ? needed : 0;
  if (isolates < MIN_COLLECTED_ISOLATES) return 0;
  return needed > before || needed <= before / 2 ? Math.max(needed, 1) : before;
}
