import { type Figures, PLACES, type Place } from "./figures.ts";
import type { Scenario } from "./scenario.ts";

/** A scenario's figures, all runs together. Shares are from 0 to 1. */
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
  /** Of one run. */
  readonly fewestAdmitted: number;
  readonly mostAdmitted: number;
  readonly undecided: number;
  readonly lost: number;
  readonly over: number;
  readonly overdrawn: number;
  readonly miscounted: number;
  readonly late: number;
  readonly latestMs: number;
  /** Under-admission: of the requests that were within the limits, those that were denied. */
  readonly missed: number;
  /** Of the missed, the share for which quota lay unspent there. */
  readonly missedBy: Record<Place, number>;
  /** The largest part of one window's limit that was missed. */
  readonly worstMissed: number;
  readonly callsPerRequest: number;
  readonly givenBack: number;
  readonly quotaGivenBack: number;
  readonly fromMemory: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export function summaryOf(scenario: Scenario, runs: readonly Figures[]): Summary {
  const { group, name, isolates, limit, windowMs, demand, roundTripMs } = scenario;
  const sumOf = (of: (run: Figures) => number) => runs.reduce((sum, run) => sum + of(run), 0);
  const mostOf = (of: (run: Figures) => number) => Math.max(...runs.map(of));
  const offered = sumOf((run) => run.offered);
  const missed = sumOf((run) => run.missed);
  const waits = Float64Array.from(runs.flatMap((run) => run.waits)).sort();
  const missedBy = { dead: 0, quiet: 0, busy: 0, store: 0 };
  for (const place of PLACES)
    missedBy[place] = share(
      sumOf((run) => run.missedBy[place]),
      missed,
    );
  return {
    ...{ group, name, isolates, limit, windowMs, demand, roundTripMs, runs: runs.length, offered },
    admitted: sumOf((run) => run.admitted),
    fewestAdmitted: Math.min(...runs.map((run) => run.admitted)),
    mostAdmitted: mostOf((run) => run.admitted),
    undecided: sumOf((run) => run.undecided),
    lost: sumOf((run) => run.lost),
    over: sumOf((run) => run.over),
    overdrawn: sumOf((run) => run.overdrawn),
    miscounted: sumOf((run) => run.miscounted),
    late: sumOf((run) => run.late),
    latestMs: mostOf((run) => run.latestMs),
    missed: share(
      missed,
      sumOf((run) => run.rightful),
    ),
    missedBy,
    worstMissed: mostOf((run) => run.worstMissed),
    callsPerRequest: share(
      sumOf((run) => run.calls),
      offered,
    ),
    givenBack: sumOf((run) => run.givenBack),
    quotaGivenBack: sumOf((run) => run.quotaGivenBack),
    fromMemory: share(
      sumOf((run) => run.fromMemory),
      offered,
    ),
    p50Ms: percentile(waits, 0.5),
    p99Ms: percentile(waits, 0.99),
  };
}

/** What must never be, in words; undefined when all is as it must be. */
export function faultOf({ name, over, overdrawn, miscounted, late }: Summary): string | undefined {
  if (over > 0) return `${name}: ${over} requests were admitted over the limit`;
  if (overdrawn > 0) return `${name}: ${overdrawn} requests were admitted without quota`;
  if (miscounted > 0) return `${name}: ${miscounted} counts are not what was charged`;
  if (late > 0) return `${name}: ${late} requests were admitted from leases of a window before`;
  return undefined;
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

/** @param sorted ascending */
function percentile(sorted: Float64Array, rank: number): number {
  return sorted[Math.max(0, Math.ceil(rank * sorted.length) - 1)] ?? 0;
}
