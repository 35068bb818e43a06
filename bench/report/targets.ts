import { ISOLATES_LIMIT } from "../experiments/isolates.ts";
import { mainResult, type Results, roundsOf, summaryOf, type WorkloadResult } from "./results.ts";
import { p50Ratio, type Summary } from "./summary.ts";

/** A bound for one of Weir's figures, and the measured figure. */
export interface Target {
  readonly name: string;
  /** The bound, such as "≤ 1.3". */
  readonly wanted: string;
  /** Undefined when the run did not measure the figure. */
  readonly measured: number | undefined;
  /** Whether the figure is within its bound; undefined when the run did not measure it. */
  readonly met: boolean | undefined;
}

export function targetsOf(results: Results): Target[] {
  const isolates = results.isolates.find(({ subject }) => subject.name === "weir")?.admitted;
  return [
    ...workloadTargets(results),
    atMost(
      `8 isolates: most admitted of ${ISOLATES_LIMIT}`,
      ISOLATES_LIMIT,
      isolates && Math.max(...isolates),
    ),
    atLeast(
      `8 isolates: fewest admitted of ${ISOLATES_LIMIT}`,
      0.99 * ISOLATES_LIMIT,
      isolates && Math.min(...isolates),
    ),
    atMost("CPU added to forwarding, µs", 60, results.addedCpu?.overForward.median),
    atMost("CPU added to forwarding with two fields, µs", 25, results.addedCpu?.overFields.median),
  ];
}

function workloadTargets(results: Results): Target[] {
  const find = (workload: string) => mainResult(results, workload);
  const figure = (workload: string, subject: string, value: (summary: Summary) => number) => {
    const result = find(workload);
    const summary = result && summaryOf(result, subject);
    return summary && value(summary);
  };
  const restCalls = ({ restCallsPerRequest }: Summary) => restCallsPerRequest;
  const commands = ({ commandsPerRequest }: Summary) => commandsPerRequest;
  const ratio = (summary: Summary) => summary.ratio;
  return [
    atMost("hot key: p50 / baseline's p50", 1.3, figure("hot", "weir", ratio)),
    atMost("hot key: REST calls per request", 0.03, figure("hot", "weir", restCalls)),
    atMost("hot key: Redis commands per request", 0.1, figure("hot", "weir", commands)),
    atMost("1,000 keys: REST calls per request", 0.45, figure("zipf-1k", "weir", restCalls)),
    atMost("1,000 keys: p50 / baseline's p50", 1.3, figure("zipf-1k", "weir", ratio)),
    atMost("abuser: REST calls per request", 0.04, figure("abuser", "weir", restCalls)),
    atMost("new keys: REST calls per request", 0.35, figure("cold", "weir", restCalls)),
    atMost(
      "burst: admitted over the limit",
      0,
      figure("burst", "weir", ({ over }) => over),
    ),
    atMost("burst: REST calls per request", 0.02, figure("burst", "weir", restCalls)),
    atMost("hot key, exact: p50 / @upstash/ratelimit's p50", 1.05, exactBesideUpstash(find("hot"))),
    atMost(
      "hot key, exact, edge clock: Redis commands per request",
      2,
      // The first request of a window needs one more command in every limiter. Rounding to two
      // decimals removes this command from the figure.
      rounded(figure("hot", "weir-exact-edge", commands)),
    ),
  ];
}

function exactBesideUpstash(hot: WorkloadResult | undefined): number | undefined {
  const exact = hot && roundsOf(hot.subjects, "weir-exact");
  const upstash = hot && roundsOf(hot.subjects, "upstash-ratelimit");
  return exact && upstash && p50Ratio(exact, upstash);
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 100) / 100;
}

function atMost(name: string, most: number, measured: number | undefined): Target {
  const met = measured === undefined ? undefined : measured <= most;
  return { name, wanted: `≤ ${most}`, measured, met };
}

function atLeast(name: string, least: number, measured: number | undefined): Target {
  const met = measured === undefined ? undefined : measured >= least;
  return { name, wanted: `≥ ${least}`, measured, met };
}
