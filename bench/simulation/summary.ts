import { PLACES, type Place, type RunResult } from "./run-result.ts";
import type { Scenario } from "./scenario.ts";

/** The results of all runs of a scenario. Shares are from 0 to 1. */
export interface Summary {
  readonly group: string;
  readonly name: string;
  readonly isolates: number;
  readonly limit: number;
  readonly windowMs: number;
  readonly demand: string;
  readonly roundTripMs: number;
  readonly runs: number;
  readonly offered: number;
  readonly admitted: number;
  /** The smallest number of requests admitted in a run. */
  readonly fewestAdmitted: number;
  /** The largest number of requests admitted in a run. */
  readonly mostAdmitted: number;
  readonly undecided: number;
  readonly lostWithIsolate: number;
  readonly over: number;
  readonly overdrawn: number;
  readonly miscounted: number;
  readonly afterWindow: number;
  readonly mostAfterWindowMs: number;
  /**
   * The number of wrongly denied requests, divided by the number of requests that the limits allow.
   */
  readonly wronglyDeniedShare: number;
  /**
   * For each place of unused quota: the share of the wrongly denied requests that this quota could
   * have admitted.
   */
  readonly wronglyDeniedBy: Readonly<Record<Place, number>>;
  /** In the worst window: the number of wrongly denied requests divided by the limit. */
  readonly worstWindowShare: number;
  readonly callsPerRequest: number;
  readonly returnedLeases: number;
  readonly returnedQuota: number;
  readonly fromMemory: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function summaryOf(scenario: Scenario, runs: readonly RunResult[]): Summary {
  const { group, name, isolates, limit, windowMs, demand, roundTripMs } = scenario;
  const sumOf = (value: (run: RunResult) => number) =>
    runs.reduce((sum, run) => sum + value(run), 0);
  const mostOf = (value: (run: RunResult) => number) => Math.max(...runs.map(value));
  const offered = sumOf((run) => run.offered);
  const wronglyDenied = sumOf((run) => run.wronglyDenied);
  const admissible = sumOf((run) => run.admissible);
  const waits = Float64Array.from(runs.flatMap((run) => run.waits)).sort();
  const wronglyDeniedBy = { dead: 0, quiet: 0, busy: 0, store: 0 };
  for (const place of PLACES) {
    const denied = sumOf((run) => run.wronglyDeniedBy[place]);
    wronglyDeniedBy[place] = share(denied, wronglyDenied);
  }
  return {
    ...{ group, name, isolates, limit, windowMs, demand, roundTripMs, runs: runs.length, offered },
    admitted: sumOf((run) => run.admitted),
    fewestAdmitted: Math.min(...runs.map((run) => run.admitted)),
    mostAdmitted: mostOf((run) => run.admitted),
    undecided: sumOf((run) => run.undecided),
    lostWithIsolate: sumOf((run) => run.lostWithIsolate),
    over: sumOf((run) => run.over),
    overdrawn: sumOf((run) => run.overdrawn),
    miscounted: sumOf((run) => run.miscounted),
    afterWindow: sumOf((run) => run.afterWindow),
    mostAfterWindowMs: mostOf((run) => run.mostAfterWindowMs),
    wronglyDeniedShare: share(wronglyDenied, admissible),
    wronglyDeniedBy,
    worstWindowShare: mostOf((run) => run.worstWindowShare),
    callsPerRequest: share(
      sumOf((run) => run.calls),
      offered,
    ),
    returnedLeases: sumOf((run) => run.returnedLeases),
    returnedQuota: sumOf((run) => run.returnedQuota),
    fromMemory: share(
      sumOf((run) => run.fromMemory),
      offered,
    ),
    p50Ms: percentile(waits, 0.5),
    p99Ms: percentile(waits, 0.99),
  };
}

/** Returns the first broken guarantee, as a sentence; undefined if no guarantee was broken. */
export function violationOf(summary: Summary): string | undefined {
  const { name, over, overdrawn, miscounted, afterWindow } = summary;
  if (over > 0) return `${name}: ${over} requests were admitted over the limit`;
  if (overdrawn > 0) return `${name}: ${overdrawn} requests were admitted without charged quota`;
  if (miscounted > 0) return `${name}: ${miscounted} counts differ from the charged quota`;
  if (afterWindow > 0) return `${name}: ${afterWindow} requests were admitted from expired leases`;
  return undefined;
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/**
 * @param sorted the values, in ascending order
 * @param rank the rank of the returned value, from 0 to 1
 */
function percentile(sorted: Float64Array, rank: number): number {
  return sorted[Math.max(0, Math.ceil(rank * sorted.length) - 1)] ?? 0;
}
