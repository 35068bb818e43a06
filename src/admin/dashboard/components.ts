import { raw, html as template } from "hono/html";
import type { Child } from "hono/jsx";
import type { HtmlEscapedString } from "hono/utils/html";
import {
  formatCount,
  formatPercent,
  formatRelativeTime,
  formatShortCount,
  formatTime,
} from "../format.ts";

// The components of the dashboard and of the HTML reports of the command `weir`. They are templates, not JSX: Node
// loads them without a build. A page in JSX uses them as elements, a template calls them.

/** A piece of HTML, which templates insert as it is. They escape all other texts. */
export type Html = HtmlEscapedString;

/** A template of HTML. It escapes its values, except those that are {@link Html} or elements of JSX. */
export function html(strings: TemplateStringsArray, ...values: Child[]): Html {
  // Hono's templates return a promise only for values that are promises.
  return template(strings, ...values) as Html;
}

/** Marks a text of Weir itself as HTML. Never call it with a text of a log, a configuration or a user. */
export function trusted(text: string): Html {
  return raw(text);
}

/** The kinds of values in charts and bars. Each has a colour and a shape of its own in the style sheet. */
export type Tone =
  | "allowed"
  | "limited"
  | "shadow"
  | "undecided"
  | "refused"
  | "unmatched"
  | "memory";

/** The signs of the kinds, as paths in a square of 12 by 12: shapes differ as well as colours. */
export const SIGNS: Readonly<Record<Tone, string>> = {
  allowed: "M6 1a5 5 0 1 1 0 10a5 5 0 1 1 0-10z",
  limited: "M6 0.5L11.8 11H0.2z",
  shadow: "M6 0.5L11.5 6L6 11.5L0.5 6z",
  undecided: "M1.5 1.5h9v9h-9z",
  refused: "M2.5 0.5L6 4l3.5-3.5l2 2L8 6l3.5 3.5l-2 2L6 8l-3.5 3.5l-2-2L4 6L0.5 2.5z",
  unmatched: "M1 4.2h10v3.6H1z",
  memory: "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
};

export function Sign({ tone }: { tone: Tone }): Html {
  return html`<svg class="sign fill tone-${tone}" viewBox="0 0 12 12" aria-hidden="true"><path d="${SIGNS[tone]}"/></svg>`;
}

interface BarProps {
  /** The part of the whole that the bar fills, from 0 to 1. A small part that is not 0 is still visible. */
  readonly share: number;
  readonly tone: Tone;
}

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function Bar({ share, tone }: BarProps): Html {
  const width = share > 0 ? Math.max(1, Math.round(1000 * Math.min(1, share)) / 10) : 0;
  return html`<svg class="bar" aria-hidden="true"><rect class="fill tone-${tone}" width="${width}%" height="100%"/></svg>`;
}

interface PartProps {
  readonly count: number;
  readonly of: number;
  readonly tone: Tone;
}

/** A number, with its share of a whole as text and as a bar. */
export function Part({ count, of, tone }: PartProps): Html {
  const share = count / Math.max(1, of);
  return html`${formatCount(count)} <small>${formatPercent(count, of)}</small>${Bar({ share, tone })}`;
}

export function rulePath(rule: string): string {
  return `/_weir/rules/${encodeURIComponent(rule)}`;
}

/** Returns the address of the page of a client. An identity is a hash, so it may be in an address. */
export function clientPath(client: string, rule?: string): string {
  const query = new URLSearchParams(rule === undefined ? { client } : { client, rule });
  return `/_weir/clients?${query}`;
}

export function RuleLink({ rule }: { rule: string }): Html {
  return html`<a href="${rulePath(rule)}"><bdi>${rule}</bdi></a>`;
}

export function ClientLink({ client, rule }: { client: string; rule?: string | undefined }): Html {
  return html`<a href="${clientPath(client, rule)}" class="client"><bdi>${client}</bdi></a>`;
}

interface ModeProps {
  readonly mode: "enforce" | "shadow" | "mark" | "off";
  readonly always?: boolean;
}

/** The mode of a rule. Enforced rules, which are most, have no badge unless a page asks for it. */
export function ModeBadge({ mode, always = false }: ModeProps): Html {
  if (mode === "enforce" && !always) return html``;
  return html`<span class="badge ${mode}">${mode === "enforce" ? "enforced" : mode}</span>`;
}

interface NoticeProps {
  readonly kind: "good" | "info" | "warning" | "bad";
  readonly role?: "status" | "alert";
  readonly children?: Child;
}

const NOTICE_SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** A message above the content of a page. */
export function Notice({ kind, role, children }: NoticeProps): Html {
  return html`<div class="notice ${kind}"${role && html` role="${role}"`}><span class="notice-sign" aria-hidden="true">${NOTICE_SIGNS[kind]}</span><div>${children}</div></div>
`;
}

/** What a page shows instead of an empty table. */
export function Empty({ title, children }: { title: string; children?: Child }): Html {
  return html`<div class="empty card"><svg viewBox="0 0 96 40" aria-hidden="true"><path d="M4 12q11-12 22 0t22 0t22 0t22 0M4 24q11-12 22 0t22 0t22 0t22 0M4 36q11-12 22 0t22 0t22 0t22 0"/></svg><h2>${title}</h2>${children}</div>`;
}

/** A column of a table. The cells of the first column are the headings of the rows. */
export interface Column<Row> {
  readonly label: Child;
  /** Whether its cells are aligned to the right. */
  readonly number?: boolean;
  /** A class of its cells, which the style sheet knows. */
  readonly class?: string;
  /** Whether the rows are in the order of this column. */
  readonly sort?: "ascending" | "descending" | undefined;
  readonly cell: (row: Row) => Child;
}

