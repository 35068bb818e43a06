import uPlot from "uplot";
import { formatMilliseconds, formatShortCount, formatShortDate, formatTime } from "../../format.ts";
import type { ChartData } from "../chart.ts";
import type { Tone } from "../components.ts";

const TONES: readonly Tone[] = [
  "allowed",
  "limited",
  "shadow",
  "undecided",
  "refused",
  "unmatched",
  "memory",
];

type ByTone<T> = Readonly<Record<Tone, T>>;

/** The colours of the style sheet, for canvases. */
interface Colours {
  readonly text: string;
  readonly line: string;
  /** Behind the bucket that has not ended. */
  readonly mark: string;
  readonly font: string;
  readonly tones: ByTone<string>;
  /** The fillings of areas. Some have stripes, so that they differ without colours. */
  readonly fills: ByTone<string | CanvasPattern>;
}

function readColours(element: HTMLElement): Colours {
  const probe = document.createElement("span");
  element.append(probe);
  const resolve = (colour: string) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color;
  };
  const read = (name: string) => resolve(`var(--${name})`);
  const paper = read("card");
  const byTone = <T>(of: (tone: Tone) => T) =>
    Object.fromEntries(TONES.map((tone) => [tone, of(tone)])) as ByTone<T>;
  const tones = byTone(read);
  const striped = (tone: Tone) => tone === "limited" || tone === "undecided" || tone === "shadow";
  const pale = (tone: Tone) => resolve(`color-mix(in srgb, var(--${tone}) 50%, var(--card))`);
  const fills = byTone((tone) => (striped(tone) ? stripes(tones[tone], paper) : pale(tone)));
  const { fontFamily } = getComputedStyle(element);
  const colours = {
    text: read("muted"),
    line: read("line"),
    mark: read("line"),
    font: `11px ${fontFamily}`,
    tones,
    fills,
  };
  probe.remove();
  return colours;
}

/** Returns diagonal stripes. */
function stripes(colour: string, paper: string): string | CanvasPattern {
  const size = 6 * devicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  if (!context) return colour;
  context.fillStyle = paper;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 0.45;
  context.fillStyle = colour;
  context.fillRect(0, 0, size, size);
  context.globalAlpha = 1;
  context.strokeStyle = colour;
  context.lineWidth = size / 3;
  context.beginPath();
  for (const offset of [-size, 0, size]) {
    context.moveTo(offset - 1, size + 1);
    context.lineTo(offset + size + 1, -1);
  }
  context.stroke();
  return context.createPattern(canvas, "repeat") ?? colour;
}

/** Shows the values below the pointer. Screen readers have the table beside the chart instead. */
function tooltip(data: () => ChartData, valueText: (value: number) => string): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = "tip";
  box.hidden = true;
  box.setAttribute("aria-hidden", "true");

  return {
    hooks: {
      init: (plot) => plot.over.append(box),
      setCursor: (plot) => {
        const { idx, left = -1 } = plot.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden || typeof idx !== "number") return;
        box.replaceChildren(...linesOf(data(), idx, valueText));
        const isRight = left > plot.over.clientWidth / 2;
        box.style.translate = `calc(${left}px ${isRight ? "- 100% - 12px" : "+ 12px"}) 0`;
      },
    },
  };
}

function linesOf(
  { start, step, series }: ChartData,
  index: number,
  valueText: (value: number) => string,
) {
  const time = document.createElement("b");
  time.textContent = formatTime(start + index * step).slice(0, 16);
  const lines = series.toReversed().map(({ label, tone, values }) => {
    const line = document.createElement("span");
    const dot = document.createElement("i");
    dot.className = `back tone-${tone}`;
    const value = values[index];
    const text = typeof value === "number" ? valueText(value) : "–";
    line.append(dot, `${label} `, text);
    return line;
  });
  return [time, ...lines];
}

const HEIGHT = 220;
const AXIS_WIDTH = 52;

interface Mounted {
  readonly figure: HTMLElement;
  data: ChartData;
  plot: uPlot;
}

export interface Charts {
  /** Replaces a drawing by an interactive chart. */
  mount(figure: HTMLElement): void;
  /** Shows other data. Does nothing for text that is no data. */
  update(figure: HTMLElement, text: string): void;
  /** Draws all charts again: canvases do not follow the colours of the style sheet. */
  redraw(): void;
}

