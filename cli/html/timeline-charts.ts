import type { ChartData, Series } from "../../src/admin/dashboard/series.ts";
import type { Tone } from "../../src/admin/dashboard/tone.ts";
import type { Timeline } from "../replay/report.ts";
import { chart } from "./chart.ts";
import { type Html, html } from "./markup.ts";

/** The latest time that a date can have, in milliseconds. */
const MAX_TIME = 8.64e15;

/** Below this share of the highest step, denied requests are too few to be seen among all requests. */
const VISIBLE_SHARE = 0.2;

interface TimelineNames {
  /** What the charts are about, such as `of the rule login`. */
  readonly context: string;
  /** What happens to requests over the limit. */
  readonly denied: string;
  readonly tone: Tone;
}

/**
 * The requests over time, and beside them the denied requests alone if they are too few to be seen. Nothing
 * for a timeline with less than two steps.
 */
export function timelineCharts(timeline: Timeline, names: TimelineNames): Html | undefined {
  const time = timeOf(timeline);
  if (!time) return undefined;
  const { context } = names;
  const allowed: Series = { label: "Allowed", tone: "allowed", values: timeline.allowed };
  const denied: Series = { label: names.denied, tone: names.tone, values: timeline.denied };
  const highest = Math.max(...timeline.allowed);
  const highestDenied = Math.max(...timeline.denied);
  const isSmall = highestDenied > 0 && highestDenied < highest * VISIBLE_SHARE;
  const all: ChartData = { ...time, stacked: true, series: [allowed, denied] };
  const few: ChartData = { ...time, stacked: false, series: [denied] };
  return html`<div class="columns">${chart("Requests over time", context, all)}${isSmall && chart(`${names.denied} requests over time`, context, few)}</div>
`;
}

/** A chart of all requests, for a report that denies none. */
export function requestChart(timeline: Timeline, context: string): Html | undefined {
  const time = timeOf(timeline);
  if (!time) return undefined;
  const values = timeline.allowed.map((count, index) => count + (timeline.denied[index] ?? 0));
  const series: Series = { label: "Requests", tone: "allowed", values };
  return chart("Requests over time", context, { ...time, stacked: true, series: [series] });
}

function timeOf({ start, stepSeconds, allowed, denied }: Timeline) {
  const from = Date.parse(start ?? "");
  const step = stepSeconds * 1000;
  const count = Math.max(allowed.length, denied.length);
  if (!(count > 1) || !(step > 0) || !(from + count * step <= MAX_TIME)) return undefined;
  return { start: from, step, unit: "count", unfinished: false } as const;
}

/** Returns a timeline with half as many steps, each twice as long. */
export function halved(timeline: Timeline): Timeline {
  const pairs = (values: readonly number[]) =>
    values.flatMap((value, index) => (index % 2 ? [] : [value + (values[index + 1] ?? 0)]));
  const { start, stepSeconds, allowed, denied } = timeline;
  return { start, stepSeconds: 2 * stepSeconds, allowed: pairs(allowed), denied: pairs(denied) };
}
