import { describe, expect, it } from "vitest";
import { timelineCharts } from "../../../cli/html/replay-page.ts";
import type { Timeline } from "../../../cli/replay/report.ts";
import { type ChartData, drawingOf, HEIGHT } from "../../../src/admin/dashboard/chart.ts";
import { EMPTY_TIMELINE } from "./fixtures.ts";

const NAMES = { context: "of all rules", denied: "Denied", tone: "limited" } as const;

function dataOf(values: readonly number[], others: readonly number[] = []): ChartData {
  const series = [{ label: "Allowed", tone: "allowed", values } as const];
  const denied = { label: "Denied", tone: "limited", values: others } as const;
  return {
    start: 0,
    step: 1000,
    unit: "count",
    stacked: others.length > 0,
    unfinished: false,
    series: others.length > 0 ? [...series, denied] : series,
  };
}

/** Returns the heights through which a path leads, one for each bucket. */
function heightsOf(path: string): number[] {
  const [, first, steps = ""] = /^M0 (-?\d+)([^VHz]*)/.exec(path) ?? [];
  const heights = [Number(first)];
  for (const [, command, x = "", y = "0"] of steps.matchAll(/([hl])(\d+)(?: ?(-?\d+))?/g)) {
    expect(command === "h" || x === "1").toBe(true);
    const height = (heights.at(-1) ?? 0) + Number(y);
    for (let step = 0; step < Number(x); step++) heights.push(height);
  }
  return heights;
}

describe("the drawing of a chart", () => {
  it.each([
    { values: [0, 1, 4, 4, 4, 2], heights: [200, 152, 8, 8, 8, 104] },
    { values: [5, 5, 5], heights: [8, 8, 8] },
    { values: [0, 0], heights: [200, 200] },
    { values: [1e15, 0, 1e15], heights: [8, 200, 8] },
    { values: [3], heights: [8] },
    { values: [], heights: [200] },
  ])("leads through all values: $values", ({ values, heights }) => {
    const { paths, width } = drawingOf(dataOf(values));
    expect(heightsOf(paths[0]?.path ?? "")).toEqual(heights);
    expect(width).toBe(Math.max(1, values.length - 1));
  });

  it("puts the parts of a whole on top of each other, the whole behind", () => {
    const { paths } = drawingOf(dataOf([1, 2], [3, 0]));
    expect(paths.map(({ stroke }) => stroke)).toEqual(["var(--limited)", "var(--allowed)"]);
    expect(paths.map(({ path }) => heightsOf(path))).toEqual([
      [8, 104],
      [152, 104],
    ]);
    expect(paths.every(({ path }) => path.endsWith(`V${HEIGHT}H0z`))).toBe(true);
  });
});

describe("the charts of a timeline", () => {
  const charts = (timeline: Timeline) => `${timelineCharts(timeline, NAMES) ?? ""}`;
  const countOf = (timeline: Timeline) => charts(timeline).match(/<figure/g)?.length ?? 0;
  const steps = { start: "2026-11-20T00:00:00Z", stepSeconds: 60 };

  it("are left out without a second step or without a usable time", () => {
    expect(countOf(EMPTY_TIMELINE)).toBe(0);
    expect(countOf({ ...steps, allowed: [5], denied: [0] })).toBe(0);
    expect(countOf({ ...steps, start: "no time", allowed: [5, 5], denied: [0, 0] })).toBe(0);
    expect(countOf({ ...steps, stepSeconds: 1e15, allowed: [5, 5], denied: [0, 0] })).toBe(0);
  });

  it("show denied requests alone if they are too few to be seen among all", () => {
    expect(countOf({ ...steps, allowed: [100, 100], denied: [0, 3] })).toBe(2);
    expect(countOf({ ...steps, allowed: [100, 100], denied: [0, 30] })).toBe(1);
    expect(countOf({ ...steps, allowed: [100, 100], denied: [0, 0] })).toBe(1);
  });

  it("have the sums of the steps as a table", () => {
    const text = charts({ ...steps, allowed: [1000, 2, 3, 4], denied: [0, 0, 7, 0] });
    const cells = [...text.matchAll(/<td class="number">([^<]*)/g)].map(([, cell]) => cell);
    expect(cells.slice(0, 8)).toEqual(["1,000", "0", "2", "0", "3", "7", "4", "0"]);
  });
});
