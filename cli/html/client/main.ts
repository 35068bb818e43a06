// The script of the reports. A report can be read without it: the script makes charts interactive, filters
// rules, and copies the suggested rule. It loads nothing.

import { chartsIn, createCharts } from "../../../src/admin/dashboard/client/charts.ts";
import { addCopyButtons } from "./copy.ts";
import { filterRules } from "./filter.ts";
import { prepareForPrint } from "./print.ts";

const charts = createCharts();
// A report may have hundreds of charts. Those that nobody scrolls to stay drawings.
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      charts.mount(target as HTMLElement);
    }
  },
  { rootMargin: "300px" },
);
for (const figure of chartsIn(document)) observer.observe(figure);
for (const choice of document.querySelectorAll("input[name=theme]")) {
  choice.addEventListener("change", charts.redraw);
}
filterRules(document);
addCopyButtons(document);
prepareForPrint(window);
