import { countText, millisecondsText, shortCount } from "./format.ts";
import type { ChartData } from "./series.ts";

// The parts of a chart that do not depend on how its HTML is written. The reports of the command `weir` use
// them too.

/** The size of a drawing, in the units of its paths. */
export const WIDTH = 600;
export const HEIGHT = 160;

/** The lines behind the values. */
export const GRID = `M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`;

/** One path of a drawing. */
export interface DrawnPath {
  /** The classes that give it its colour. */
  readonly name: string;
  readonly path: string;
}

/** Returns the greatest height in a chart. */
export function maxOf(data: ChartData): number {
  return Math.max(0, ...topsOf(data).flat());
}

/** Returns the paths of a chart, the rearmost first. */
export function pathsOf(data: ChartData): DrawnPath[] {
  const tops = topsOf(data);
  const max = Math.max(0, ...tops.flat());
  return data.series
    .map(({ tone }, index) => {
      const line = lineOf(tops[index] ?? [], max);
      // The areas lie behind each other: the whole behind its parts.
      return data.stacked
        ? { name: `area-${tone}`, path: `${line}V${HEIGHT}H0z` }
        : { name: `line stroke-${tone} dash-${index}`, path: line };
    })
    .reverse();
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

/** Returns a line through all values. It leaves out the points on a level between two others. */
function lineOf(values: readonly number[], max: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  const scale = max > 0 ? (HEIGHT - 8) / max : 0;
  const heights = values.map((value) => Math.round(HEIGHT - value * scale));
  const points = heights.flatMap((height, index) => {
    const isBetween = height === heights[index - 1] && height === heights[index + 1];
    return isBetween ? [] : [`${Math.round(index * step * 10) / 10} ${height}`];
  });
  return `M${points.join("L")}`;
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
