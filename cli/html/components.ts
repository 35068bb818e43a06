import { raw, html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import {
  barWidth,
  type ChartData,
  drawingOf,
  HEIGHT,
  maxOf,
  SIGNS,
  type Tone,
  tableRows,
  valueText,
} from "../../src/admin/dashboard/chart-drawing.ts";
import {
  formatCount,
  formatShortCount,
  formatShortTime,
  formatTime,
} from "../../src/admin/format.ts";
import type { ReportNote } from "../logs/needs.ts";
import { printable } from "../print/text.ts";
import type { ReplayReport } from "../replay/report.ts";

/** A piece of HTML, which templates insert as it is. They escape all other texts. */
export type Html = HtmlEscapedString;

type Value = string | number | Html | false | undefined | readonly Value[];

/** A template of HTML. It escapes its values, except those that are {@link Html}. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  // Hono's templates return a promise only for values that are promises.
  return template(strings, ...values) as Html;
}

/** Marks a text of Weir itself as HTML. Never call it with a text of a log, a configuration or a user. */
export function trusted(text: string): Html {
  return raw(text);
}

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function bar(share: number, tone: Tone): Html {
  return html`<svg class="bar" aria-hidden="true"><rect class="fill-${tone}" width="${barWidth(share)}%" height="100%"/></svg>`;
}

/** The sign of a kind of values: shapes differ as well as colours. */
function sign(tone: Tone): Html {
  return html`<svg class="sign fill-${tone}" viewBox="0 0 12 12" aria-hidden="true"><path d="${SIGNS[tone]}"/></svg>`;
}

/** A column's heading; with `number`, its cells are aligned to the right. */
export interface Column {
  readonly label: string;
  readonly number?: boolean;
}

interface TableOptions {
  /** Screen readers announce it. */
  readonly caption: string;
  readonly showsCaption?: boolean;
  readonly columns: readonly Column[];
  readonly id?: string;
  /** On narrow screens, each row becomes a card. Cells need `data-label`, because the headings are hidden. */
  readonly cards?: boolean;
  /** Whether each of the rows is a `tbody` with rows that belong together. */
  readonly groups?: boolean;
}

/** A table that scrolls in its own box on narrow screens. */
export function table(options: TableOptions, rows: readonly Html[]): Html {
  const { caption, showsCaption, columns, id, cards, groups } = options;
  const lines = rows.map((row) => html`${row}\n`);
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}"><table${
    id !== undefined && html` id="${id}"`
  }${cards && html` class="cards"`}><caption${!showsCaption && html` class="hidden"`}>${caption}</caption>
<thead><tr>${columns.map(({ label, number }) => html`<th scope="col"${number && html` class="number"`}>${label}</th>`)}</tr></thead>
${
  groups
    ? lines
    : html`<tbody>
${lines}</tbody>`
}</table></div>`;
}

export interface Tile {
  readonly label: string;
  readonly tone?: Tone;
  /** A number, which the tile shortens, or a text. */
  readonly value: number | string;
  /** Whether the number is an estimate. */
  readonly isEstimate?: boolean;
  readonly note?: string;
  /** Whether the value needs attention. */
  readonly bad?: boolean;
}

/** The most important numbers of a report. */
export function tiles(all: readonly Tile[]): Html {
  return html`<ul class="tiles">${all.map(tile)}</ul>`;
}

function tile({ label, tone, value, isEstimate, note, bad }: Tile): Html {
  const text = typeof value === "number" ? formatShortCount(value) : value;
  const exact = typeof value === "number" && html` title="${formatCount(value)}"`;
  return html`<li class="tile card${bad && " bad"}"><span class="tile-label">${tone && sign(tone)}${label}</span><span class="tile-value"${exact}>${isEstimate && "≈ "}${text}</span><span class="tile-note">${note}</span></li>
