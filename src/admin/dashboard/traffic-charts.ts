import type { Bucket, StatisticsQuery } from "../../control/protocol.ts";
import type { Denials } from "../../statistics/denials.ts";
import type { RuleSums } from "../../statistics/sums.ts";
import { latencyQuantile } from "../traffic.ts";
import type { ChartData, Series } from "./chart.ts";
import type { Tone } from "./components.ts";
import { STEP_MS } from "./ranges.ts";

/** A line of a chart: its label, its tone, and the function that reads its values. */
type Line<Sums> = readonly [label: string, tone: Tone, read: (sums: Sums) => number | undefined];

/** Returns the charts of the overview: requests by outcome, denials, and the latency of the store. */
export function overviewCharts(query: StatisticsQuery, buckets: readonly Bucket[], now: number) {
  const chart = chartsOf(query, buckets, buckets, now);
  const limited: Line<Bucket> = ["Limited", "limited", ({ requests }) => requests.limited];
  const quantile = (share: number) => (bucket: Bucket) =>
    latencyQuantile(bucket.store.latency, share);
  return {
    requests: chart({ unit: "count", stacked: true }, [
      ["Allowed", "allowed", ({ requests }) => requests.allowed],
      ["No rule", "unmatched", ({ requests }) => requests.unmatched],
      ["Refused", "refused", ({ requests }) => requests.refused],
      [
        "Undecided",
        "undecided",
        ({ requests }) => requests.undecidedPassed + requests.undecidedDenied,
      ],
      limited,
    ]),
    denials: chart({ unit: "count", stacked: false }, [
      limited,
      ["Undecided, got 503", "undecided", ({ requests }) => requests.undecidedDenied],
    ]),
    latency: chart({ unit: "ms", stacked: false }, [
      ["p50", "allowed", quantile(0.5)],
      ["p95", "undecided", quantile(0.95)],
      ["p99", "limited", quantile(0.99)],
    ]),
  };
}

/**
 * Returns the charts of a rule: its requests by outcome, and its denials when enforced and in shadow mode.
 *
 * @param sums the sums of the rule in each bucket
 */
export function ruleCharts(
  query: StatisticsQuery,
  buckets: readonly Bucket[],
  sums: readonly RuleSums[],
  now: number,
) {
  const chart = chartsOf(query, buckets, sums, now);
  const limited: Line<RuleSums> = ["Limited", "limited", ({ limited }) => limited];
  return {
    requests: chart({ unit: "count", stacked: true }, [
      ["Allowed", "allowed", ({ allowed }) => allowed],
      ["Undecided", "undecided", ({ undecided }) => undecided],
      limited,
    ]),
    denials: chart({ unit: "count", stacked: false }, [
      limited,
      ["Shadow: would deny", "shadow", ({ shadowLimited }) => shadowLimited],
      ["Marked", "undecided", ({ marked }) => marked],
      ["Passed ahead, over", "memory", ({ over }) => over],
    ]),
  };
}

/** Returns the chart of denials, by what happened to the requests. */
export function denialChart(
  query: StatisticsQuery,
  denials: readonly Denials[],
  now: number,
): ChartData {
  const step = STEP_MS[query.resolution];
  const grouped = Map.groupBy(denials, ({ lastAt }) => Math.floor(lastAt / step) * step);
  const groups = [...grouped].map(([at, group]) => ({ at, group }));
  const countOf =
    (...modes: Denials["mode"][]) =>
    ({ group }: (typeof groups)[number]) =>
      group.reduce((sum, { mode, count }) => sum + (modes.includes(mode) ? count : 0), 0);
  return chartsOf(
    query,
    groups,
    groups,
    now,
  )({ unit: "count", stacked: true, bars: true }, [
    ["Limited", "limited", countOf("enforce", "local")],
    ["Shadow: would deny", "shadow", countOf("shadow")],
    ["Passed ahead, over", "memory", countOf("ahead")],
  ]);
}

/** Returns a function that draws lines from the sums of buckets. Reports omit buckets without requests. */
function chartsOf<Sums>(
  { resolution, from, until }: StatisticsQuery,
  buckets: readonly Pick<Bucket, "at">[],
  sums: readonly Sums[],
  now: number,
) {
  const step = STEP_MS[resolution];
  const slots = Array.from<Sums | undefined>({ length: Math.round((until - from) / step) });
  for (const [index, { at }] of buckets.entries()) {
    const slot = Math.floor((at - from) / step);
    if (slot >= 0 && slot < slots.length) slots[slot] = sums[index];
  }
  const time = { start: from, step, unfinished: until > now };
  return (kind: Pick<ChartData, "unit" | "stacked" | "bars">, lines: Line<Sums>[]): ChartData => {
    const missing = kind.unit === "count" ? 0 : null;
    const series = lines.map(([label, tone, read]): Series => {
      return { label, tone, values: slots.map((each) => (each && read(each)) ?? missing) };
    });
    // Lines that are always 0 are omitted, except the two that every reader looks for.
    const shown = series.filter(({ tone, values }) => {
      return tone === "allowed" || tone === "limited" || values.some((value) => value);
    });
    return { ...time, ...kind, series: kind.unit === "ms" ? series : shown };
  };
}
