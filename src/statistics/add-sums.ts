import {
  LATENCY_BOUNDS_MS,
  type MinuteSums,
  type RequestSums,
  type RuleSums,
  type StoreSums,
} from "./sums.ts";

// Empty sums, and functions that add sums. A sum that is missing counts as 0, because the sender may
// have another version of Weir.

export function noRequests(): RequestSums {
  return {
    requests: 0,
    unmatched: 0,
    refused: 0,
    allowed: 0,
    limited: 0,
    undecidedPassed: 0,
    undecidedDenied: 0,
    fromMemory: 0,
    countedLocally: 0,
  };
}

export function noRuleSums(): RuleSums {
  return {
    requests: 0,
    allowed: 0,
    limited: 0,
    marked: 0,
    undecided: 0,
    shadowLimited: 0,
    peak: 0,
  };
}

export function noStoreSums(): StoreSums {
  const latency = new Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0);
  return { calls: 0, failures: 0, commands: 0, latency, latencyMs: 0 };
}

export function noSums(minute: number): MinuteSums {
  return { minute, requests: noRequests(), store: noStoreSums(), rules: {} };
}

/** Adds sums to `total`. */
export function addRequests(total: RequestSums, added: Readonly<RequestSums>): void {
  addFields(total, added, REQUEST_FIELDS);
}

/** Adds the sums of a rule to `total`. Their `peak` is the larger one of both. */
export function addRuleSums(total: RuleSums, added: Readonly<RuleSums>): void {
  addFields(total, added, RULE_COUNTS);
  if (added.peak > total.peak) total.peak = added.peak;
}

/** Adds the sums of calls to the store to `total`. */
export function addStoreSums(total: StoreSums, added: Readonly<StoreSums>): void {
  addFields(total, added, ["calls", "failures", "commands", "latencyMs"]);
  for (const index of total.latency.keys()) {
    total.latency[index] = (total.latency[index] ?? 0) + (added.latency?.[index] ?? 0);
  }
}

/** Adds the sums of rules to `total`, by the rules' names. */
export function addRules(
  total: Record<string, RuleSums>,
  added: Readonly<Record<string, RuleSums>>,
): void {
  for (const [name, sums] of Object.entries(added)) {
    // A rule may have the name "constructor", which every object inherits.
    if (!Object.hasOwn(total, name)) total[name] = noRuleSums();
    addRuleSums(total[name] as RuleSums, sums);
  }
}

/** Adds all sums to `total`, which keeps its minute. */
export function addSums(total: MinuteSums, added: MinuteSums): void {
  addRequests(total.requests, added.requests);
  addStoreSums(total.store, added.store);
  addRules(total.rules, added.rules);
}

const REQUEST_FIELDS = Object.keys(noRequests()) as (keyof RequestSums)[];
const RULE_COUNTS = (Object.keys(noRuleSums()) as (keyof RuleSums)[]).filter(
  (field) => field !== "peak",
);

function addFields<Field extends string>(
  total: Record<Field, number>,
  added: Readonly<Partial<Record<Field, number>>>,
  fields: readonly Field[],
): void {
  for (const field of fields) total[field] = (total[field] ?? 0) + (added[field] ?? 0);
}
