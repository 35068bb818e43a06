import { formatShortTime, formatTime } from "../format.ts";
import { type ChartData, drawingOf, HEIGHT, maxOf, tableRows, valueText } from "./chart-drawing.ts";
import { Sign, Table } from "./components.tsx";

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
        <span class="plot-max">{valueText(data, maxOf(data))}</span>
        <Drawing data={data} />
        <div class="plot-times">
          <span>{formatShortTime(data.start)}</span>
          <span>{formatShortTime(end)}</span>
        </div>
      </div>
      <ChartTable title={title} data={data} bucketsPerRow={bucketsPerRow} />
    </figure>
  );
}

function Drawing({ data }: { data: ChartData }) {
  const { width, grid, paths } = drawingOf(data);
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="grid" d={grid} />
      {/* The values of the last bucket still grow, so without a mark the line looks like an outage. */}
      {data.unfinished && <rect class="unfinished" x={width - 1} y="0" width="1" height={HEIGHT} />}
      {paths.map(({ name, path }) => (
        <path class={name} d={path} />
      ))}
    </svg>
  );
}

function ChartTable({ title, data, bucketsPerRow }: Omit<ChartProps, "id">) {
  const columns = data.series.map(({ label }) => ({ label, number: true }));
  return (
    <details>
      <summary>As a table</summary>
      <Table caption={`${title}, as a table`} columns={[{ label: "From (UTC)" }, ...columns]}>
        {tableRows(data, bucketsPerRow).map(({ start, values }) => (
          <tr>
            <th scope="row">{formatTime(start).slice(0, 16)}</th>
            {values.map((text) => (
              <td class="number">{text}</td>
            ))}
          </tr>
        ))}
      </Table>
    </details>
  );
}
