import { countText, millisecondsText, shortCount } from "./format.ts";
import type { ChartData } from "./series.ts";

// The parts of a chart that do not depend on how its HTML is written. The reports of the command `weir` use
// them too.

/** The height of a drawing, in the units of its paths. */
export const HEIGHT = 160;

/** A chart as paths. The page stretches it to its own size. */
export interface Drawing {
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
  return unit === "ms" ? millisecondsText(value) : shortCount(value);
}

/** A row of the table with the same values as a chart. */
export interface TableRow {
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
  if (unit === "ms") return millisecondsText(Math.max(...present));
  return countText(present.reduce((sum, value) => sum + value, 0));
}
