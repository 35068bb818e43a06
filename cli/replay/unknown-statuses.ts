import type { ComparedClient, Comparison, Counts, DeniedClient, ReplayReport } from "./report.ts";

/**
 * Returns a report of a log that does not state statuses: how many denied requests had succeeded is unknown, and
 * not 0.
 */
export function withoutStatuses(report: ReplayReport): ReplayReport {
  const { total, rules, comparison } = report;
  return {
    ...report,
    total: { ...unknownCounts(total), mostDenied: total.mostDenied.map(unknownClient) },
    rules: rules.map((rule) => ({
      ...unknownCounts(rule),
      mostDenied: rule.mostDenied.map(unknownClient),
    })),
    comparison: comparison && unknownComparison(comparison),
  };
}

function unknownCounts<Numbers extends Counts>(counts: Numbers): Numbers {
  return { ...counts, deniedSucceeded: undefined };
}

function unknownClient(client: DeniedClient): DeniedClient {
  return { ...client, deniedSucceeded: undefined };
}

function unknownComparison(comparison: Comparison): Comparison {
  const unknownCompared = (client: ComparedClient): ComparedClient => ({
    ...client,
    newlyDeniedSucceeded: undefined,
  });
  return {
    ...comparison,
    before: unknownCounts(comparison.before),
    requests: { ...comparison.requests, newlyDeniedSucceeded: undefined },
    mostNewlyDenied: comparison.mostNewlyDenied.map(unknownCompared),
    mostNewlyAllowed: comparison.mostNewlyAllowed.map(unknownCompared),
  };
}
