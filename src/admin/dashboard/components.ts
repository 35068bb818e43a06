import { raw, html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import type { Quota } from "../../config/custom.ts";
import {
  formatCount,
  formatPercent,
  formatRelativeTime,
  formatShortCount,
  formatTime,
} from "../format.ts";

// The parts of the pages of the dashboard, and of the HTML reports of the command `weir`.

/** A piece of HTML, which templates insert unchanged. They escape all other texts. */
export type Html = HtmlEscapedString;

/** The values that templates insert. Templates omit `undefined` and booleans. */
export type Content = Html | string | number | boolean | undefined | readonly Content[];

/** A template of HTML. It escapes its values, except {@link Html}. */
export function html(strings: TemplateStringsArray, ...values: Content[]): Html {
  // Hono's templates return a promise only if a value is a promise.
  return template(strings, ...values) as Html;
}

/** Marks a text of Weir itself as HTML. Never call it with a text of a log, a configuration or a user. */
export function trusted(text: string): Html {
  return raw(text);
}

/** The kinds of values in charts and bars. Each kind has a sign, and a colour of the same name in the style sheet. */
export type Tone =
  | "allowed"
  | "limited"
  | "shadow"
  | "undecided"
  | "refused"
  | "unmatched"
  | "memory";

/** The signs of the kinds, as paths in a square of 12 by 12. Kinds differ by shape as well as by colour. */
export const SIGNS: Readonly<Record<Tone, string>> = {
  allowed: "M6 1a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
  limited: "M6 0.5L11.8 11H0.2z",
  shadow: "M6 0.5L11.5 6L6 11.5L0.5 6z",
  undecided: "M1.5 1.5h9v9h-9z",
  refused: "M2.5 0.5L6 4l3.5-3.5l2 2L8 6l3.5 3.5l-2 2L6 8l-3.5 3.5l-2-2L4 6L0.5 2.5z",
  unmatched: "M1 4.2h10v3.6H1z",
  memory: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
};

export function sign(tone: Tone): Html {
  return html`<svg class="sign" viewBox="0 0 12 12" aria-hidden="true"><path fill="var(--${tone})" d="${SIGNS[tone]}"/></svg>`;
}

/** The kinds whose areas in charts have stripes, so that they differ without colours. */
export const STRIPED: readonly Tone[] = ["limited", "undecided", "shadow"];

/** The patterns of the striped areas. The stripes are horizontal, because charts are stretched in their width. */
export const STRIPES = html`<svg class="hidden" aria-hidden="true">${STRIPED.map((tone) => {
  const pale = `color-mix(in srgb, var(--${tone}) 40%, var(--card))`;
  return html`<pattern id="stripes-${tone}" width="9" height="6" patternUnits="userSpaceOnUse"><path fill="${pale}" d="M0 0h9v6H0z"/><path fill="var(--${tone})" d="M0 0h9v2.5H0z"/></pattern>`;
})}</svg>
`;

/**
 * A horizontal bar. Screen readers skip it, because the same value stands beside it as text.
 *
 * @param share the part of the whole that the bar fills, from 0 to 1. Any share above 0 is visible
 */
export function bar(share: number, tone: Tone): Html {
  const width = share > 0 ? Math.max(1, Math.round(1000 * Math.min(1, share)) / 10) : 0;
  return html`<svg class="bar" aria-hidden="true"><rect fill="var(--${tone})" width="${width}%" height="100%"/></svg>`;
}

/**
 * A number of open requests of one client, beside the maximum of the policy.
 *
 * @param open undefined if the number is unknown
 */
export function openBar(
  { policy, limit }: Pick<Quota, "policy" | "limit">,
  open: number | undefined,
  text: string,
): Html {
  const known = open === undefined ? "–" : formatCount(open);
  const tone = open !== undefined && open >= limit ? "limited" : "allowed";
  return html`<div><div class="row"><b>${foreign(policy)}</b>
<span>${known} / ${formatCount(limit)} ${text}</span></div>${bar((open ?? 0) / limit, tone)}</div>`;
}

/** A number, with its share of a whole as text and as a bar. */
export function part(count: number, whole: number, tone: Tone): Html {
  const share = count / Math.max(1, whole);
  return html`${formatCount(count)} <small>${formatPercent(count, whole)}</small>${bar(share, tone)}`;
}

/** A foreign text, whose direction of writing does not affect the text around it. */
export function foreign(text: string): Html {
  return html`<bdi>${text}</bdi>`;
}

/** A text of a request or a configuration, as code. */
export function code(text: string): Html {
  return html`<code>${foreign(text)}</code>`;
}

export function rulePath(rule: string): string {
  return `/_weir/rules/${encodeURIComponent(rule)}`;
}

/** Returns the address of a client's page. An identity is a hash, so an address may contain it. */
export function clientPath(client: string, rule?: string): string {
  const query = new URLSearchParams(rule === undefined ? { client } : { client, rule });
  return `/_weir/clients?${query}`;
}

/** Returns the address of the list of denials, or of those of a rule or a client. */
export function denialsPath(filter: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(filter).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  return `/_weir/denials${given.length > 0 ? `?${new URLSearchParams(given)}` : ""}`;
}

export function ruleLink(rule: string): Html {
  return html`<a href="${rulePath(rule)}">${foreign(rule)}</a>`;
}

export function clientLink(client: string, rule: string | undefined): Html {
  return html`<a href="${clientPath(client, rule)}" class="client">${foreign(client)}</a>`;
}

export function badge(kind: string, text: string = kind): Html {
  return html`<span class="badge ${kind}">${text}</span>`;
}

/** The mode of a rule. Enforced rules, the usual case, have no badge. */
export function modeBadge(mode: "enforce" | "shadow" | "mark" | "off"): Html | undefined {
  return mode === "enforce" ? undefined : badge(mode);
}

const NOTICE_SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** A message above the content of a page. */
export function notice(
  kind: keyof typeof NOTICE_SIGNS,
  content: Content,
  role?: "status" | "alert",
): Html {
  return html`<div class="notice ${kind}"${role && html` role="${role}"`}><span class="notice-sign" aria-hidden="true">${NOTICE_SIGNS[kind]}</span><div>${content}</div></div>
`;
}

/** The content of a page in place of an empty table. */
export function empty(title: string, content: Content): Html {
  return html`<div class="empty card">${WAVES}<h2>${title}</h2>${content}</div>`;
}

/** A column of a table. The cells of the first column are the headings of the rows. */
export interface Column<Row> {
  readonly label: Content;
  /** Whether its cells are aligned to the right. */
  readonly number?: boolean;
  /** A class of its cells, which the style sheet knows. */
  readonly class?: string;
  /** Whether the rows are in the order of this column. */
  readonly sort?: "ascending" | "descending" | undefined;
  readonly cell: (row: Row) => Content;
}

interface TableProps<Row> {
  /** The caption, which screen readers announce. */
  readonly caption: string;
  /** Whether the caption is visible, because no heading beside the table says the same. */
  readonly showsCaption?: boolean;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Whether each row becomes a card on narrow screens. Each cell of a card repeats its column's heading. */
  readonly cards?: boolean;
  /** Returns the content below the cells of a row, over the whole width. */
  readonly below?: (row: Row) => Content;
}

/** A table that scrolls in its own box on narrow screens. */
export function table<Row>(props: TableProps<Row>): Html {
  const { caption, showsCaption, columns, rows, cards, below } = props;
  const headings = columns.map(
    ({ label, number, sort }) =>
      html`<th scope="col"${number && html` class="number"`}${sort && html` aria-sort="${sort}"`}>${label}</th>`,
  );
  const lines = rows.map((row) => {
    const line = html`<tr>${cellsOf(row, columns, cards)}</tr>\n`;
    return below
      ? html`<tbody>${line}<tr><td colspan="${columns.length}">${below(row)}</td></tr></tbody>`
      : line;
  });
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}"><table${cards && html` class="cards"`}><caption${!showsCaption && html` class="hidden"`}>${caption}</caption>
<thead><tr>${headings}</tr></thead>
${below ? lines : html`<tbody>\n${lines}</tbody>`}</table></div>`;
}

function cellsOf<Row>(row: Row, columns: readonly Column<Row>[], cards = false): Html[] {
  return columns.map(({ label, number, class: name = number ? "number" : "", cell }, index) => {
    if (index === 0) return html`<th scope="row">${cell(row)}</th>`;
    const isLabelled = cards && typeof label === "string";
    return html`<td${name !== "" && html` class="${name}"`}${isLabelled && html` data-label="${label}"`}>${cell(row)}</td>`;
  });
}

/** A list of names and values. */
export function facts(all: readonly (readonly [string, Content])[]): Html {
  return html`<dl class="facts">${all.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>`;
}

export interface Tile {
  readonly label: string;
  readonly tone?: Tone;
  /** A number, which the tile shortens, or a text. */
  readonly value: number | string;
  /** Whether the number is an estimate. */
  readonly isEstimate?: boolean;
  readonly note?: Content;
  /** Whether the value needs attention. */
  readonly bad?: boolean;
}

/** The most important numbers of a page, as a list. */
export function tiles(all: readonly Tile[], id?: string): Html {
  const items = all.map(({ label, tone, value, isEstimate, note, bad }) => {
    const text = typeof value === "number" ? formatShortCount(value) : value;
    const exact = typeof value === "number" && html` title="${formatCount(value)}"`;
    return html`<li class="tile card${bad && " bad"}"><span class="note">${tone && sign(tone)} ${label}</span><b${exact}>${isEstimate && "≈ "}${text}</b><span class="note">${note}</span></li>
`;
  });
  return html`<ul class="tiles"${id !== undefined && html` id="${id}" data-live`}>${items}</ul>`;
}

/** A time relative to now. Its tooltip has the exact time. The page's script updates it. */
export function relativeTime(at: number, now: number): Html {
  if (Number.isNaN(new Date(at).getTime())) return html`<span>unknown</span>`;
  return html`<time datetime="${new Date(at).toISOString()}" title="${formatTime(at)}" data-relative>${formatRelativeTime(at, now)}</time>`;
}

/** An exact time, and the same time relative to now. */
export function exactTime(at: number, now: number): Html {
  return html`<span class="nowrap">${formatTime(at)}</span> <small>${relativeTime(at, now)}</small>`;
}

/** Weir's sign: three waves. */
export const WAVES = html`<svg class="waves" viewBox="0 0 24 24" aria-hidden="true"><path d="M2 8q2.5-3 5 0t5 0t5 0t5 0M2 13q2.5-3 5 0t5 0t5 0t5 0M2 18q2.5-3 5 0t5 0t5 0t5 0"/></svg>`;

interface Page {
  readonly title: string;
  /** The attributes of the element `body`. */
  readonly body?: Html | undefined;
  /** Style sheets, icons and policies. */
  readonly head: Html;
  /** The content above the main content. */
  readonly header?: Html;
  readonly content: Content;
  /** The content below the main content, and the inline script of a page that may load no files. */
  readonly footer?: Html;
}

/** A whole page. */
export function pageDocument({ title, body, head, header, content, footer }: Page): Html {
  return html`<!doctype html><html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Weir</title>
${head}
</head>
<body${body}>
${header && html`<a class="skip" href="#main">Skip to the content</a>\n<header class="row">${header}</header>\n`}<main id="main" tabindex="-1">
${content}</main>
${STRIPES}${footer}</body>
</html>`;
}