export function createCharts(): Charts {
  const mounted = new Map<HTMLElement, Mounted>();
  const redraw = (each: Mounted) => {
    each.plot.destroy();
    each.plot = draw(each.figure, each.data);
  };
  const redrawAll = () => {
    for (const each of mounted.values()) redraw(each);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const each = mounted.get(target.closest("figure") as HTMLElement);
      each?.plot.setSize({ width: target.clientWidth, height: HEIGHT });
    }
  });

  return {
    mount(figure) {
      const data: ChartData = JSON.parse(figure.dataset.chart ?? "");
      figure.classList.add("interactive");
      mounted.set(figure, { figure, data, plot: draw(figure, data) });
      observer.observe(boxOf(figure));
    },
    update(figure, text) {
      const each = mounted.get(figure);
      if (!each || text === "" || figure.dataset.chart === text) return;
      figure.dataset.chart = text;
      const labels = labelsOf(each.data);
      each.data = JSON.parse(text);
      if (labelsOf(each.data) === labels) each.plot.setData(alignedData(each.data));
      else redraw(each);
    },
    redraw: redrawAll,
  };
}

/** Returns the charts of a page that can be interactive. */
export function chartsIn(root: Document): NodeListOf<HTMLElement> {
  return root.querySelectorAll<HTMLElement>("figure[data-chart]");
}

function labelsOf({ series }: ChartData): string {
  return series.map(({ label }) => label).join();
}

function boxOf(figure: HTMLElement): HTMLElement {
  return figure.querySelector(".plot") as HTMLElement;
}

function draw(figure: HTMLElement, data: ChartData): uPlot {
  const box = boxOf(figure);
  const colours = readColours(figure);
  const axis = {
    stroke: colours.text,
    grid: { stroke: colours.line, width: 1 },
    ticks: { show: false },
  };
  const valueText = data.unit === "ms" ? formatMilliseconds : formatShortCount;
  const options: uPlot.Options = {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    // The text below the last time is centred there, so half of it needs space at the right.
    padding: [8, 24, 0, 0],
    cursor: { sync: { key: "weir" }, drag: { x: false, y: false }, points: { size: 7 } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] } },
    axes: [
      { ...axis, font: colours.font, space: 70, size: 26, values: timeTexts },
      {
        ...axis,
        font: colours.font,
        size: AXIS_WIDTH,
        space: 40,
        values: (_, values) =>
          values.map((value) =>
            Number.isInteger(value) || data.unit === "ms" ? valueText(value) : "",
          ),
      },
    ],
    series: [{}, ...seriesOptions(data, colours)],
    plugins: [tooltip(() => currentData(figure), valueText)],
    hooks: { drawClear: [(plot) => markUnfinished(plot, currentData(figure), colours)] },
  };
  return new uPlot(options, alignedData(data), box);
}

/** Shades the last bucket if it has not ended. */
function markUnfinished(plot: uPlot, { unfinished }: ChartData, { mark }: Colours): void {
  const times = plot.data[0];
  const [from, until] = [times.at(-2), times.at(-1)];
  if (!unfinished || from === undefined || until === undefined) return;
  const left = plot.valToPos(from, "x", true);
  const { top, height } = plot.bbox;
  plot.ctx.fillStyle = mark;
  plot.ctx.fillRect(left, top, plot.valToPos(until, "x", true) - left, height);
}

function currentData(figure: HTMLElement): ChartData {
  return JSON.parse(figure.dataset.chart ?? "");
}

/** Returns the options of the lines. In a stacked chart, the whole is drawn first and its parts over it. */
function seriesOptions({ series, stacked }: ChartData, colours: Colours): uPlot.Series[] {
  const options = series.map(({ label, tone, dash }): uPlot.Series => {
    const stroke = colours.tones[tone];
    if (stacked)
      return { label, stroke, width: 1, fill: colours.fills[tone], points: { show: false } };
    return { label, stroke, width: 2, points: { show: false }, ...(dash && { dash: [...dash] }) };
  });
  return stacked ? options.reverse() : options;
}

function alignedData({ start, step, series, stacked }: ChartData): uPlot.AlignedData {
  const count = series[0]?.values.length ?? 0;
  const times = Array.from({ length: count }, (_, index) => (start + index * step) / 1000);
  if (!stacked) return [times, ...series.map(({ values }) => [...values])];
  const tops: number[][] = [];
  for (const { values } of series) {
    const below = tops.at(-1);
    tops.push(values.map((value, index) => (value ?? 0) + (below?.[index] ?? 0)));
  }
  return [times, ...tops.reverse()];
}

/** Returns the texts below the times: a time of day, or a date if the times are days apart. */
function timeTexts(_: uPlot, seconds: number[]): string[] {
  const step = (seconds[1] ?? 0) - (seconds[0] ?? 0);
  return seconds.map((each) => {
    const time = new Date(each * 1000).toISOString().slice(11, 16);
    return step >= 86_400 || time === "00:00" ? formatShortDate(each * 1000) : time;
  });
}
