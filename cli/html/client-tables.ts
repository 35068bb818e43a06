import { countText } from "../../src/admin/dashboard/format.ts";
import type { Tone } from "../../src/admin/dashboard/tone.ts";
import type { ComparedClient, DeniedClient, Frequent } from "../replay/report.ts";
import { bar } from "./bar.ts";
import { type Html, html } from "./markup.ts";
import type { StatedFacts } from "./stated-facts.ts";
import { type Column, table } from "./table.ts";
import { knownText, rangeText, shown } from "./texts.ts";

/** A client, with a row for its numbers and a row for its user agents and paths. */
export interface ClientRows {
  readonly client: string;
  /** The well-known crawler that a user agent names. Everyone can send such a user agent. */
  readonly claimsToBe?: string | undefined;
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
      { text: countText(each.requests) },
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
        { text: countText(requests) },
        { text: countText(deniedBefore), ...before },
        { text: deniedText(denied, error), ...now },
        ...(statuses ? [{ text: knownText(each.newlyDeniedSucceeded) }] : []),
      ],
    };
  });
  return clientTable(caption, columns, rows);
}

/** A table of clients. */
export function clientTable(
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
  const groups = clients.map(({ client, claimsToBe, cells, userAgents, paths }) => {
    const claim =
      claimsToBe !== undefined &&
      html` <span class="badge mark">claims to be ${shown(claimsToBe)}</span>`;
    const drawn = cells.map((cell, index) => drawnCell(cell, columns[index]));
    return html`<tbody><tr><th scope="row"><span class="client">${shown(client)}</span>${claim}</th>${drawn}</tr><tr><td colspan="${columns.length + 1}">${frequent("Paths", paths)}${frequent("User agents", userAgents)}</td></tr></tbody>`;
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
    html`<ul class="frequent" aria-label="${name}">${all.map(({ text, count }) => html`<li><code>${shown(text)}</code> × ${countText(count)}</li>`)}</ul>`
  );
}

function deniedText(denied: number, error: number): Html {
  return html`${countText(denied)}${error > 0 && html` <small>or up to ${countText(error)} more</small>`}`;
}
