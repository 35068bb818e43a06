import type { Tone } from "../../src/admin/dashboard/chart-drawing.ts";
import { formatCount, formatDollars } from "../../src/admin/format.ts";
import type { LogSummary } from "../logs/progress.ts";
import type { ComparedClient, CostReport, DeniedClient, Frequent } from "../replay/report.ts";
import {
  bar,
  type Column,
  filesText,
  type Html,
  html,
  knownText,
  rangeText,
  type StatedFacts,
  sentence,
  shown,
  table,
} from "./components.ts";

/** A client, with a row for its numbers and a row for its user agents and paths. */
interface ClientRows {
  readonly client: string;
  /** One for each column after the client's name. */
  readonly cells: readonly Cell[];
  readonly userAgents: readonly Frequent[];
  readonly paths: readonly Frequent[];
}

interface Cell {
  readonly text: string | Html;
  /** For a cell with a bar below its text. */
  readonly share?: number;
  readonly tone?: Tone;
}

/** The clients with the most denied requests. */
export function deniedClients(
  caption: string,
  clients: readonly DeniedClient[],
  { statuses }: StatedFacts,
  tone: Tone = "limited",
): Html {
  const columns = [
    { label: "Requests", number: true },
    { label: "Denied", number: true },
    ...(statuses ? [{ label: "Had succeeded", number: true }] : []),
    { label: "Denied from – to (UTC)" },
  ];
  const rows = clients.map((each) => ({
    ...each,
    cells: [
      { text: formatCount(each.requests) },
      {
        text: deniedText(each.denied, each.error),
        share: each.denied / Math.max(1, each.requests),
        tone,
      },
      ...(statuses ? [{ text: knownText(each.deniedSucceeded) }] : []),
      { text: rangeText(each.firstDenied, each.lastDenied) },
    ],
  }));
  return clientTable(caption, columns, rows);
}

/** The clients whose denied requests differ most between two configurations. */
export function comparedClients(
  caption: string,
  clients: readonly ComparedClient[],
  { statuses }: StatedFacts,
): Html {
  const columns = [
    { label: "Requests", number: true },
    { label: "Denied before", number: true },
    { label: "Denied now", number: true },
    ...(statuses ? [{ label: "Newly denied, had succeeded", number: true }] : []),
  ];
  const rows = clients.map((each) => {
    const { requests, deniedBefore, denied, error } = each;
    const whole = Math.max(1, requests);
    const before = { share: deniedBefore / whole, tone: "unmatched" } as const;
    const now = { share: denied / whole, tone: "limited" } as const;
    return {
      ...each,
      cells: [
        { text: formatCount(requests) },
        { text: formatCount(deniedBefore), ...before },
        { text: deniedText(denied, error), ...now },
        ...(statuses ? [{ text: knownText(each.newlyDeniedSucceeded) }] : []),
      ],
    };
  });
  return clientTable(caption, columns, rows);
}

/** A table of clients. */
function clientTable(
  caption: string,
  columns: readonly Column[],
  clients: readonly ClientRows[],
): Html {
  const options = {
    caption,
    columns: [{ label: "Client" }, ...columns],
    cards: true,
    groups: true,
  };
  const groups = clients.map(({ client, cells, userAgents, paths }) => {
    const drawn = cells.map((cell, index) => drawnCell(cell, columns[index]));
    return html`<tbody><tr><th scope="row"><span class="client">${shown(client)}</span></th>${drawn}</tr><tr><td colspan="${columns.length + 1}">${frequent("Paths", paths)}${frequent("User agents", userAgents)}</td></tr></tbody>`;
  });
  return table(options, groups);
}

function drawnCell({ text, share, tone }: Cell, column: Column | undefined): Html {
  const drawn = share !== undefined && bar(share, tone ?? "limited");
  const name = column?.number ? "number" : "time";
  return html`<td class="${name}" data-label="${column?.label}">${text}${drawn}</td>`;
}

/** The most frequent texts of a client, each with its count. */
function frequent(name: string, all: readonly Frequent[]): Html | false {
  return (
    all.length > 0 &&
    html`<ul class="frequent" aria-label="${name}">${all.map(({ text, count }) => html`<li><code>${shown(text)}</code> × ${formatCount(count)}</li>`)}</ul>`
  );
}

function deniedText(denied: number, error: number): Html {
  return html`${formatCount(denied)}${error > 0 && html` <small>or up to ${formatCount(error)} more</small>`}`;
}

/** A name and its value, in a list of facts. */
export type Fact = readonly [name: string, value: string | Html];

/** What was read from the logs, and what could not be read. */
export function logCard(log: LogSummary, more: readonly Fact[]): Html {
  const { requests, lines } = log;
  const skipped = [
    ["broken", log.broken, "could not be read"],
    ["late", log.late, "too far out of order"],
    ["outside", log.outside, "outside the chosen range of time"],
    ["ignored", log.ignored, "no requests"],
  ] as const;
  const all: Fact[] = [
    ...more,
    [log.files.length === 1 ? "Log" : "Logs", filesText(log.files, 10)],
    ["Format", [...new Set(log.formats)].map((format) => shown(format)).join(", ")],
    ["Time (UTC)", log.from && log.to ? rangeText(log.from, log.to) : "no request"],
    ["Requests read", `${formatCount(requests)} of ${formatCount(lines, "line")}`],
    ...skipped
      .filter(([, count]) => count > 0)
      .map(([, count, reason]): Fact => [`Lines ${reason}`, formatCount(count)]),
  ];
  return html`<div class="card">${facts(all)}</div>
${log.brokenLines.length > 0 && brokenLines(log)}`;
}

/** A list of names and values. */
export function facts(all: readonly Fact[]): Html {
  return html`<dl class="facts">${all.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function brokenLines({ brokenLines: lines, broken }: LogSummary): Html {
  const rows = lines.map(({ file, line, reason, text }) => {
    return html`<tr><th scope="row">${shown(file)}:${line}</th><td>${sentence(reason)}</td><td><code>${shown(text)}</code></td></tr>`;
  });
  const caption =
    broken > lines.length
      ? `The first ${formatCount(lines.length)} of ${formatCount(broken)} lines that could not be read`
      : "Lines that could not be read";
  const columns = [{ label: "Line" }, { label: "Reason" }, { label: "Its start" }];
  return html`<div class="card">${table({ caption, showsCaption: true, columns }, rows)}</div>
`;
}

/** What the calls to the store would have cost. */
export function costCard({ unit, count, calls, dollars, dollarsPer30Days }: CostReport): Html {
  const all = [
    ["Calls to the store", formatCount(calls)],
    [unit.charAt(0).toUpperCase() + unit.slice(1), formatCount(count)],
    ["Price", formatDollars(dollars)],
    [
      "Price of 30 days like this",
      dollarsPer30Days === undefined
        ? "unknown: the log covers less than an hour"
        : formatDollars(dollarsPer30Days),
    ],
  ] as const;
  return html`<div class="card">${facts(all)}</div>
`;
}
