import type { Child } from "hono/jsx";
import { NO_CONTROL } from "../control-client.ts";
import { formatRelativeTime, formatTime } from "../format.ts";
import type { RuleView } from "../operations.ts";
import { barWidth, SIGNS, type Tone } from "./chart-drawing.ts";
import { RANGES, type Range } from "./ranges.ts";

interface BarProps {
  /** The part of the whole that the bar fills, from 0 to 1. */
  readonly share: number;
  readonly tone: Tone;
}

/** A horizontal bar. Screen readers skip it, because the same value stands beside it as text. */
export function Bar({ share, tone }: BarProps) {
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="bar-whole" width="100" height="8" />
      <rect class={`fill-${tone}`} width={barWidth(share)} height="8" />
    </svg>
  );
}

/** The sign of a kind of values: shapes differ as well as colours. */
export function Sign({ tone }: { tone: Tone }) {
  return (
    <svg class={`sign fill-${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={SIGNS[tone]} />
    </svg>
  );
}

/** Returns the address of the page of a rule. */
export function rulePath(rule: string): string {
  return `/_weir/rules/${encodeURIComponent(rule)}`;
}

/** Returns the address of the page of a client. An identity is a hash, so it may be in an address. */
export function clientPath(client: string, rule?: string): string {
  const query = new URLSearchParams(rule === undefined ? { client } : { client, rule });
  return `/_weir/clients?${query}`;
}

export function RuleLink({ rule }: { rule: string }) {
  return (
    <a href={rulePath(rule)}>
      <bdi>{rule}</bdi>
    </a>
  );
}

export function ClientLink({ client, rule }: { client: string; rule?: string | undefined }) {
  return (
    <a href={clientPath(client, rule)} class="client">
      <bdi>{client}</bdi>
    </a>
  );
}

const TEXTS: Readonly<Record<RuleView["mode"], string>> = {
  enforce: "enforced",
  shadow: "shadow",
  mark: "mark",
  off: "off",
};

/** The mode of a rule. Enforced rules, which are most, have no badge unless a page asks for it. */
export function ModeBadge({ mode, always = false }: { mode: RuleView["mode"]; always?: boolean }) {
  if (mode === "enforce" && !always) return null;
  return <span class={`badge ${mode}`}>{TEXTS[mode]}</span>;
}

interface NoticeProps {
  readonly kind: "good" | "info" | "warning" | "bad";
  readonly role?: "status" | "alert";
  readonly children?: Child;
}

const NOTICE_SIGNS = { good: "✓", info: "i", warning: "!", bad: "×" } as const;

/** A message above the content of a page. */
export function Notice({ kind, role, children }: NoticeProps) {
  return (
    <div class={`notice ${kind}`} role={role}>
      <span class="notice-sign" aria-hidden="true">
        {NOTICE_SIGNS[kind]}
      </span>
      <div>{children}</div>
    </div>
  );
}

/** Says why a part of a page is missing. */
export function Unavailable({ what, fault }: { what: string; fault: string }) {
  const isUnbound = fault === NO_CONTROL;
  return (
    <Notice kind="warning">
      <p>
        <b>{what} cannot be shown.</b> {fault}
      </p>
      {isUnbound && (
        <p>
          Export the class <code>ControlObject</code> from the Worker, bind it as{" "}
          <code>WEIR_CONTROL</code> in <code>wrangler.toml</code>, add a migration, and deploy. The
          page docs/guides/upgrading.md has the lines.
        </p>
      )}
    </Notice>
  );
}

/** What a page shows instead of an empty table. */
export function Empty({ title, children }: { title: string; children?: Child }) {
  return (
    <div class="empty card">
      <svg viewBox="0 0 96 40" aria-hidden="true">
        <path d="M4 12q11-12 22 0t22 0t22 0t22 0M4 24q11-12 22 0t22 0t22 0t22 0M4 36q11-12 22 0t22 0t22 0t22 0" />
      </svg>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Links to the same page with other times. */
export function RangeSwitch({ path, range }: { path: string; range: Range }) {
  return (
    <nav class="switch" aria-label="Time">
      {RANGES.map(({ id, label }) => (
        <a href={`${path}?range=${id}`} aria-current={id === range.id ? "true" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}

/** A column's heading; with `number`, its cells are aligned to the right. */
export interface Column {
  readonly label: Child;
  readonly number?: boolean;
  /** Whether the rows are in the order of this column. */
  readonly sort?: "ascending" | "descending" | undefined;
}

interface TableProps {
  /** Screen readers announce it. */
  readonly caption: string;
  /** Whether the caption is visible, because no heading beside the table says the same. */
  readonly showsCaption?: boolean;
  readonly columns: readonly Column[];
  readonly id?: string;
  /** On narrow screens, each row becomes a card. Cells need `data-label`, because the headings are hidden. */
  readonly cards?: boolean;
  readonly children?: Child;
}

/** A table that scrolls on narrow screens. Its children are its rows. */
export function Table({ caption, showsCaption = false, columns, id, cards, children }: TableProps) {
  return (
    <section class="scroll" tabindex={0} aria-label={caption}>
      <table id={id} class={cards ? "cards" : undefined}>
        <caption class={showsCaption ? undefined : "hidden"}>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ label, number, sort }) => (
              <th scope="col" class={number ? "number" : undefined} aria-sort={sort}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

interface TimeProps {
  /** In milliseconds since the Unix epoch. */
  readonly at: number;
  readonly now: number;
}

/** A time relative to now. Its tooltip has the exact time. */
export function Time({ at, now }: TimeProps) {
  if (Number.isNaN(new Date(at).getTime())) return <span>unknown</span>;
  return (
    <time datetime={new Date(at).toISOString()} title={formatTime(at)} data-relative>
      {formatRelativeTime(at, now)}
    </time>
  );
}

/** An exact time, and the same time relative to now. */
export function ExactTime({ at, now }: TimeProps) {
  return (
    <span class="exact-time">
      <span class="nowrap">{formatTime(at)}</span>{" "}
      <small>
        <Time at={at} now={now} />
      </small>
    </span>
  );
}

/** What the overview shows before the first request. */
export function NoTraffic({ url }: { url: string }) {
  const { origin } = new URL(url);
  return (
    <Empty title="No traffic yet">
      <p>Send some requests, and look at this page again after 5 seconds:</p>
      <pre tabindex={0}>
        <code>{`for i in $(seq 20); do curl -s -o /dev/null -w '%{http_code}\\n' ${origin}/; done`}</code>
      </pre>
      <p>
        In a clone of Weir, <code>npm run dev -- --traffic</code> sends traffic to look at.
      </p>
    </Empty>
  );
}