interface TableProps<Row> {
  /** Screen readers announce it. */
  readonly caption: string;
  /** Whether the caption is visible, because no heading beside the table says the same. */
  readonly showsCaption?: boolean;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly id?: string;
  /** On narrow screens, each row becomes a card, in which each cell repeats its column's heading. */
  readonly cards?: boolean;
  /** Returns the attributes of a row that the page's script reads. */
  readonly data?: (row: Row) => Html | false;
  /** Returns what stands below the cells of a row, over the whole width. */
  readonly below?: (row: Row) => Child;
}

/** A table that scrolls in its own box on narrow screens. */
export function Table<Row>(props: TableProps<Row>): Html {
  const { caption, showsCaption, columns, rows, id, cards, data, below } = props;
  const headings = columns.map(
    ({ label, number, sort }) =>
      html`<th scope="col"${number && html` class="number"`}${sort && html` aria-sort="${sort}"`}>${label}</th>`,
  );
  const lines = rows.map((row) => {
    const line = html`<tr${data?.(row)}>${cellsOf(row, columns, cards)}</tr>\n`;
    return below
      ? html`<tbody>${line}<tr><td colspan="${columns.length}">${below(row)}</td></tr></tbody>`
      : line;
  });
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}"><table${
    id !== undefined && html` id="${id}"`
  }${cards && html` class="cards"`}><caption${!showsCaption && html` class="hidden"`}>${caption}</caption>
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
export function Facts({ facts }: { facts: readonly (readonly [string, Child])[] }): Html {
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>`;
}

export interface TileProps {
  readonly label: string;
  readonly tone?: Tone;
  /** A number, which the tile shortens, or a text. */
  readonly value: number | string;
  /** Whether the number is an estimate. */
  readonly isEstimate?: boolean;
  readonly note?: Child;
  /** Whether the value needs attention. */
  readonly bad?: boolean;
}

/** One of the most important numbers of a page, in a list with the class `tiles`. */
export function Tile({ label, tone, value, isEstimate, note, bad }: TileProps): Html {
  const text = typeof value === "number" ? formatShortCount(value) : value;
  const exact = typeof value === "number" && html` title="${formatCount(value)}"`;
  return html`<li class="tile card${bad && " bad"}"><span class="tile-label">${tone && Sign({ tone })}${label}</span><span class="tile-value"${exact}>${isEstimate && "≈ "}${text}</span><span class="tile-note">${note}</span></li>
`;
}

interface TimeProps {
  /** In milliseconds since the Unix epoch. */
  readonly at: number;
  readonly now: number;
}

/** A time relative to now, which the page's script keeps true. Its tooltip has the exact time. */
export function Time({ at, now }: TimeProps): Html {
  if (Number.isNaN(new Date(at).getTime())) return html`<span>unknown</span>`;
  return html`<time datetime="${new Date(at).toISOString()}" title="${formatTime(at)}" data-relative>${formatRelativeTime(at, now)}</time>`;
}

/** An exact time, and the same time relative to now. */
export function ExactTime(props: TimeProps): Html {
  return html`<span class="nowrap">${formatTime(props.at)}</span> <small>${Time(props)}</small>`;
}

/** The themes, with the drawings of their buttons. */
export const THEMES = [
  {
    id: "auto",
    label: "Theme of the system",
    path: "M8 1a7 7 0 1 1 0 14zM8 1a7 7 0 0 0 0 14v-1.5a5.5 5.5 0 0 1 0-11z",
  },
  {
    id: "light",
    label: "Light theme",
    path: "M8 4.5a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7zM7.3 0h1.4v3H7.3zM7.3 13h1.4v3H7.3zM0 7.3h3v1.4H0zM13 7.3h3v1.4h-3zM1.9 2.9l1-1l2.1 2.1l-1 1zM11 12l1-1l2.1 2.1l-1 1zM2.9 14.1l-1-1L4 11l1 1zM12 5l-1-1l2.1-2.1l1 1z",
  },
  { id: "dark", label: "Dark theme", path: "M6 1a7 7 0 1 0 9 9a6 6 0 0 1-9-9z" },
] as const;

export function ThemeIcon({ path }: { path: string }): Html {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${path}"/></svg>`;
}

/** Weir's sign: three waves. */
export const WAVES = html`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M2 8q2.5-3 5 0t5 0t5 0t5 0M2 13q2.5-3 5 0t5 0t5 0t5 0M2 18q2.5-3 5 0t5 0t5 0t5 0"/></svg>`;

interface DocumentProps {
  readonly title: string;
  /** The attributes of the elements `html` and `body`. */
  readonly htmlData?: Html;
  readonly bodyData?: Html | undefined;
  /** Style sheets, icons and policies. */
  readonly head: Child;
  readonly brand: Child;
  /** What the navigation leads to, for screen readers. */
  readonly navLabel: string;
  readonly nav: Child;
  readonly themes: Child;
  readonly children: Child;
  readonly footer: Child;
  /** The script of a page that may load nothing. */
  readonly end?: Child;
}

/** A whole page. */
export function PageDocument(props: DocumentProps): Html {
  const { title, htmlData, bodyData, head, brand, navLabel, nav, themes, children } = props;
  return html`<!doctype html><html lang="en"${htmlData}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Weir</title>
${head}
</head>
<body${bodyData}>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">${brand}<nav aria-label="${navLabel}">${nav}</nav>${themes}</header>
<main id="main" tabindex="-1">
${children}</main>
<footer>${props.footer}</footer>
${props.end}</body>
</html>`;
}
