import type { Random } from "./random.ts";
import type { Traffic } from "./traffic.ts";

/** Which isolate a client's request comes to. */
export interface Routing {
  /** How often a client's home becomes another isolate, per minute. */
  readonly movesPerMinute: number;
  /** The share of requests that come to any isolate, rather than to the client's home. */
  readonly strays: number;
}

/** Every request comes to any isolate: the worst that can happen to leases. */
export const ANYWHERE: Routing = { movesPerMinute: 0, strays: 1 };

/** What is simulated. Times in milliseconds. */
export interface Scenario {
  readonly group: string;
  readonly name: string;
  readonly isolates: number;
  readonly limit: number;
  readonly windowMs: number;
  /** There and back, on average. */
  readonly roundTripMs: number;
  /** Requests offered, in words. */
  readonly demand: string;
  readonly traffic: (random: Random) => Traffic | Promise<Traffic>;
  readonly routing: Routing;
  /** The share of isolates that die in a minute; each is replaced by one that knows nothing. */
  readonly deathsPerMinute: number;
  /** Clocks of isolates are off by up to this, either way. */
  readonly skewMs: number;
  /** The share of calls of which either the request or the answer gets lost. */
  readonly lossShare: number;
  /** How often it is run, each time with another seed. */
  readonly runs: number;
}
