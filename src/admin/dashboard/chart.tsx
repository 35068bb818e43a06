import { Sign } from "./bar.tsx";
import { countText, exactTime, millisecondsText, shortCount, shortTime } from "./format.ts";
import type { ChartData, Series } from "./series.ts";
import { Table } from "./table.tsx";

const WIDTH = 600;
const HEIGHT = 160;

interface ChartProps {
  readonly id: string;
  readonly title: string;
  readonly data: ChartData;
  /** The number of buckets in a row of the table. */
  readonly bucketsPerRow: number;
}

/**
 * A chart. Without scripts it is a drawing, with the same values as a table. The page's script replaces the
 * drawing by an interactive chart.
 */
export function Chart({ id, title, data, bucketsPerRow }: ChartProps) {
  const max = Math.max(0, ...topsOf(data).flat());
  const end = data.start + data.step * (data.series[0]?.values.length ?? 0);
  return (
    <figure class="chart card" id={id} data-live data-chart={JSON.stringify(data)}>
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {data.series.map(({ label, tone }) => (
            <li>
              <Sign tone={tone} /> {label}
            </li>
          ))}
          {data.unfinished && (
            <li>
              <span class="unfinished-sign" aria-hidden="true" /> not over yet
            </li>
          )}
        </ul>
      </figcaption>
      <div class="plot">
        <span class="plot-max">{valueText(data, max)}</span>
        <Drawing data={data} max={max} />
        <div class="plot-times">
          <span>{shortTime(data.start)}</span>
          <span>{shortTime(end)}</span>
        </div>
      </div>
      <ChartTable title={title} data={data} bucketsPerRow={bucketsPerRow} />
    </figure>
  );
}

function Drawing({ data, max }: { data: ChartData; max: number }) {
  const tops = topsOf(data);
  return (
    <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="grid" d={`M0 1H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`} />
      {data.unfinished && <Unfinished count={data.series[0]?.values.length ?? 0} />}
      {tops
        .map((values, index) => {
          const { tone } = data.series[index] as Series;
          const line = lineOf(values, max);
          // The areas lie behind each other: the whole behind its parts.
          return data.stacked ? (
            <path class={`area-${tone}`} d={`${line}V${HEIGHT}H0z`} />
          ) : (
            <path class={`line stroke-${tone} dash-${index}`} d={line} />
          );
        })
        .reverse()}
    </svg>
  );
}

/** Marks the last bucket. Its values still grow, so without a mark the line looks like an outage. */
function Unfinished({ count }: { count: number }) {
  const width = Math.round((10 * WIDTH) / Math.max(1, count - 1)) / 10;
  return <rect class="unfinished" x={WIDTH - width} y="0" width={width} height={HEIGHT} />;
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

function lineOf(values: readonly number[], max: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  const scale = max > 0 ? (HEIGHT - 8) / max : 0;
  const points = values.map((value, index) => {
    return `${Math.round(index * step * 10) / 10} ${Math.round(HEIGHT - value * scale)}`;
  });
  return `M${points.join("L")}`;
}

function ChartTable({ title, data, bucketsPerRow }: Omit<ChartProps, "id">) {
  const count = data.series[0]?.values.length ?? 0;
  const starts: number[] = [];
  for (let start = 0; start < count; start += bucketsPerRow) starts.push(start);
  const columns = data.series.map(({ label }) => ({ label, number: true }));
  return (
    <details>
      <summary>As a table</summary>
      <Table caption={`${title}, as a table`} columns={[{ label: "From (UTC)" }, ...columns]}>
        {starts.map((start) => (
          <tr>
            <th scope="row">{exactTime(data.start + start * data.step).slice(0, 16)}</th>
            {data.series.map(({ values }) => (
              <td class="number">{rowText(data, values.slice(start, start + bucketsPerRow))}</td>
            ))}
          </tr>
        ))}
      </Table>
    </details>
  );
}

/** Returns the sum of counts; of durations, which have no sum, the greatest. */
function rowText(data: ChartData, values: readonly (number | null)[]): string {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return "–";
  if (data.unit === "ms") return millisecondsText(Math.max(...present));
  return countText(present.reduce((sum, value) => sum + value, 0));
}

function valueText({ unit }: ChartData, value: number): string {
  return unit === "ms" ? millisecondsText(value) : shortCount(value);
}
