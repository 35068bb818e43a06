import type { Scenario } from "../scenario.ts";
import { eightIsolates, oneIsolate } from "./checks.ts";
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

/** All scenarios, in the order of the report. */
export function allScenarios(): Scenario[] {
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
  ];
}

export function groupNames(): string[] {
  return [...new Set(allScenarios().map(({ group }) => group))];
}
