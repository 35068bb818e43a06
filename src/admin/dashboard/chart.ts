import {
  formatCount,
  formatMilliseconds,
  formatShortCount,
  formatShortTime,
  formatUtcTime,
} from "../format.ts";
import { type Html, html, Sign, Table, type Tone } from "./components.ts";

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

interface ChartProps {
  /** Of a chart that the page's script refreshes. */
  readonly id?: string;
  readonly title: string;
  /** What distinguishes the chart from others with the same title, for screen readers. Without it, the title is a heading. */
  readonly context?: string;
  readonly data: ChartData;
  /** The number of buckets in a row of the table. */
  readonly bucketsPerRow: number;
}

/**
 * A chart. Without scripts it is a drawing, with the same values as a table. The page's script replaces the
 * drawing by an interactive chart.
 */
export function Chart({ id, title, context, data, bucketsPerRow }: ChartProps): Html {
  const end = data.start + data.step * (data.series[0]?.values.length ?? 0);
  const name =
    context === undefined
      ? html`<h2>${title}</h2>`
      : html`<strong>${title}<span class="hidden"> ${context}</span></strong>`;
  return html`<figure class="chart card"${id !== undefined && html` id="${id}" data-live`} data-chart="${JSON.stringify(data)}">
<figcaption>${name}<ul class="legend">${data.series.map(({ label, tone }) => html`<li>${Sign({ tone })} ${label}</li>`)}${
    data.unfinished &&
    html`<li><span class="unfinished-sign" aria-hidden="true"></span> not over yet</li>`
  }</ul></figcaption>
<div class="plot"><span class="plot-max">${formatValue(data, maxOf(data))}</span>
${drawing(data)}
<div class="plot-times"><span>${formatShortTime(data.start)}</span><span>${formatShortTime(end)}</span></div></div>
<details><summary>As a table</summary>${Table({
    caption: `${context === undefined ? title : `${title} ${context}`}, as a table`,
    columns: [
      { label: "From (UTC)", cell: ({ start }) => formatUtcTime(start) },
      ...data.series.map(({ label }, index) => ({
        label,
        number: true,
        cell: ({ values }: TableRow) => values[index],
      })),
    ],
    rows: tableRows(data, bucketsPerRow),
  })}</details></figure>
`;
}

function drawing(data: ChartData): Html {
  const { width, grid, paths } = drawingOf(data);
  // The values of the last bucket still grow, so without a mark the line looks like an outage.
  const unfinished =
    data.unfinished &&
    html`<rect class="unfinished" x="${width - 1}" y="0" width="1" height="${HEIGHT}"/>`;
  return html`<svg viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="${grid}"/>${unfinished}${paths.map(({ name, path }) => html`<path class="${name}" d="${path}"/>`)}</svg>`;
}

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
function maxOf(data: ChartData): number {
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
      ? { name: `area tone-${tone}`, path: `${line}V${HEIGHT}H0z` }
      : { name: `line stroke tone-${tone} dash-${index}`, path: line };
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

/** Formats a value of a chart by its unit. */
export function formatValue({ unit }: ChartData, value: number): string {
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
function tableRows(data: ChartData, bucketsPerRow: number): TableRow[] {
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
