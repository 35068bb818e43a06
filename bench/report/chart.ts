import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { BarChart } from "echarts/charts";
import { GridComponent, TitleComponent } from "echarts/components";
import * as echarts from "echarts/core";
import { BASELINE, type Subject } from "../environment/subjects.ts";
import { figure } from "./format.ts";
import {
  mainRedisLatency,
  mainResult,
  type Results,
  summaryOf,
  type WorkloadResult,
} from "./results.ts";
import type { Summary } from "./summary.ts";
import { renderSvg } from "./svg.ts";

echarts.use([BarChart, GridComponent, TitleComponent]);

const WIDTH = 1000;
const LEFT = 260;
const PANEL_GAP = 60;
const TOP = 70;
const ROW_HEIGHT = 24;
const COLORS = { weir: "#1f6feb", peer: "#8c959f", baseline: "#d0d7de" };

/** A column of bars, which shows one figure for each subject. */
interface Panel {
  readonly title: string;
  readonly result: WorkloadResult;
  readonly value: (summary: Summary) => number;
}

/**
 * Writes a chart of latency and price.
 *
 * @returns false if the run has no workload `hot` or `zipf-1k`; then no file is written
 */
export async function writeChart(file: string, results: Results): Promise<boolean> {
  const svg = renderChart(results);
  if (svg === undefined) return false;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${svg}\n`);
  return true;
}

/** @returns the chart as SVG; undefined if the run has no workload `hot` or `zipf-1k` */
export function renderChart(results: Results): string | undefined {
  const { options, machine, date } = results;
  const redisLatencyMs = mainRedisLatency(options.redisLatenciesMs);
  const [hot, zipf] = [mainResult(results, "hot"), mainResult(results, "zipf-1k")];
  if (!hot || !zipf) return undefined;
  const panels: Panel[] = [
    { title: "One hot key: p50, ms", result: hot, value: ({ latency }) => latency.p50 },
    { title: "1,000 keys: p50, ms", result: zipf, value: ({ latency }) => latency.p50 },
    { title: "1,000 keys: $ per million", result: zipf, value: (each) => each.dollarsPerMillion },
  ];
  // The category axis grows upwards, so the reverse order puts the first subject on top.
  const subjects = hot.subjects.map(({ subject }) => subject).reverse();
  const height = TOP + subjects.length * ROW_HEIGHT + 24;
  const panelWidth = (WIDTH - LEFT - PANEL_GAP * panels.length) / panels.length;

  const option = {
    title: [
      ...panels.map(({ title }, index) => ({
        text: title,
        left: LEFT + index * (panelWidth + PANEL_GAP),
        top: 20,
        textStyle: { fontSize: 14, color: "#1f2328" },
      })),
      {
        text: `Redis ${redisLatencyMs} ms away, ${machine.cores} cores of ${machine.cpu}, ${date.slice(0, 10)}`,
        left: LEFT,
        top: height - 26,
        textStyle: { fontSize: 11, fontWeight: "normal", color: "#656d76" },
      },
    ],
    grid: panels.map((_, index) => ({
      left: LEFT + index * (panelWidth + PANEL_GAP),
      width: panelWidth,
      top: TOP - 20,
      height: subjects.length * ROW_HEIGHT,
    })),
    xAxis: panels.map((_, gridIndex) => ({ gridIndex, type: "value", show: false })),
    yAxis: panels.map((_, gridIndex) => ({
      gridIndex,
      type: "category",
      data: subjects.map(({ title }) => title.replaceAll("`", "")),
      axisLabel: { show: gridIndex === 0, color: "#1f2328", width: LEFT, overflow: "none" },
      axisLine: { show: false },
      axisTick: { show: false },
    })),
    series: panels.map((panel, index) => ({
      type: "bar",
      xAxisIndex: index,
      yAxisIndex: index,
      barWidth: ROW_HEIGHT * 0.6,
      data: subjects.map((subject) => bar(panel, subject)),
    })),
  };
  const title =
    "Latency and price of Weir and of other limiters, with forwarding alone as the baseline";
  return renderSvg(option, { width: WIDTH, height }, title);
}

function bar({ result, value }: Panel, subject: Subject): object {
  const summary = summaryOf(result, subject.name);
  const height = summary ? value(summary) : 0;
  const color =
    subject.name === BASELINE ? COLORS.baseline : subject.isWeir ? COLORS.weir : COLORS.peer;
  return {
    value: height,
    itemStyle: { color },
    label: { show: true, position: "right", formatter: figure(height, 2), color: "#1f2328" },
  };
}
