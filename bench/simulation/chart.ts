import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { LineChart } from "echarts/charts";
import { GridComponent, LegendComponent, TitleComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { renderSvg } from "../report/svg.ts";
import type { Summary } from "./summary.ts";

echarts.use([LineChart, GridComponent, LegendComponent, TitleComponent]);

const [WIDTH, HEIGHT] = [1000, 360];
const [LEFT, TOP, GAP, BOTTOM] = [60, 90, 90, 60];
const PANEL_WIDTH = (WIDTH - 2 * LEFT - GAP) / 2;
/** The colors of the three demands: half of the limit, the limit, and five times the limit. */
const COLORS = ["#54aeff", "#1f6feb", "#0a3069"];
const TEXT = { color: "#1f2328", fontSize: 14 };

const PANELS = [
  { title: "Store calls per request", value: (each: Summary) => each.callsPerRequest },
  {
    title: "Denied although the limit allowed it, %",
    value: (each: Summary) => 100 * each.wronglyDeniedShare,
  },
];

/** Writes a chart of store calls and wrongly denied requests by the number of isolates. */
export async function writeChart(file: string, summaries: readonly Summary[]): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${renderChart(summaries)}\n`);
}

/** @param summaries all summaries; the chart shows the group "isolates" */
export function renderChart(summaries: readonly Summary[]): string {
  const drawn = summaries.filter(({ group }) => group === "isolates");
  const demands = [...new Set(drawn.map(({ demand }) => demand))];
  const { limit = 0, roundTripMs = 0 } = drawn[0] ?? {};
  const grids = PANELS.map((_, index) => ({
    left: LEFT + index * (PANEL_WIDTH + GAP),
    width: PANEL_WIDTH,
    top: TOP,
    height: HEIGHT - TOP - BOTTOM,
  }));

  const option = {
    color: COLORS,
    title: [
      ...PANELS.map(({ title }, index) => ({
        text: title,
        left: grids[index]?.left,
        top: 16,
        textStyle: TEXT,
      })),
      {
        text: `One key with a limit of ${limit.toLocaleString("en-US")} a minute; each request goes to a random isolate; store ${roundTripMs} ms away`,
        left: LEFT,
        top: HEIGHT - 24,
        textStyle: { ...TEXT, fontSize: 11, color: "#656d76", fontWeight: "normal" },
      },
    ],
    legend: { top: 44, left: LEFT, itemGap: 30, data: demands.map(labelOf) },
    grid: grids,
    xAxis: PANELS.map((_, gridIndex) => ({
      gridIndex,
      type: "log",
      name: "isolates",
      nameLocation: "middle",
      nameGap: 24,
    })),
    yAxis: PANELS.map((_, gridIndex) => ({ gridIndex, type: "value", min: 0 })),
    series: PANELS.flatMap(({ value }, index) =>
      demands.map((demand) => ({
        name: labelOf(demand),
        type: "line",
        xAxisIndex: index,
        yAxisIndex: index,
        data: drawn
          .filter((each) => each.demand === demand)
          .map((each) => [each.isolates, value(each)]),
      })),
    ),
  };
  const title = PANELS.map((panel) => panel.title).join("; ");
  return renderSvg(option, { width: WIDTH, height: HEIGHT }, title);
}

function labelOf(demand: string): string {
  return `offered: ${demand === "all" ? "" : `${demand} `}the limit`;
}
