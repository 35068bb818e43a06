import type { FleetOptions, Routing } from "./fleet.ts";
import type { NetworkOptions } from "./network.ts";
import type { Random } from "./random.ts";
import type { Traffic } from "./traffic.ts";

/** Every request goes to a random isolate. This is the worst case for leases. */
export const ANYWHERE: Routing = { movesPerMinute: 0, strays: 1 };

/** The input of a simulation. */
export interface Scenario extends FleetOptions, NetworkOptions {
  readonly group: string;
  readonly name: string;
  readonly limit: number;
  readonly windowMs: number;
  /** How many requests each client sends, relative to its limit, such as "5 ×". */
  readonly demand: string;
  readonly traffic: (random: Random) => Traffic | Promise<Traffic>;
  /** Whether isolates take leases. @default true */
  readonly leases?: boolean;
  /** The number of runs, each with a seed of its own. */
  readonly runs: number;
}
