import {
  drawingOf,
  HEIGHT,
  maxOf,
  tableRows,
  valueText,
} from "../../src/admin/dashboard/chart-drawing.ts";
import { exactTime, shortTime } from "../../src/admin/dashboard/format.ts";
import type { ChartData } from "../../src/admin/dashboard/series.ts";
import { sign } from "./bar.ts";
import { type Html, html } from "./markup.ts";
import { table } from "./table.ts";

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
<div class="plot-times"><span>${shortTime(data.start)}</span><span>${shortTime(data.start + data.step * count)}</span></div></div>
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
    return html`<tr><th scope="row">${exactTime(start).slice(0, 19)}</th>${cells}</tr>`;
  });
  return html`<details><summary>As a table</summary>${table({ caption, columns: [{ label: "From (UTC)" }, ...columns] }, rows)}</details>
`;
}
