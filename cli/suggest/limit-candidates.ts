import { kindLimit } from "./kind-limit.ts";
import type { NumberCounts } from "./number-counts.ts";
import type { HistogramBar, ProposedLimit, SuggestedLimit } from "./suggestion.ts";

/** The shares of clients that the suggested limits touch, each as a divisor of their number. */
const DIVISORS = [100, 1000, 10_000];

/**
 * The share of the proposed limit: 0.1 % of the clients. Of fewer than 1,000 clients, this is less than one client,
 * so the limit would be that of the busiest client, who may be an attacker. Then it is 1 %.
 */
const PROPOSED_DIVISOR = 1000;
const PROPOSED_DIVISOR_OF_FEW = 100;

/** The busiest windows of all clients, or of a uniform sample of them. */
export interface BusiestWindows {
  /** The number of requests in the busiest window of each client, in ascending order. */
  readonly sorted: Uint32Array;
  /** The number of clients for which each element stands. */
  readonly weight: number;
}

/**
 * Returns the lowest limits that deny at most 1 %, 0.1 % and 0.01 % of clients, each in at least one window;
 * nothing without clients.
 *
 * A window with more requests than the limit has as many denials as it has requests above the limit, because
 * denied requests do not count.
 *
 * @param counts the requests of all pairs of a client and a window
 */
export function limitCandidates(busiest: BusiestWindows, counts: NumberCounts): SuggestedLimit[] {
  if (busiest.sorted.length === 0) return [];
  return DIVISORS.map((divisor) => ({
    share: 1 / divisor,
    ...deniedBy(lowestLimit(busiest, divisor), busiest, counts),
  }));
}

/** Returns the limit that a rule should have first; undefined without clients. */
export function proposedLimit(
  busiest: BusiestWindows,
  counts: NumberCounts,
): ProposedLimit | undefined {
  const { sorted, weight } = busiest;
  if (sorted.length === 0) return undefined;
  const areFew = sorted.length * weight < PROPOSED_DIVISOR;
  const divisor = areFew ? PROPOSED_DIVISOR_OF_FEW : PROPOSED_DIVISOR;
  return deniedBy(kindLimit(lowestLimit(busiest, divisor)), busiest, counts);
}

function lowestLimit({ sorted }: BusiestWindows, divisor: number): number {
  // This number of the busiest clients may be denied, but not the one before them.
  const deniable = Math.floor(sorted.length / divisor);
  return sorted[sorted.length - 1 - deniable] as number;
}

function deniedBy(
  limit: number,
  { sorted, weight }: BusiestWindows,
  counts: NumberCounts,
): ProposedLimit {
  const clientsDenied = clientsAbove(limit, sorted) * weight;
  return { limit, clientsDenied, requestsDenied: counts.excessOver(limit) };
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

/** Returns how many clients have 1, 2, 3 to 4, 5 to 8 … requests in their busiest window. */
export function histogramOf({ sorted, weight }: BusiestWindows): HistogramBar[] {
  const bars: HistogramBar[] = [];
  const max = sorted.at(-1) ?? 0;
  let below = 0;
  for (let to = 1; below < sorted.length; to *= 2) {
    const upTo = sorted.length - clientsAbove(to, sorted);
    const from = Math.floor(to / 2) + 1;
    bars.push({ from, to: Math.max(from, Math.min(to, max)), clients: (upTo - below) * weight });
    below = upTo;
  }
  return bars;
}