`;
}

/** The maximum length of a text of a log or a configuration in a report, in characters. */
const MAX_LENGTH = 200;
/** The maximum length of a sentence of Weir, which may quote such texts, in characters. */
const MAX_SENTENCE_LENGTH = 1000;

/** Returns a text of a log or a configuration without invisible characters, and shortened if it is very long. */
export function shown(text: string, maxLength = MAX_LENGTH): string {
  const clean = printable(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
}

/** Returns a number that is undefined if the log does not state it. */
export function knownText(value: number | undefined): string {
  return value === undefined ? "unknown" : formatCount(value);
}

/** Returns the text of a note in the same way. */
export function sentence(text: string): string {
  return shown(text, MAX_SENTENCE_LENGTH);
}

/** Returns the names of the first files and the number of the others. */
export function filesText(files: readonly string[], count = 3): string {
  const listed = files.slice(0, count).map((file) => shown(file));
  const rest = files.length - listed.length;
  return rest > 0 ? `${listed.join(", ")} and ${formatCount(rest)} more` : listed.join(", ");
}

/** Returns a time of a report, such as `2026-11-22 17:04:20`, without its zone: all times are UTC. */
export function timeText(iso: string): string {
  return formatTime(Date.parse(iso)).replace(" UTC", "");
}

/** Returns `2026-11-22 17:04:00 – 17:05:00`, with the second date if it is another day. */
export function rangeText(from: string, to: string): string {
  const [start, end] = [timeText(from), timeText(to)];
  const isSameDay = start.slice(0, 10) === end.slice(0, 10);
  return `${start} – ${isSameDay ? end.slice(11) : end}`;
}

/** Returns a number that may be an estimate, such as `about 12,000`. */
export function estimateText(count: number, isEstimate: boolean): string {
  return `${isEstimate ? "about " : ""}${formatCount(count)}`;
}

const NOTICE_SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** The number of items that a notice shows without being opened. */
const VISIBLE_ITEMS = 6;

/** A message above the content of a report. */
export function notice(kind: keyof typeof NOTICE_SIGNS, content: Html): Html {
  return html`<div class="notice ${kind}"><span class="notice-sign" aria-hidden="true">${NOTICE_SIGNS[kind]}</span><div>${content}</div></div>
`;
}

/** What a reader must know about the numbers. Nothing without notes. */
export function notes(
  all: readonly ReportNote[],
  heading = "What these numbers assume",
): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.map(({ text }) => html`<li>${sentence(text)}</li>`);
  return notice("warning", html`<p><b>${heading}</b></p>${folded(items)}`);
}

/** The rules about which a report says nothing. Nothing without such rules. */
export function leftOutRules(
  all: readonly { readonly rule: string; readonly reason: string }[],
): Html | undefined {
  if (all.length === 0) return undefined;
  const items = all.map(({ rule, reason }) => {
    return html`<li><b>${shown(rule)}:</b> ${sentence(reason)}</li>`;
  });
  const heading = `${formatCount(all.length, "rule")} could not be replayed`;
  return notice("bad", html`<p><b>${heading}</b></p>${folded(items)}`);
}

function folded(items: readonly Html[]): Html {
  const rest = items.slice(VISIBLE_ITEMS);
  return html`<ul>${items.slice(0, VISIBLE_ITEMS)}</ul>${
    rest.length > 0 &&
    html`<details class="printed"><summary>${formatCount(rest.length, "more note")}</summary><ul>${rest}</ul></details>`
  }`;
}

/** The number of rows of the table with the same values as a chart. */
const TABLE_ROWS = 8;

/**
 * A chart in the form of the dashboard's charts. Without scripts it is a drawing, with the same values as a
 * table. The report's script replaces the drawing by an interactive chart.
 *
 * @param context what distinguishes the chart from others with the same title, for screen readers
 */
export function chart(title: string, context: string, data: ChartData): Html {
  const count = data.series[0]?.values.length ?? 0;
  return html`<figure class="chart card" data-chart="${JSON.stringify(data)}">
<figcaption><strong>${title}<span class="hidden"> ${context}</span></strong><ul class="legend">${data.series.map(({ label, tone }) => html`<li>${sign(tone)} ${label}</li>`)}</ul></figcaption>
<div class="plot"><span class="plot-max">${valueText(data, maxOf(data))}</span>
${drawing(data)}
<div class="plot-times"><span>${formatShortTime(data.start)}</span><span>${formatShortTime(data.start + data.step * count)}</span></div></div>
${chartTable(`${title} ${context}, as a table`, data, Math.ceil(count / TABLE_ROWS))}</figure>
`;
}

function drawing(data: ChartData): Html {
  const { width, grid, paths } = drawingOf(data);
  return html`<svg viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true"><path class="grid" d="${grid}"/>${paths.map(({ name, path }) => html`<path class="${name}" d="${path}"/>`)}</svg>`;
}

function chartTable(caption: string, data: ChartData, bucketsPerRow: number): Html {
  const columns = data.series.map(({ label }) => ({ label, number: true }));
  const rows = tableRows(data, bucketsPerRow).map(({ start, values }) => {
    const cells = values.map((text) => html`<td class="number">${text}</td>`);
    return html`<tr><th scope="row">${formatTime(start).slice(0, 19)}</th>${cells}</tr>`;
  });
  return html`<details><summary>As a table</summary>${table({ caption, columns: [{ label: "From (UTC)" }, ...columns] }, rows)}</details>
`;
}

/** Whether the log states the facts without which numbers of a report are 0 but unknown. */
export interface StatedFacts {
  readonly addresses: boolean;
  readonly statuses: boolean;
}

export function statedFacts({ notes }: ReplayReport): StatedFacts {
  // A note with a rule is about that rule alone.
  const has = (code: string) => notes.some((note) => note.code === code && note.rule === undefined);
  return { addresses: !has("address-not-logged"), statuses: !has("status-not-logged") };
}
