import {
  bar,
  type Column,
  facts,
  type Html,
  html,
  notice,
  type Tone,
  table,
} from "../../src/admin/dashboard/components.ts";
import { formatCount, formatCountIfKnown, formatUtcRange } from "../../src/admin/format.ts";
import type { ReportNote } from "../logs/needs.ts";
import type { LogSummary } from "../logs/progress.ts";
import { printable } from "../print/text.ts";
import type { ComparedClient, DeniedClient, Frequent, ReplayReport } from "../replay/report.ts";

/** The maximum length of a text of a log or a configuration in a report, in characters. */
const MAX_LENGTH = 200;
/** The maximum length of a sentence of Weir, which may quote a log, in characters. */
const MAX_SENTENCE_LENGTH = 1000;

/** Returns a text of a log or a configuration without invisible characters, and shortened if it is very long. */
export function shown(text: string, maxLength = MAX_LENGTH): string {
  const clean = printable(text);
  return clean.length > maxLength ? `${clean.slice(0, maxLength)}…` : clean;
}

/** Formats a sentence of Weir, in which backticks enclose code. */
function sentence(text: string): Html {
  const parts = shown(text, MAX_SENTENCE_LENGTH).split(/`([^`]+)`/);
  return html`${parts.map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

/** Returns a time range of a report, whose times are texts in ISO 8601. */
export function rangeText(from: string, to: string): string {
  return formatUtcRange(Date.parse(from), Date.parse(to));
}

/** Returns the names of the first files and the number of the others. */
export function filesText(files: readonly string[], count = 3): string {
  const listed = files.slice(0, count).map((file) => shown(file));
  const rest = files.length - listed.length;
  return rest > 0 ? `${listed.join(", ")} and ${formatCount(rest)} more` : listed.join(", ");
}

/** A notice with the notes about the numbers; undefined without notes. */
export function notes(
  all: readonly ReportNote[],
  heading = "What these numbers assume",
): Html | undefined {
  return list(
    "warning",
    heading,
    all.map(({ text }) => sentence(text)),
  );
}

/** A notice with the rules that were left out; undefined if there are none. */
export function leftOutRules(all: ReplayReport["leftOut"]): Html | undefined {
  const items = all.map(({ rule, reason }) => {
    return html`<b>${shown(rule)}:</b> ${sentence(reason)}`;
  });
  return list("bad", `${formatCount(all.length, "rule")} could not be replayed`, items);
}

/** A notice with more items than this is folded. */
const VISIBLE_ITEMS = 6;

function list(kind: "warning" | "bad", heading: string, items: readonly Html[]): Html | undefined {
  if (items.length === 0) return undefined;
  const open = items.length <= VISIBLE_ITEMS && " open";
  const all = items.map((item) => html`<li>${item}</li>`);
  return notice(
    kind,
    html`<details class="printed"${open}><summary><b>${heading}</b></summary><ul>${all}</ul></details>`,
  );
}

/** Whether the log states addresses and statuses. Without them, some numbers are unknown, not 0. */
export interface StatedFacts {
  readonly addresses: boolean;
  readonly statuses: boolean;
}

export function statedFacts({ notes }: ReplayReport): StatedFacts {
  // A note with a rule is about that rule alone.
  const has = (code: string) => notes.some((note) => note.code === code && note.rule === undefined);
  return { addresses: !has("address-not-logged"), statuses: !has("status-not-logged") };
}

export function deniedClients(
  caption: string,
  clients: readonly DeniedClient[],
  { statuses }: StatedFacts,
  tone: Tone = "limited",
): Html {
  const succeeded: Column<DeniedClient> = {
    label: "Had succeeded",
    number: true,
    cell: ({ deniedSucceeded }) => formatCountIfKnown(deniedSucceeded),
  };
  return clientTable(caption, clients, [
    { label: "Denied", number: true, cell: (client) => deniedCell(client, tone) },
    ...(statuses ? [succeeded] : []),
    {
      label: "Denied from – to (UTC)",
      class: "any",
      cell: ({ firstDenied, lastDenied }) => rangeText(firstDenied, lastDenied),
    },
  ]);
}

/** The clients whose denied requests differ most between two configurations. */
export function comparedClients(
  caption: string,
  clients: readonly ComparedClient[],
  { statuses }: StatedFacts,
): Html {
  const succeeded: Column<ComparedClient> = {
    label: "Newly denied, had succeeded",
    number: true,
    cell: ({ newlyDeniedSucceeded }) => formatCountIfKnown(newlyDeniedSucceeded),
  };
  return clientTable(caption, clients, [
    {
      label: "Denied before",
      number: true,
      cell: ({ deniedBefore, requests }) =>
        deniedCell({ denied: deniedBefore, error: 0, requests }, "unmatched"),
    },
    { label: "Denied now", number: true, cell: (client) => deniedCell(client, "limited") },
    ...(statuses ? [succeeded] : []),
  ]);
}

type Client = DeniedClient | ComparedClient;

/** A table of clients, with their paths and user agents below their numbers. */
function clientTable<Each extends Client>(
  caption: string,
  clients: readonly Each[],
  columns: readonly Column<Each>[],
): Html {
  return table<Each>({
    caption,
    cards: true,
    columns: [
      { label: "Client", cell: ({ client }) => html`<span class="client">${shown(client)}</span>` },
      { label: "Requests", number: true, cell: ({ requests }) => formatCount(requests) },
      ...columns,
    ],
    rows: clients,
    below: ({ paths, userAgents }) => [
      frequent("Paths", paths),
      frequent("User agents", userAgents),
    ],
  });
}

function deniedCell(
  { denied, error, requests }: Pick<Client, "denied" | "error" | "requests">,
  tone: Tone,
): Html {
  const more = error > 0 && html` <small>or up to ${formatCount(error)} more</small>`;
  return html`${formatCount(denied)}${more}${bar(denied / Math.max(1, requests), tone)}`;
}

/** The most frequent texts of a client, each with its count. */
function frequent(name: string, all: readonly Frequent[]): Html | false {
  return (
    all.length > 0 &&
    html`<ul class="row note" aria-label="${name}">${all.map(({ text, count }) => html`<li><code>${shown(text)}</code> × ${formatCount(count)}</li>`)}</ul>`
  );
}

/** The numbers of lines that were read or skipped, and the first broken lines. */
export function logCard({ log, config }: ReplayReport): Html {
  const skipped = [
    [log.broken, "could not be read"],
    [log.late, "too far out of order"],
    [log.outside, "outside the chosen range of time"],
    [log.ignored, "no requests"],
  ] as const;
  const all = [
    ["Configuration", shown(config)],
    [log.files.length === 1 ? "Log" : "Logs", filesText(log.files, 10)],
    ["Format", [...new Set(log.formats)].map((format) => shown(format)).join(", ")],
    ["Time (UTC)", log.from && log.to ? rangeText(log.from, log.to) : "no request"],
    ["Requests read", `${formatCount(log.requests)} of ${formatCount(log.lines, "line")}`],
    ...skipped
      .filter(([count]) => count > 0)
      .map(([count, reason]) => [`Lines ${reason}`, formatCount(count)] as const),
  ] as const;
  return html`<div class="card">${facts(all)}</div>
${log.brokenLines.length > 0 && brokenLines(log)}`;
}

function brokenLines({ brokenLines: lines, broken }: LogSummary): Html {
  const content = table({
    caption:
      broken > lines.length
        ? `The first ${formatCount(lines.length)} of ${formatCount(broken)} lines that could not be read`
        : "Lines that could not be read",
    showsCaption: true,
    columns: [
      { label: "Line", cell: ({ file, line }) => `${shown(file)}:${line}` },
      { label: "Reason", cell: ({ reason }) => shown(reason, MAX_SENTENCE_LENGTH) },
    ],
    rows: lines,
  });
  return html`<div class="card">${content}</div>
`;
}
