import { formatTime } from "../../format.ts";
import { type ChartData, formatValue, spanOf } from "../chart.ts";

/** Shows the values of a chart below the pointer. Screen readers use the table beside the chart. */
export function showValues(root: Document): void {
  const tip = root.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  root.body.append(tip);
  root.addEventListener("mousemove", ({ target, clientX }) => {
    const drawing = (target as Element).closest<SVGElement>("svg[data-chart]");
    tip.hidden = !drawing;
    if (!drawing) return;
    const data: ChartData = JSON.parse(drawing.dataset.chart ?? "");
    const { left, top, width } = drawing.getBoundingClientRect();
    const span = Math.max(1, spanOf(data));
    const middle = data.bars ? 0.5 : 0;
    const nearest = Math.round(((clientX - left) / width) * span - middle);
    const index = Math.min(span - 2 * middle, Math.max(0, nearest));
    const x = left + ((index + middle) / span) * width;
    tip.replaceChildren(valuesAt(data, index));
    tip.classList.toggle("left", clientX > left + width / 2);
    tip.style.translate = `${x + scrollX}px ${top + scrollY}px`;
  });
}

function valuesAt(data: ChartData, index: number): HTMLElement {
  const box = document.createElement("div");
  const time = document.createElement("b");
  time.textContent = formatTime(data.start + index * data.step).slice(0, 16);
  const lines = data.series.toReversed().map(({ label, tone, values }) => {
    const line = document.createElement("span");
    const colour = document.createElement("i");
    colour.style.background = `var(--${tone})`;
    const value = values[index];
    line.append(colour, `${label} `, typeof value === "number" ? formatValue(data, value) : "–");
    return line;
  });
  box.append(time, ...lines);
  return box;
}
