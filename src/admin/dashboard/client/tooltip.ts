import type uPlot from "uplot";
import { exactTime } from "../format.ts";
import type { ChartData } from "../series.ts";

/** Shows the values below the pointer. Screen readers have the table beside the chart instead. */
export function tooltip(data: () => ChartData, valueText: (value: number) => string): uPlot.Plugin {
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
  time.textContent = exactTime(start + index * step).slice(0, 16);
  const lines = series.toReversed().map(({ label, tone, values }) => {
    const line = document.createElement("span");
    const dot = document.createElement("i");
    dot.className = `back-${tone}`;
    const value = values[index];
    const text = typeof value === "number" ? valueText(value) : "–";
    line.append(dot, `${label} `, text);
    return line;
  });
  return [time, ...lines];
}
