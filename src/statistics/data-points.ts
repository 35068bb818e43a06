import type { MinuteSums } from "./sums.ts";

/** A hand-over writes at most this many data points, the limit of Analytics Engine for an invocation. */
export const MAX_DATA_POINTS = 250;

/** A data point as Analytics Engine expects it. */
export interface DataPoint {
  readonly indexes: [string];
  readonly blobs: string[];
  readonly doubles: number[];
}

/**
 * Returns the data points of sums: for each minute, one with the sums of all requests, and one for each
 * rule. They contain no values of clients. docs/metrics.md describes the columns. If there are too many
 * rules, the rules with the fewest requests are left out.
 */
export function dataPointsOf(minutes: readonly MinuteSums[]): DataPoint[] {
  const all = minutes.map(({ minute, requests, store }): DataPoint => {
    const { calls, failures, commands, latencyMs } = store;
    return {
      indexes: ["all"],
      blobs: ["all", "", String(minute)],
      doubles: [
        requests.requests,
        requests.unmatched,
        requests.refused,
        requests.allowed,
        requests.limited,
        requests.undecidedPassed,
        requests.undecidedDenied,
        requests.fromMemory,
        requests.countedLocally,
        ...[calls, failures, commands, latencyMs],
      ],
    };
  });
  const rules = minutes.flatMap(({ minute, rules }) =>
    Object.entries(rules).map(([name, sums]): DataPoint => {
      const { requests, allowed, limited, marked, undecided, shadowLimited } = sums;
      return {
        indexes: [name],
        blobs: ["rule", name, String(minute)],
        doubles: [requests, allowed, limited, marked, undecided, shadowLimited],
      };
    }),
  );
  rules.sort((one, other) => (other.doubles[0] ?? 0) - (one.doubles[0] ?? 0));
  return [...all, ...rules].slice(0, MAX_DATA_POINTS);
}
