import { counted, countText } from "../../../src/admin/dashboard/format.ts";

/**
 * Filters the rules of a report while the reader types. A rule stays if its row in the table has the text, or
 * if one of its clients has it. Then the other clients of that rule are hidden.
 */
export function filterRules(root: Document): void {
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
    output.textContent = `${countText(shown.length)} of ${counted(rules.length, "rule")}`;
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
