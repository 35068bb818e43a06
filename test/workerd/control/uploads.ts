import type { StatisticsUpload } from "../../../src/control/protocol.ts";
import type { Denials } from "../../../src/statistics/denials.ts";
import {
  type LimitedClient,
  MINUTE_MS,
  type MinuteSums,
  noRuleSums,
  noSums,
} from "../../../src/statistics/sums.ts";

/** The sums of one minute, with this number of requests that a rule has allowed. */
export function minuteAt(at: number, requests: number, rule = "search", peak = 0): MinuteSums {
  const sums = noSums(Math.floor(at / MINUTE_MS));
  return {
    ...sums,
    requests: { ...sums.requests, requests, allowed: requests },
    rules: { [rule]: { ...noRuleSums(), requests, allowed: requests, peak } },
  };
}

/** An upload of the isolate `isolate`, which has no overrides. */
export function uploadOf(sequence: number, more: Partial<StatisticsUpload> = {}): StatisticsUpload {
  return {
    source: "isolate",
    sequence,
    minutes: [],
    clients: [],
    breakerOpen: false,
    overridesVersion: 0,
    ...more,
  };
}

export function clientOf(client: string, count: number, lastAt: number): LimitedClient {
  return { rule: "search", client, count, error: 0, lastAt, shadow: false };
}

/** Returns an identity that ends with a name. */
export const identity = (name: number | string) => `${name}`.padStart(22, "x");

/** A denial of a client by the rule `login`. */
export function denialsOf(
  client: number | string,
  lastAt: number,
  more: Partial<Denials> = {},
): Denials {
  const denials = { rule: "login", policy: "login/1m", mode: "enforce", count: 1 } as const;
  return { ...denials, client: identity(client), firstAt: lastAt, lastAt, ...more };
}
