import { formatWindow } from "../../src/config/window.ts";
import type { LogSummary } from "../logs/progress.ts";
import type { ClientCounts, NumberCounts } from "./counts.ts";
import type { RequestedRule } from "./requested-rule.ts";
import type {
  LoudClient,
  ProposedLimit,
  SuggestedLimit,
  Suggestion,
  WindowSuggestion,
} from "./suggestion.ts";

/** The first digits of numbers that are easy to remember, in ascending order. */
const DIGITS = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100];

/** Rounds a limit up to a number that is easy to remember. A limit of up to 10 stays as it is. */
export function roundUpToMemorable(limit: number): number {
  if (limit <= 10) return limit;
  let factor = 1;
  while (factor * 100 < limit) factor *= 10;
  const digits = DIGITS.find((each) => each * factor >= limit) ?? 100;
  return digits * factor;
}

/** The suggested limits deny at most 1 %, 0.1 % and 0.01 % of the clients. */
const DIVISORS = [100, 1000, 10_000];

/**
 * The proposed limit denies at most 0.1 % of the clients. Of fewer than 1,000 clients, this share is less than one
 * client, so the limit would admit the busiest client, who may be an attacker. The share is then 1 %.
 */
const PROPOSED_DIVISOR = 1000;
const PROPOSED_DIVISOR_OF_FEW = 100;

/**
 * Returns the lowest limits that deny requests of at most 1 %, 0.1 % and 0.01 % of clients; none without clients.
 *
 * In each window, the requests above the limit are denied, and no others: denied requests take no quota.
 *
 * @param busiest the number of requests in the busiest window of each client, in ascending order
 * @param counts the requests of all pairs of a client and a window
 */
function limitCandidates(busiest: Uint32Array, counts: NumberCounts): SuggestedLimit[] {
  if (busiest.length === 0) return [];
  return DIVISORS.map((divisor) => ({
    share: 1 / divisor,
    ...deniedBy(lowestLimit(busiest, divisor), busiest, counts),
  }));
}

/** Returns the limit that a rule should have first; undefined without clients. */
function proposedLimit(busiest: Uint32Array, counts: NumberCounts): ProposedLimit | undefined {
  if (busiest.length === 0) return undefined;
  const areFew = busiest.length < PROPOSED_DIVISOR;
  const divisor = areFew ? PROPOSED_DIVISOR_OF_FEW : PROPOSED_DIVISOR;
  return deniedBy(roundUpToMemorable(lowestLimit(busiest, divisor)), busiest, counts);
}

function lowestLimit(busiest: Uint32Array, divisor: number): number {
  // This number of the busiest clients may be denied, but not the next client.
  const deniable = Math.floor(busiest.length / divisor);
  return busiest[busiest.length - 1 - deniable] as number;
}

function deniedBy(limit: number, busiest: Uint32Array, counts: NumberCounts): ProposedLimit {
  return {
    limit,
    clientsDenied: clientsAbove(limit, busiest),
    requestsDenied: counts.excessOver(limit),
  };
}

/** Returns how many of the sorted numbers are above a limit. */
function clientsAbove(limit: number, sorted: Uint32Array): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) > limit) high = middle;
    else low = middle + 1;
  }
  return sorted.length - low;
}

const LOUDEST = 10;

/** Returns the report about counted requests, without the rule and without notes. */
export function buildSuggestion(
  { name, match, key, windows }: RequestedRule,
  counts: ClientCounts,
  log: LogSummary,
): Suggestion {
  counts.finish();
  return {
    version: 1,
    log,
    name,
    match,
    key,
    notes: [],
    requests: counts.requests,
    clients: counts.clients,
    requestsLeftOut: counts.leftOut,
    windows: windows.map((window, index) => windowSuggestion(formatWindow(window), index, counts)),
    loudest: loudestClients(counts),
    rule: undefined,
  };
}

function windowSuggestion(
  window: string,
  index: number,
  { windows }: ClientCounts,
): WindowSuggestion {
  const { counts, busiest } = windows[index] as (typeof windows)[number];
  const sorted = Uint32Array.from(busiest).sort();
  return {
    window,
    clientWindows: counts.total,
    median: counts.quantile(0.5),
    p95: counts.quantile(0.95),
    p99: counts.quantile(0.99),
    max: counts.max,
    limits: limitCandidates(sorted, counts),
    proposed: proposedLimit(sorted, counts),
  };
}

function loudestClients({ texts, requestsOf, succeededOf, windows }: ClientCounts): LoudClient[] {
  const { busiest = [], busiestStart = [] } = windows[0] ?? {};
  const most = (client: number) => busiest[client] as number;
  return [...busiest.keys()]
    .sort((one, other) => most(other) - most(one) || one - other)
    .slice(0, LOUDEST)
    .map((client) => ({
      client: texts[client] as string,
      requests: requestsOf[client] as number,
      succeeded: succeededOf[client] as number,
      busiest: most(client),
      busiestStart: new Date(busiestStart[client] as number).toISOString(),
    }));
}
