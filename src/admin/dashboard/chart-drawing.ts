import type { Bucket, StatisticsQuery } from "../../control/protocol.ts";
import type { RuleSums } from "../../statistics/sums.ts";
import { formatCount, formatMilliseconds, formatShortCount } from "../format.ts";
import { latencyQuantile } from "./histogram.ts";
import { STEP_MS } from "./ranges.ts";

/** The kinds of values in charts and bars. Each has a colour and a shape of its own in the style sheet. */
export type Tone =
  | "allowed"
  | "limited"
  | "shadow"
  | "undecided"
  | "refused"
  | "unmatched"
  | "memory";

/** The signs of the kinds, as paths in a square of 12 by 12. */
export const SIGNS: Readonly<Record<Tone, string>> = {
  allowed: "M6 1a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
  limited: "M6 0.5L11.8 11H0.2z",
  shadow: "M6 0.5L11.5 6L6 11.5L0.5 6z",
  undecided: "M1.5 1.5h9v9h-9z",
  refused: "M2.5 0.5L6 4l3.5-3.5l2 2L8 6l3.5 3.5l-2 2L6 8l-3.5 3.5l-2-2L4 6L0.5 2.5z",
  unmatched: "M1 4.2h10v3.6H1z",
  memory: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
};

/** Returns the width of a bar of 100. A small share that is not 0 is still visible. */
export function barWidth(share: number): number {
  if (!(share > 0)) return 0;
  return Math.max(1, Math.round(1000 * Math.min(1, share)) / 10);
}

/** The values of one line in a chart. */
export interface Series {
  readonly label: string;
  readonly tone: Tone;
  /** One value for each bucket; null if there is none. */
  readonly values: readonly (number | null)[];
  /** Whether the line has dashes, so that it differs from a line with the same colour. */
  readonly dash?: readonly number[];
}

/** What a chart shows. The page's script reads the same object. */
export interface ChartData {
  /** The start of the first bucket and the length of all buckets, in milliseconds. */
  readonly start: number;
  readonly step: number;
  readonly unit: "count" | "ms";
  /** Whether the values are parts of a whole and lie on top of each other, the first at the bottom. */
  readonly stacked: boolean;
  readonly series: readonly Series[];
  /** Whether the last bucket has not ended, so that its values still grow. */
  readonly unfinished: boolean;
}

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

// The parts of a chart that do not depend on how its HTML is written. The reports of the command `weir` use
// them too.

/** The height of a drawing, in the units of its paths. */
export const HEIGHT = 160;

/** A chart as paths. The page stretches it to its own size. */
interface Drawing {
  /** One unit is the distance between two buckets. */
  readonly width: number;
  readonly grid: string;
  /** The rearmost first. The names are the classes that give the colours. */
  readonly paths: readonly { readonly name: string; readonly path: string }[];
}

/** Returns the greatest height in a chart. */
export function maxOf(data: ChartData): number {
  return topsOf(data).reduce((max, values) => Math.max(max, ...values), 0);
}

export function drawingOf(data: ChartData): Drawing {
  const width = Math.max(1, (data.series[0]?.values.length ?? 0) - 1);
  const max = maxOf(data);
  const tops = topsOf(data);
  const paths = data.series.map(({ tone }, index) => {
    const line = lineOf(tops[index] ?? [], max);
    // The areas lie behind each other: the whole behind its parts.
    return data.stacked
      ? { name: `area-${tone}`, path: `${line}V${HEIGHT}H0z` }
      : { name: `line stroke-${tone} dash-${index}`, path: line };
  });
  const grid = `M0 1H${width}M0 ${HEIGHT / 2}H${width}M0 ${HEIGHT - 1}H${width}`;
  return { width, grid, paths: paths.reverse() };
}

/** Returns the heights of the lines. In a stacked chart, each line lies on top of the line before it. */
function topsOf({ series, stacked }: ChartData): number[][] {
  let below: number[] = [];
  return series.map(({ values }) => {
    const tops = values.map((value, index) => (value ?? 0) + (stacked ? (below[index] ?? 0) : 0));
    below = tops;
    return tops;
  });
}

/** Returns a line through all values, in relative steps and with one step for equal values, so that it is short. */
function lineOf(values: readonly number[], max: number): string {
  const scale = max > 0 ? (HEIGHT - 8) / max : 0;
  const [first = HEIGHT, ...rest] = values.map((value) => Math.round(HEIGHT - value * scale));
  let line = `M0 ${first}`;
  let height = first;
  let level = 0;
  for (const next of rest) {
    if (next === height) {
      level += 1;
      continue;
    }
    if (level > 0) line += `h${level}`;
    // A sign separates numbers too.
    line += `l1${next > height ? " " : ""}${next - height}`;
    height = next;
    level = 0;
  }
  return level > 0 ? `${line}h${level}` : line;
}

/** Returns the height of a chart's values as text. */
export function valueText({ unit }: ChartData, value: number): string {
  return unit === "ms" ? formatMilliseconds(value) : formatShortCount(value);
}

/** A row of the table with the same values as a chart. */
interface TableRow {
  /** The start of the row's first bucket, in milliseconds. */
  readonly start: number;
  /** One text for each series. */
  readonly values: readonly string[];
}

/** Returns the rows of the table with the same values as a chart. */
export function tableRows(data: ChartData, bucketsPerRow: number): TableRow[] {
  const rows: TableRow[] = [];
  const count = data.series[0]?.values.length ?? 0;
  for (let start = 0; start < count; start += bucketsPerRow) {
    const values = data.series.map(({ values }) =>
      rowText(data, values.slice(start, start + bucketsPerRow)),
    );
    rows.push({ start: data.start + start * data.step, values });
  }
  return rows;
}

/** Returns the sum of counts; of durations, which have no sum, the greatest. */
function rowText({ unit }: ChartData, values: readonly (number | null)[]): string {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return "–";
  if (unit === "ms") return formatMilliseconds(Math.max(...present));
  return formatCount(present.reduce((sum, value) => sum + value, 0));
}
