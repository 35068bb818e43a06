import type { Scenario } from "../scenario.ts";
import { eightIsolates, oneIsolate } from "./checks.ts";
import { accessLog } from "./log.ts";
import { moves, unevenClients } from "./many-clients.ts";
import {
  clocks,
  deaths,
  distances,
  limits,
  losses,
  numbersOfIsolates,
  windows,
} from "./one-client.ts";
import { shapes } from "./shapes.ts";

/**
 * Everything that is simulated, row by row.
 *
 * @param log a file to take requests from; see {@link accessLog}
 */
export function allScenarios(log?: string): Scenario[] {
  return [
    ...numbersOfIsolates(),
    ...limits(),
    ...distances(),
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
