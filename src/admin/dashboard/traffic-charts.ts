import type { Bucket, StatisticsQuery } from "../../control/protocol.ts";
import type { RuleSums } from "../../statistics/sums.ts";
import { latencyQuantile } from "../traffic.ts";
import type { ChartData, Series } from "./chart.ts";
import { STEP_MS } from "./ranges.ts";

type Read = (bucket: Bucket, ruleSums: RuleSums | undefined) => number | null;

/** Places the values of buckets in time. Buckets without requests are not in reports. */
class Timeline {
  readonly #slots: (number | undefined)[];
  readonly #buckets: readonly Bucket[];
  readonly #ruleBuckets: readonly RuleSums[];
  readonly time: Pick<ChartData, "start" | "step" | "unfinished">;

  constructor(
    query: StatisticsQuery,
    buckets: readonly Bucket[],
    now: number,
    ruleBuckets?: readonly RuleSums[],
  ) {
    const step = STEP_MS[query.resolution];
    this.time = { start: query.from, step, unfinished: query.until > now };
    this.#buckets = buckets;
    this.#ruleBuckets = ruleBuckets ?? [];
    this.#slots = Array.from({ length: Math.round((query.until - query.from) / step) });
    for (const [index, { at }] of buckets.entries()) {
      const slot = Math.floor((at - query.from) / step);
      if (slot >= 0 && slot < this.#slots.length) this.#slots[slot] = index;
    }
  }

  /** @param missing the value of buckets without requests */
  read(read: Read, missing: number | null = 0): (number | null)[] {
    return this.#slots.map((index) => {
      const bucket = index === undefined ? undefined : this.#buckets[index];
      return bucket && index !== undefined ? read(bucket, this.#ruleBuckets[index]) : missing;
    });
  }
}

/** Returns the charts of the overview: requests by outcome, denials, and the latency of the store. */
export function overviewCharts(query: StatisticsQuery, buckets: readonly Bucket[], now: number) {
  const timeline = new Timeline(query, buckets, now);
  const limited = timeline.read(({ requests }) => requests.limited);
  const requests: ChartData = {
    ...timeline.time,
    unit: "count",
    stacked: true,
    series: withValues([
      { label: "Allowed", tone: "allowed", values: timeline.read((b) => b.requests.allowed) },
      { label: "No rule", tone: "unmatched", values: timeline.read((b) => b.requests.unmatched) },
      { label: "Refused", tone: "refused", values: timeline.read((b) => b.requests.refused) },
      { label: "Undecided", tone: "undecided", values: timeline.read(undecidedIn) },
      { label: "Limited", tone: "limited", values: limited },
    ]),
  };
  const denials: ChartData = {
    ...timeline.time,
    unit: "count",
    stacked: false,
    series: withValues([
      { label: "Limited", tone: "limited", values: limited },
      {
        label: "Undecided, got 503",
        tone: "undecided",
        values: timeline.read((b) => b.requests.undecidedDenied),
        dash: [6, 4],
      },
    ]),
  };
  const quantile = (share: number) =>
    timeline.read(({ store }) => latencyQuantile(store.latency, share) ?? null, null);
  const latency: ChartData = {
    ...timeline.time,
    unit: "ms",
    stacked: false,
    series: [
      { label: "p50", tone: "allowed", values: quantile(0.5) },
      { label: "p95", tone: "undecided", values: quantile(0.95), dash: [6, 4] },
      { label: "p99", tone: "limited", values: quantile(0.99), dash: [2, 3] },
    ],
  };
  return { requests, denials, latency };
}

/** Returns the charts of a rule: its requests by outcome, and its denials live and in shadow mode. */
export function ruleCharts(
  query: StatisticsQuery,
  buckets: readonly Bucket[],
  ruleBuckets: readonly RuleSums[],
  now: number,
) {
  const timeline = new Timeline(query, buckets, now, ruleBuckets);
  const of = (read: (sums: RuleSums) => number) =>
    timeline.read((_, sums) => (sums ? read(sums) : 0));
  const chart = (stacked: boolean, series: Series[]): ChartData => {
    return { ...timeline.time, unit: "count", stacked, series: withValues(series) };
  };
  const limited: Series = { label: "Limited", tone: "limited", values: of((sums) => sums.limited) };
  const shadow = of((sums) => sums.shadowLimited);
  return {
    requests: chart(true, [
      { label: "Allowed", tone: "allowed", values: of((sums) => sums.allowed) },
      { label: "Undecided", tone: "undecided", values: of((sums) => sums.undecided) },
      limited,
    ]),
    denials: chart(false, [
      limited,
      { label: "Shadow: would deny", tone: "shadow", values: shadow, dash: [6, 4] },
      { label: "Marked", tone: "undecided", values: of((sums) => sums.marked), dash: [2, 3] },
    ]),
  };
}

/** Leaves out the lines that are 0 all the time, except those that every reader looks for. */
function withValues(series: readonly Series[]): Series[] {
  return series.filter(({ tone, values }) => {
    return tone === "allowed" || tone === "limited" || values.some((value) => value);
  });
}

function undecidedIn({ requests }: Bucket): number {
  return requests.undecidedPassed + requests.undecidedDenied;
}
