import {
  formatCount,
  formatDuration,
  formatMilliseconds,
  formatShortCount,
  formatShortDate,
  formatUtcTime,
} from "../format.ts";
import { type Html, html, STRIPED, sign, type Tone, table } from "./components.ts";

/** The values of one line in a chart. */
export interface Series {
  readonly label: string;
  readonly tone: Tone;
  /** One value for each bucket; null if the bucket has none. */
  readonly values: readonly (number | null)[];
}

/** The content of a chart. The page's script reads the same object. */
export interface ChartData {
  /** The start of the first bucket and the length of each bucket, in milliseconds. */
  readonly start: number;
  readonly step: number;
  readonly unit: "count" | "ms";
  /** Whether the values are parts of a whole, stacked on top of each other with the first one at the bottom. */
  readonly stacked: boolean;
  /** Whether each bucket is a bar, for rare events: a line would show a rise where nothing happened. */
  readonly bars?: boolean;
  readonly series: readonly Series[];
  /** Whether the last bucket is still in progress, so that its values grow. */
  readonly unfinished: boolean;
}

interface ChartProps {
  /** The id of a chart that the page's script refreshes. */
  readonly id?: string;
  readonly title: string;
  /**
   * Distinguishes the chart from other charts with the same title, for screen readers. Without it, the title is a
   * heading.
   */
  readonly context?: string;
  readonly data: ChartData;
}

/** A chart, and a table with the same values. The page's script shows the values below the pointer. */
export function chart({ id, title, context, data }: ChartProps): Html {
  const name =
    context === undefined
      ? html`<h2>${title}</h2>`
      : html`<strong>${title}<span class="hidden"> ${context}</span></strong>`;
  return html`<figure class="chart card"${id !== undefined && html` id="${id}" data-live`}>
<figcaption class="row">${name}<ul class="row note">${data.series.map(({ label, tone }) => html`<li>${sign(tone)} ${label}</li>`)}${
    data.unfinished &&
    html`<li><svg class="sign unfinished" aria-hidden="true"><rect width="100%" height="100%"/></svg> not over yet</li>`
  }</ul></figcaption>
<div class="plot">${drawing(data)}</div>
<details><summary>As a table</summary>${table({
    caption: `${context === undefined ? title : `${title} ${context}`}, as a table`,
    columns: [
      {
        label: `${formatDuration(data.step * bucketsPerRow(data))} from (UTC)`,
        cell: ({ start }) => formatUtcTime(start),
      },
      ...data.series.map(({ label }, index) => ({
        label,
        number: true,
        cell: ({ values }: TableRow) => values[index],
      })),
    ],
    rows: tableRows(data),
  })}</details></figure>
`;
}

/** The height of a drawing, in pixels. */
export const HEIGHT = 200;

/** The lines of a chart, stretched to the width of the page, with the labels of the values and of the times. */
function drawing(data: ChartData): Html {
  const { width, scale, paths } = drawingOf(data);
  const values = valueTicks(data).map((value) => ({
    y: Math.round(HEIGHT - value * scale),
    text: formatValue(data, value),
  }));
  const times = timeTicks(data);
  // The values of the last bucket still grow. Without a mark, the line would look like an outage.
  const unfinished =
    data.unfinished &&
    html`<rect class="unfinished" x="${width - 1}" y="0" width="1" height="${HEIGHT}"/>`;
  return html`<svg aria-hidden="true">${values.map(({ y, text }) => html`<text x="46" y="${y + 4}" text-anchor="end">${text}</text>`)}</svg><svg data-chart="${JSON.stringify(data)}" aria-hidden="true">
${values.map(({ y }) => html`<line class="grid" x2="100%" y1="${y}" y2="${y}"/>`)}${times.map(
  ({ x, text }) =>
    html`<line class="grid" x1="${x}%" x2="${x}%" y2="${HEIGHT}"/><text x="${x}%" y="${HEIGHT + 16}" text-anchor="${x > 98 ? "end" : "middle"}">${text}</text>`,
)}
<svg viewBox="0 0 ${width} ${HEIGHT}" height="${HEIGHT}" preserveAspectRatio="none">${unfinished}${paths.map(
    ({ fill, stroke, dash, path }) =>
      html`<path fill="${fill}" stroke="${stroke}" stroke-dasharray="${dash}" d="${path}"/>`,
  )}</svg></svg>`;
}

/** Returns the labelled values: round, and at most five above 0. */
function valueTicks(data: ChartData): number[] {
  const max = maxOf(data);
  if (max === 0) return [0];
  const power = 10 ** Math.floor(Math.log10(max / 2));
  const least = data.unit === "count" ? 1 : 0;
  const step = [1, 2, 5].map((factor) => factor * power).find((each) => max / each <= 5);
  return multiplesOf(Math.max(least, step ?? 10 * power), 0, max);
}

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const TICK_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720];
const TICK_DAYS = [2, 5, 7, 14, 30, 60, 120, 365, 1000];
const TICKS_MS = [
  ...TICK_MINUTES.map((minutes) => minutes * MINUTE_MS),
  ...TICK_DAYS.map((days) => days * DAY_MS),
];

