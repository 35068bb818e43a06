import type { Random } from "./random.ts";
import type { Traffic } from "./traffic.ts";

/**
 * Determines which isolate receives a client's request. Each client has one isolate as its home,
 * and the home can change.
 */
export interface Routing {
  /** How many times a minute a client's home moves to another isolate, on average. */
  readonly movesPerMinute: number;
  /** The share of requests that go to a random isolate instead of the client's home. */
  readonly strays: number;
}

/** Every request goes to a random isolate. This is the worst case for leases. */
export const ANYWHERE: Routing = { movesPerMinute: 0, strays: 1 };

/** The input of a simulation. */
export interface Scenario {
  readonly group: string;
  readonly name: string;
  readonly isolates: number;
  readonly limit: number;
  readonly windowMs: number;
  /** The mean time of a call to the store and back, in milliseconds. */
  readonly roundTripMs: number;
  /** How many requests each client sends, relative to its limit, such as "5 ×". */
  readonly demand: string;
  readonly traffic: (random: Random) => Traffic | Promise<Traffic>;
  readonly routing: Routing;
  /**
   * The share of isolates that end in a minute. A new isolate with empty memory replaces each of
   * them.
   */
  readonly deathsPerMinute: number;
  /** The maximum error of an isolate's clock, in either direction, in milliseconds. */
  readonly skewMs: number;
  /** The share of calls whose request or answer is lost. */
  readonly lossShare: number;
  /** The number of runs, each with a seed of its own. */
  readonly runs: number;
}
