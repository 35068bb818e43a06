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

/** The number of collectors changes at most once in this time, unless it grows much. */
const SETTLING_MS = 20_000;

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

/** Whether an object passes on the sums of all collectors of its location. */
export function isHub(name: string): boolean {
  return name !== GLOBAL_OBJECT && !name.includes(":");
}

/**
 * Returns the number of isolates that may start between two calls of an object to its parent. If more
 * isolates start, they keep to the collectors that they have chosen at first, because the number of
 * collectors takes account of them only some seconds later.
 */
export function maxNewIsolatesOf(name: string): number {
  return isHub(name) ? 6 : 0;
}

/**
 * The number of collectors that isolates should use. The global object decides it for all locations, and
 * each hub reduces it to what its location needs.
 */
export class CollectorCount {
  #count: number;
  /** The number that was needed when it was changed last. */
  #neededBefore: number;
  #changedAt = Number.NEGATIVE_INFINITY;
  readonly #startedAt: number;
  readonly #neededFor: (isolates: number, count: number) => number;

  /**
   * @param count the number that was stored; 0 if the object is new
   * @param neededFor returns the number that isolates need
   */
  constructor(count: number, now: number, neededFor = neededEverywhere) {
    this.#count = count;
    this.#neededBefore = count;
    this.#startedAt = now;
    this.#neededFor = neededFor;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Decides anew. The number of the global object is enough if all isolates are in one location.
   *
   * After a change, isolates choose other objects, and are counted twice for as long as the object that
   * they called before remembers them. So for some time, only a need of more than twice the number at the
   * last change counts. The number does not shrink at once either, because an object that has just
   * started does not know all isolates.
   *
   * @param isolates the number of isolates that were seen lately
   */
  update(isolates: number, now: number): number {
    const needed = this.#neededFor(isolates, this.#count);
    const isSettled = now - this.#changedAt >= SETTLING_MS;
    const grows = needed > this.#count && (isSettled || needed > 2 * this.#neededBefore);
    const shrinks = needed < this.#count / 2 && isSettled && now - this.#startedAt >= SETTLING_MS;
    if (grows || shrinks) {
      this.#count = needed;
      this.#neededBefore = needed;
      this.#changedAt = now;
    }
    return this.#count;
  }
}

function neededEverywhere(isolates: number, count: number): number {
  const isFew = count === 0 ? isolates <= MAX_DIRECT_ISOLATES : isolates < MIN_COLLECTED_ISOLATES;
  return isFew ? 0 : neededInLocation(isolates);
}

/** Returns the number of collectors that the isolates of a location need, if they use collectors. */
export function neededInLocation(isolates: number): number {
  const needed = Math.ceil(isolates / ISOLATES_PER_COLLECTOR);
  return Math.min(Math.max(needed, 1), MAX_COLLECTORS);
}
