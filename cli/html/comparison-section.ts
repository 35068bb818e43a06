import { counted, countText, dollarsText, percentText } from "../../src/admin/dashboard/format.ts";
import type { ReplayNote } from "../replay/replay-engine.ts";
import type { Comparison, Counts, ReplayReport } from "../replay/report.ts";
import { comparedClients } from "./client-tables.ts";
import { type Html, html } from "./markup.ts";
import { leftOutRules, notes } from "./notices.ts";
import { table } from "./table.ts";
import { estimateText, shown } from "./texts.ts";
import { tiles } from "./tiles.ts";

/** What changes between two configurations. */
export function comparisonSection(comparison: Comparison, report: ReplayReport): Html {
  const { requests, clients, mostNewlyDenied, mostNewlyAllowed } = comparison;
  const { isEstimate } = clients;
  return html`${notesOf(comparison, report)}${leftOutRules(comparison.leftOut)}${tiles([
    {
      label: "Clients newly denied",
      tone: "limited",
      value: clients.newlyDenied,
      isEstimate,
      note: "never denied before",
      bad: clients.newlyDenied > 0,
    },
    {
      label: "Requests newly denied",
      tone: "limited",
      value: requests.newlyDenied,
      note: `${countText(requests.newlyDeniedSucceeded)} of them had succeeded`,
    },
    {
      label: "Clients no longer denied",
      tone: "allowed",
      value: clients.noLongerDenied,
      isEstimate,
      note: `${countText(requests.newlyAllowed)} requests newly allowed`,
    },
    {
      label: "Clients denied more, less",
      value: `${countText(clients.deniedMore)}, ${countText(clients.deniedLess)}`,
      note: "denied before and now",
    },
  ])}
<div class="columns"><div class="card">${countsTable(comparison, report)}</div><div class="card">${rulesTable(comparison)}</div></div>
${
  mostNewlyDenied.length > 0 &&
  html`<div class="card"><h3>Clients newly denied most</h3>${comparedClients("Clients newly denied most", mostNewlyDenied)}</div>
`
}${
  mostNewlyAllowed.length > 0 &&
  html`<div class="card"><h3>Clients newly allowed most</h3>${comparedClients("Clients newly allowed most", mostNewlyAllowed)}</div>
`
}`;
}

/** The notes about the other configuration that are not already those of the report. */
function notesOf(comparison: Comparison, { notes: known }: ReplayReport): Html | undefined {
  const isNew = ({ rule, text }: ReplayNote) =>
    !known.some((note) => note.rule === rule && note.text === text);
  const heading = `What the numbers of ${shown(comparison.against)} assume`;
  return notes(comparison.notes.filter(isNew), heading);
}

function countsTable(comparison: Comparison, { config, total, cost }: ReplayReport): Html {
  const { against, before, costBefore, requests } = comparison;
  const counts = (text: (counts: Counts) => string) => [text(before), text(total)];
  const rows = [
    [
      "Denied requests",
      ...counts(
        ({ denied, requests }) => `${countText(denied)} (${percentText(denied, requests)})`,
      ),
    ],
    ["Of these, had succeeded", ...counts(({ deniedSucceeded }) => countText(deniedSucceeded))],
    [
      "Denied clients",
      ...counts(({ clientsDenied, isEstimate }) => estimateText(clientsDenied, isEstimate)),
    ],
    [
      "Requests that only this one denies",
      countText(requests.newlyAllowed),
      countText(requests.newlyDenied),
    ],
    ["Price", ...[costBefore, cost].map((each) => (each ? dollarsText(each.dollars) : "–"))],
  ];
  const columns = [
    { label: "Number" },
    { label: shown(against), number: true },
    { label: shown(config), number: true },
  ];
  const options = { caption: "Both configurations", showsCaption: true, columns };
  return table(
    options,
    rows.map(([name, ...values]) => {
      return html`<tr><th scope="row">${name}</th>${values.map((value) => html`<td class="number">${value}</td>`)}</tr>`;
    }),
  );
}

function rulesTable({ rules }: Comparison): Html {
  const columns = [
    { label: "Rule" },
    { label: "Change" },
    { label: "Denied before", number: true },
    { label: "Denied now", number: true },
  ];
  const changed = rules.filter(
    ({ change, deniedBefore, denied }) => change !== "same" || deniedBefore !== denied,
  );
  const rows = changed.map(({ rule, change, deniedBefore, denied }) => {
    const text = (count: number | undefined) => (count === undefined ? "–" : countText(count));
    return html`<tr><th scope="row">${shown(rule)}</th><td>${change}</td><td class="number">${text(deniedBefore)}</td><td class="number">${text(denied)}</td></tr>`;
  });
  const unchanged = rules.length - changed.length;
  const caption =
    unchanged > 0
      ? `Changed rules, without ${counted(unchanged, "rule")} that stay the same`
      : "All rules";
  return table({ caption, showsCaption: true, columns }, rows);
}
