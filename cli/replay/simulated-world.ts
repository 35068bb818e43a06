import { Fleet } from "../simulation/fleet.ts";
import { Network, type NetworkRecorder } from "../simulation/network.ts";
import { Random } from "../simulation/random.ts";
import { VirtualTime } from "../simulation/virtual-time.ts";
import { createRowStore } from "./row-store.ts";
import { RowTable } from "./row-table.ts";
import type { UsageMeter } from "./usage-meter.ts";

/**
 * What a log does not state about isolates. Most requests of a client go to its home isolate, and one in
 * twenty goes to a random isolate. A home changes every ten minutes on average, and one isolate in a hundred
 * ends in a minute. bench/ assumes the same for logs.
 */
export const ASSUMED = {
  routing: { movesPerMinute: 0.1, strays: 0.05 },
  deathsPerMinute: 0.01,
  roundTripMs: 20,
  skewMs: 0,
  lossShare: 0,
} as const;

export interface WorldOptions {
  readonly isolates: number;
  readonly seed: number;
  /** The deadline of decisions, in milliseconds. */
  readonly timeoutMs: number;
}

/** Isolates, a network and a store, with a clock that jumps from event to event. */
export interface World {
  readonly time: VirtualTime;
  readonly fleet: Fleet;
}

/**
 * Creates isolates that never run out, with an empty store.
 *
 * @param startsAt milliseconds since the Unix epoch
 * @param usage counts the calls to the store
 */
export function createWorld(
  startsAt: number,
  { isolates, seed, timeoutMs }: WorldOptions,
  usage: UsageMeter,
): World {
  const time = new VirtualTime(startsAt);
  const store = createRowStore(new RowTable());
  const recorder: NetworkRecorder = {
    recordCall() {},
    recordCharges(_isolate, groups, answers, unused) {
      usage.addDecision(groups, answers, unused);
    },
    recordAdjustment(counters, tallies, unused) {
      usage.addAdjustment(counters, tallies, unused);
    },
  };
  const network = new Network(time, store, recorder, new Random(seed, "network"), ASSUMED);
  const options = { ...ASSUMED, isolates, timeoutMs };
  const connect = network.connect.bind(network);
  const fleet = new Fleet(time, new Random(seed, "fleet"), options, connect);
  fleet.planDeaths(Number.POSITIVE_INFINITY);
  return { time, fleet };
}
