import { counted, countText, dollarsText, percentText } from "../../src/admin/dashboard/format.ts";
import { isDifferent, modesOf } from "../replay/compare-rules.ts";
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
<div class="card">${countsTable(comparison, report)}</div>
<div class="card">${rulesTable(comparison)}</div>
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
  const options = { caption: "Both configurations", showsCaption: true, columns, cards: true };
  return table(
    options,
    rows.map(([name, ...values]) => {
      return html`<tr><th scope="row">${name}</th>${values.map((value, index) => html`<td class="number" data-label="${columns[index + 1]?.label}">${value}</td>`)}</tr>`;
    }),
  );
}

function rulesTable({ rules }: Comparison): Html {
  const changed = rules.filter(isDifferent);
  const columns = [
    { label: "Rule" },
    { label: "Change" },
    { label: "Mode" },
    { label: "Over the limit before", number: true },
    { label: "Over the limit now", number: true },
    { label: "Denied before", number: true },
    { label: "Denied now", number: true },
  ];
  const rows = changed.map((each) => {
    const numbers = [each.overLimitBefore, each.overLimit, each.deniedBefore, each.denied];
    const cells = numbers.map(
      (number, index) =>
        html`<td class="number" data-label="${columns[index + 3]?.label}">${number === undefined ? "–" : countText(number)}</td>`,
    );
    return html`<tr><th scope="row">${shown(each.rule)}</th><td data-label="Change">${each.change}</td><td data-label="Mode">${shown(modesOf(each))}</td>${cells}</tr>`;
  });
  const unchanged = rules.length - changed.length;
  const same = `${counted(unchanged, "rule")} ${unchanged === 1 ? "is" : "are"} the same`;
  const caption = unchanged > 0 ? `Changed rules; ${same}` : "All rules";
  return table({ caption, showsCaption: true, columns, cards: true }, rows);
}
