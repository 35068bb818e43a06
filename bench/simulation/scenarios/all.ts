import type { Scenario } from "../scenario.ts";
import { eightIsolates, oneIsolate } from "./checks.ts";
import { accessLog } from "./log.ts";
import { moves, unevenClients } from "./many-clients.ts";
import {
  clocks,
  deaths,
  limits,
  losses,
  numbersOfIsolates,
  roundTrips,
  windows,
} from "./one-client.ts";
import { shapes } from "./shapes.ts";

/**
 * All scenarios, in the order of the report.
 *
 * @param log the file of an access log; see {@link accessLog}
 */
export function allScenarios(log?: string): Scenario[] {
  return [
    ...numbersOfIsolates(),
    ...limits(),
    ...roundTrips(),
    ...deaths(),
    ...moves(),
    ...clocks(),
    ...losses(),
    ...windows(),
    ...shapes(),
    ...unevenClients(),
    ...eightIsolates(),
    ...oneIsolate(),
    ...accessLog(log),
  ];
}

export function groupNames(): string[] {
  return [...new Set(allScenarios().map(({ group }) => group))];
}
