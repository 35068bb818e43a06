import { chartsIn, createCharts } from "../../../src/admin/dashboard/client/charts.ts";
import { formatCount } from "../../../src/admin/format.ts";

/**
 * Filters the rules of a report while the reader types. A rule stays if its row in the table has the text, or
 * if one of its clients has it. Then the other clients of that rule are hidden.
 */
function filterRules(root: Document): void {
  const form = root.querySelector<HTMLFormElement>("form.filter");
  const input = form?.querySelector("input");
  const output = form?.querySelector("output");
  if (!form || !input || !output) return;
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  const rules = [...root.querySelectorAll<HTMLElement>("#rules-table tbody tr")].map((row) => {
    return { row, card: root.getElementById(row.dataset.rule ?? "") };
  });
  input.addEventListener("input", () => {
    const sought = input.value.trim().toLowerCase();
    const shown = rules.filter((rule) => showRule(rule, sought));
    output.textContent = `${formatCount(shown.length)} of ${formatCount(rules.length, "rule")}`;
  });
}

interface FilteredRule {
  readonly row: HTMLElement;
  /** The part of the report about the rule; rules that denied nothing have none. */
  readonly card: HTMLElement | null;
}

function showRule({ row, card }: FilteredRule, sought: string): boolean {
  const isNamed = has(row, sought);
  let isShown = isNamed;
  for (const client of card?.querySelectorAll<HTMLElement>("[data-clients] tbody") ?? []) {
    client.hidden = !isNamed && !has(client, sought);
    isShown ||= !client.hidden;
  }
  row.hidden = !isShown;
  if (card) card.hidden = !isShown;
  return isShown;
}

function has(element: HTMLElement, sought: string): boolean {
  return (element.textContent ?? "").toLowerCase().includes(sought);
}

/** Opens everything that is folded while the page is printed. */
function prepareForPrint(window: Window): void {
  let opened: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    opened = [
      ...window.document.querySelectorAll<HTMLDetailsElement>("details.printed:not([open])"),
    ];
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

// The script of the reports. A report can be read without it: the script makes charts interactive, and filters
// rules. It loads nothing.

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
prepareForPrint(window);
