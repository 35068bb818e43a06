import { uniformFloat64 } from "pure-rand/distribution/uniformFloat64";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import {
  MINUTE_MS,
  type MinuteSums,
  noRuleSums,
  noSums,
  type RuleSums,
} from "../../src/statistics/sums.ts";

const DAY_MINUTES = 24 * 60;

/**
 * Invents the sums of past minutes for the rules login, search, export and search-address: a day curve, an
 * attack on the log-in, a customer who exceeds the limit of the search, and a rule in shadow mode. The
 * same seed gives the same sums.
 *
 * @param count the number of minutes
 * @param now a time in the last minute, in milliseconds since the Unix epoch
 */
export function inventHistory(seed: number, count: number, now: number): MinuteSums[] {
  const random = xoroshiro128plus(seed);
  const around = (value: number) => Math.round(value * (0.85 + 0.3 * uniformFloat64(random)));
  const last = Math.floor(now / MINUTE_MS);
  return Array.from({ length: count }, (_, index) => {
    const age = count - index;
    const sums = noSums(last - age + 1);
    const hour = (sums.minute % DAY_MINUTES) / 60;
    const busy = 1 - 0.75 * Math.cos(((hour - 4) / 24) * 2 * Math.PI);
    const attack = age < 42 && age > 17 ? around(180) : 0;
    const rules = {
      login: rule(around(60 * busy) + attack, around(3 * busy) + Math.round(attack * 0.97)),
      search: rule(around(420 * busy), around(26 * busy * (age % 20 < 12 ? 1 : 0.3))),
      export: rule(around(18 * busy), age % 30 < 4 ? around(6) : 0),
      "search-address": shadow(around(420 * busy), age % 25 < 9 ? around(34) : around(2)),
    };
    Object.assign(sums.rules, rules);
    addHead(sums, rules, around(150 * busy));
    return sums;
  });
}

function rule(requests: number, limited: number): RuleSums {
  const denied = Math.min(limited, requests);
  const peak = denied > 0 ? 1 : 0.8;
  return { ...noRuleSums(), requests, allowed: requests - denied, limited: denied, peak };
}

function shadow(requests: number, shadowLimited: number): RuleSums {
  const denied = Math.min(shadowLimited, requests);
  return { ...noRuleSums(), requests, shadowLimited: denied, peak: denied > 0 ? 1 : 0 };
}

/** Sets the sums of requests and of calls to the store so that they fit the sums of the rules. */
function addHead(
  { requests, store }: MinuteSums,
  rules: Readonly<Record<"login" | "search" | "export", RuleSums>>,
  unmatched: number,
): void {
  const applied = [rules.login, rules.search, rules.export];
  const total = (pick: (sums: RuleSums) => number) =>
    applied.reduce((sum, each) => sum + pick(each), 0);
  requests.unmatched = unmatched;
  requests.allowed = total(({ allowed }) => allowed);
  requests.limited = total(({ limited }) => limited);
  requests.requests = unmatched + requests.allowed + requests.limited;
  requests.fromMemory = Math.round(0.41 * (requests.allowed + requests.limited));
  store.calls = requests.allowed + requests.limited - requests.fromMemory;
  store.failures = store.calls > 450 ? 1 : 0;
  const shares = [0.02, 0.09, 0.31, 0.38, 0.15, 0.04, 0.01];
  store.latency = store.latency.map((_, bucket) => Math.round((shares[bucket] ?? 0) * store.calls));
  store.latencyMs = Math.round(store.calls * 7.3);
}