/** Returns at most eight round times, with their places as percentages of the width. */
function timeTicks(data: ChartData): { x: number; text: string }[] {
  const { start, step } = data;
  const length = step * spanOf(data);
  const tick = TICKS_MS.find((each) => length / each <= 7);
  if (tick === undefined || length <= 0) return [];
  return multiplesOf(tick, start, start + length).map((at) => {
    const time = new Date(at).toISOString().slice(11, 16);
    return {
      x: Math.round((1000 * (at - start)) / length) / 10,
      text: tick >= DAY_MS || time === "00:00" ? formatShortDate(at) : time,
    };
  });
}

function multiplesOf(step: number, from: number, to: number): number[] {
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, index) => {
    return (first + index) * step;
  });
}

/** A chart as paths, which the browser stretches to the width of the page. */
interface Drawing {
  /** One unit is the distance between two buckets. */
  readonly width: number;
  /** The height of the value 1. */
  readonly scale: number;
  /** The paths, the rearmost first, with the attributes for their colours. */
  readonly paths: readonly {
    readonly fill: string;
    readonly stroke: string;
    readonly dash: string;
    readonly path: string;
  }[];
}

/** The width of a chart in buckets. A line ends at the middles of the first and the last bucket, bars do not. */
export function spanOf({ series, bars }: ChartData): number {
  return (series[0]?.values.length ?? 0) - (bars ? 0 : 1);
}

/** The dashes of the lines, so that lines differ without colours. */
const DASHES = ["none", "6 4", "2 3"];

/** Returns the greatest height in a chart. */
function maxOf(data: ChartData): number {
  return topsOf(data).reduce((max, values) => Math.max(max, ...values), 0);
}

export function drawingOf(data: ChartData): Drawing {
  const width = Math.max(1, spanOf(data));
  const max = maxOf(data);
  const scale = max > 0 ? (HEIGHT - 8) / max : 0;
  const tops = topsOf(data);
  const paths = data.series.map(({ tone }, index) => {
    const line = data.bars ? barsOf(tops[index] ?? [], scale) : lineOf(tops[index] ?? [], scale);
    const stroke = `var(--${tone})`;
    if (!data.stacked) return { fill: "none", stroke, dash: DASHES[index] ?? "none", path: line };
    const fill = STRIPED.includes(tone)
      ? `url(#stripes-${tone})`
      : `color-mix(in srgb, ${stroke} 50%, var(--card))`;
    // The areas lie behind each other: the whole behind its parts.
    return { fill, stroke, dash: "none", path: data.bars ? line : `${line}V${HEIGHT}H0z` };
  });
  return { width, scale, paths: paths.reverse() };
}

/** Returns the heights of the lines. In a stacked chart, each line lies on top of the previous line. */
function topsOf({ series, stacked }: ChartData): number[][] {
  let below: number[] = [];
  return series.map(({ values }) => {
    const tops = values.map((value, index) => (value ?? 0) + (stacked ? (below[index] ?? 0) : 0));
    below = tops;
    return tops;
  });
}

function barsOf(values: readonly number[], scale: number): string {
  const bars = values.map((value, index) => {
    const height = Math.round(value * scale);
    return height > 0 ? `M${index + 0.1} ${HEIGHT}v-${height}h.8v${height}z` : "";
  });
  return bars.join("");
}

/** Returns a short line through all values, in relative steps, with one step for equal values. */
function lineOf(values: readonly number[], scale: number): string {
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
    // A minus sign separates two numbers too.
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

/** A row of a chart's table. */
interface TableRow {
  /** The start of the row's first bucket, in milliseconds. */
  readonly start: number;
  /** One text for each series. */
  readonly values: readonly string[];
}

/** The maximum number of rows of a chart's table. */
const TABLE_ROWS = 12;

function bucketsPerRow({ series }: ChartData): number {
  return Math.ceil((series[0]?.values.length ?? 0) / TABLE_ROWS);
}

/** Returns the rows of a chart's table. */
function tableRows(data: ChartData): TableRow[] {
  const rows: TableRow[] = [];
  const count = data.series[0]?.values.length ?? 0;
  const step = bucketsPerRow(data);
  for (let start = 0; start < count; start += step) {
    const values = data.series.map(({ values }) =>
      rowText(data, values.slice(start, start + step)),
    );
    rows.push({ start: data.start + start * data.step, values });
  }
  return rows;
}

/** Returns the sum of counts. For durations, which have no sum, returns the greatest one. */
function rowText({ unit }: ChartData, values: readonly (number | null)[]): string {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return "–";
  if (unit === "ms") return formatMilliseconds(Math.max(...present));
  return formatCount(present.reduce((sum, value) => sum + value, 0));
}
