import { counted, countText, dollarsText, percentText } from "../../src/admin/dashboard/format.ts";
import type { ComparedClient, Comparison, Counts, ReplayReport } from "../replay/report.ts";
import { withoutReasons } from "../replay/summary.ts";
import { comparedClients } from "./client-tables.ts";
import { type Html, html } from "./markup.ts";
import { leftOutRules, notes } from "./notices.ts";
import { type StatedFacts, statedFacts } from "./stated-facts.ts";
import { table } from "./table.ts";
import { estimateText, knownText, shown } from "./texts.ts";
import { type Tile, tiles } from "./tiles.ts";

/** What changes between two configurations. */
export function comparisonSection(comparison: Comparison, report: ReplayReport): Html {
  const { mostNewlyDenied, mostNewlyAllowed } = comparison;
  const stated = statedFacts(report);
  const isKnown = (rule: string) => report.leftOut.some((known) => known.rule === rule);
  const otherRules = comparison.leftOut.filter(({ rule }) => !isKnown(rule));
  return html`${notesOf(comparison, report)}${leftOutRules(otherRules)}${tiles(comparedTiles(comparison, stated))}
<div class="columns"><div class="card">${countsTable(comparison, report)}</div><div class="card">${rulesTable(comparison)}</div></div>
${clientsCard("Clients newly denied most", mostNewlyDenied, stated)}${clientsCard("Clients newly allowed most", mostNewlyAllowed, stated)}`;
}

function clientsCard(
  heading: string,
  clients: readonly ComparedClient[],
  stated: StatedFacts,
): Html | false {
  return (
    clients.length > 0 &&
    html`<div class="card"><h3>${heading}</h3>${comparedClients(heading, clients, stated)}</div>
`
  );
}

function comparedTiles({ requests, clients }: Comparison, { statuses }: StatedFacts): Tile[] {
  const { isEstimate } = clients;
  const succeeded = knownText(requests.newlyDeniedSucceeded);
  return [
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
      note: statuses ? `${succeeded} of them had succeeded` : "unknown how many had succeeded",
    },
    {
      label: "Clients no longer denied",
      tone: "allowed",
      value: clients.noLongerDenied,
      isEstimate,
      note: `${counted(requests.newlyAllowed, "request")} newly allowed`,
    },
    {
      label: "Clients denied more, less",
      value: `${countText(clients.deniedMore)}, ${countText(clients.deniedLess)}`,
      note: "denied before and now",
    },
  ];
}

/** The notes about the other configuration that are not already those of the report. */
function notesOf(
  { against, notes: before, leftOut }: Comparison,
  report: ReplayReport,
): Html | undefined {
  const known = new Set(report.notes.map(({ text }) => text));
  const others = withoutReasons(before, leftOut).filter(({ text }) => !known.has(text));
  return notes(others, `What the numbers of ${shown(against)} assume`);
}

function countsTable(comparison: Comparison, report: ReplayReport): Html {
  const { config, total, cost } = report;
  const { against, before, costBefore, requests } = comparison;
  const counts = (text: (counts: Counts) => string) => [text(before), text(total)];
  const rows = [
    [
      "Denied requests",
      ...counts(
        ({ denied, requests }) => `${countText(denied)} (${percentText(denied, requests)})`,
      ),
    ],
    ...(statedFacts(report).statuses
      ? [
          [
            "Of these, had succeeded",
            ...counts(({ deniedSucceeded }) => knownText(deniedSucceeded)),
          ],
        ]
      : []),
    [
      "Denied clients",
      ...counts(({ clientsDenied, isDeniedEstimate }) =>
        estimateText(clientsDenied, isDeniedEstimate),
      ),
    ],
    ["Denied by this one only", countText(requests.newlyAllowed), countText(requests.newlyDenied)],
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
  const same = `${counted(unchanged, "rule")} ${unchanged === 1 ? "is" : "are"} the same`;
  const caption = unchanged > 0 ? `Changed rules; ${same}` : "All rules";
  return table({ caption, showsCaption: true, columns }, rows);
}
