import { countText, dollarsText } from "../../src/admin/dashboard/format.ts";
import type { CostReport } from "../replay/report.ts";
import { facts } from "./log-card.ts";
import { type Html, html } from "./markup.ts";

/** What the calls to the store would have cost. */
export function costCard({ unit, count, calls, dollars, dollarsPer30Days }: CostReport): Html {
  const all = [
    ["Calls to the store", countText(calls)],
    [unit.charAt(0).toUpperCase() + unit.slice(1), countText(count)],
    ["Price", dollarsText(dollars)],
    [
      "Price of 30 days like this",
      dollarsPer30Days === undefined
        ? "unknown: the log covers less than an hour"
        : dollarsText(dollarsPer30Days),
    ],
  ] as const;
  return html`<div class="card">${facts(all)}</div>
`;
}
