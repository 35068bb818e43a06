import { chart, type Series } from "../../src/admin/dashboard/chart.ts";
import {
  type Column,
  facts,
  type Html,
  html,
  modeBadge,
  notice,
  pageDocument,
  part,
  type Tile,
  type Tone,
  table,
  tiles,
  trusted,
  WAVES,
} from "../../src/admin/dashboard/components.ts";
import {
  formatCount,
  formatCountIfKnown,
  formatDollars,
  formatEstimate,
  formatPercent,
} from "../../src/admin/format.ts";
import type {
  ComparedRule,
  Comparison,
  Counts,
  ReplayReport,
  RuleReport,
  Timeline,
} from "../replay/report.ts";
import {
  differenceOf,
  hasNoRules,
  isDifferent,
  modesOf,
  summaryOf,
  withoutReasons,
} from "../replay/summary.ts";
import { ICON, SCRIPT, SCRIPT_SOURCE, STYLE, STYLE_SOURCE } from "./assets.generated.ts";
import {
  comparedClients,
  deniedClients,
  filesText,
  leftOutRules,
  logCard,
  notes,
  rangeText,
  type StatedFacts,
  shown,
  statedFacts,
} from "./parts.ts";

/** The answer that a reader looks for first: whom would these rules have denied? */
export function titleOf(report: ReplayReport): string {
  const { total, comparison } = report;
  if (total.requests === 0) return "No request was replayed";
  if (hasNoRules(report)) return "No rule could be replayed";
  const { addresses } = statedFacts(report);
  const title = comparison ? comparedTitle(comparison, addresses) : deniedTitle(total, addresses);
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function deniedTitle(total: Counts, hasAddresses: boolean): string {
  const { requests, denied, clients, clientsDenied, isEstimate, isDeniedEstimate } = total;
  if (denied === 0) return "No client would have been denied";
  if (!hasAddresses) {
    return `${formatCount(denied)} of ${formatCount(requests, "request")} would have been denied`;
  }
  return `${formatEstimate(clientsDenied, isDeniedEstimate)} of ${formatEstimate(clients, isEstimate, "client")} would have been denied`;
}

function comparedTitle({ clients, requests }: Comparison, hasAddresses: boolean): string {
  if (!hasAddresses) return `${formatCount(requests.newlyDenied, "request")} would be newly denied`;
  if (clients.newlyDenied === 0) return "No client would be newly denied";
  return `${formatEstimate(clients.newlyDenied, clients.isEstimate, "client")} would be newly denied`;
}

/** The page may load nothing, and only its own script and style sheet apply. */
const POLICY = [
  "default-src 'none'",
  `script-src ${SCRIPT_SOURCE}`,
  `style-src ${STYLE_SOURCE}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/**
 * Returns the report of `weir replay` as one HTML file with style sheet, script and icon. Equal reports have equal
 * pages.
 */
export function replayPage(report: ReplayReport): string {
  const sections = sectionsOf(report);
  const links = sections.map(({ id, name }) => html`<a href="#${id}">${name}</a>`);
  const page = pageDocument({
    title: titleOf(report),
    head: html`<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(ICON)}">
<style>${trusted(STYLE)}</style>`,
    header: html`<span class="brand">${WAVES}Weir</span><nav class="row" aria-label="Sections">${links}</nav>`,
    content: html`${topOf(report)}
${sections.map(
  ({ id, heading, content }) =>
    html`<section id="${id}" class="part" aria-labelledby="${id}-heading"><h2 id="${id}-heading">${heading}</h2>
${content}</section>
`,
)}`,
    footer: html`<footer class="row"><span class="grow">Made by <code>weir replay</code></span><span>All times are UTC.</span></footer>
<script>${trusted(SCRIPT)}</script>
`,
  });
  return `${page}\n`;
}

function topOf(report: ReplayReport): Html {
  const { log, config, leftOut, comparison, rules } = report;
  const time = log.from && log.to ? `, ${rangeText(log.from, log.to)} UTC` : "";
  const lead = [...(comparison ? differenceOf(comparison) : []), ...summaryOf(report)];
  if (rules.some(({ mode, denied }) => mode !== "enforce" && denied > 0)) {
    lead.push("Rules in the mode shadow or mark deny nothing, so these numbers leave them out.");
  }
  return html`<div class="headline"><p class="note">Replay of <b>${filesText(log.files)}</b> under <b>${shown(config)}</b>${time}</p>
<h1>${titleOf(report)}</h1>
${lead.map((text) => html`<p>${shown(text, 1000)}</p>`)}</div>
${verdictNotices(report)}${leftOutRules(leftOut)}${notes(withoutReasons(report.notes, leftOut))}`;
}

/** The warnings of a failed or interrupted replay. */
function verdictNotices({ failed, isPartial }: ReplayReport): Html[] {
  const notices = failed.map(({ option, allowed, clients }) => {
    const kind = option === "--max-newly-denied" ? "newly denied" : "denied";
    return html`${formatCount(clients, "client")} ${kind}, but <code>${option}</code> allows ${formatCount(allowed)}.`;
  });
  const partial = html`The replay was interrupted: this report is about the part of the log that was read.`;
  return [...(isPartial ? [partial] : []), ...notices].map((text) =>
    notice("bad", html`<p><b>${text}</b></p>`),
  );
}

/** A part of a report. */
interface Section {
  readonly id: string;
  /** The short name in the navigation. */
  readonly name: string;
  readonly heading: string;
  readonly content: Html;
}

function sectionsOf(report: ReplayReport): Section[] {
  const { comparison, total, timeline, rules } = report;
  const stated = statedFacts(report);
  const sections: Section[] = [];
  const add = (id: string, name: string, heading: string, content: Html) =>
    sections.push({ id, name, heading, content });
  if (comparison) {
    const heading = `Compared with ${shown(comparison.against)}`;
    add("comparison", "Comparison", heading, comparisonSection(comparison, report));
  }
  const names = { context: "of all rules", denied: "Denied", tone: "limited" } as const;
  const totals = html`${tiles(totalTiles(report))}${timelineCharts(timeline, names)}`;
  add("total", "Total", "All requests", totals);
  if (rules.length > 0) add("rules", "Rules", "Rules", rulesSection(rules, stated));
  if (total.mostDenied.length > 0) {
    const content = deniedClients("The clients most denied, by address", total.mostDenied, stated);
    add("clients", "Clients", "Addresses most denied", html`<div class="card">${content}</div>\n`);
  }
  add("log", "Log", "How this was made", logCard(report));
  return sections;
}

function totalTiles(report: ReplayReport): Tile[] {
  const { total, cost } = report;
  const stated = statedFacts(report);
  const { requests, unmatched, denied, deniedSucceeded, clients, clientsDenied } = total;
  const all: Tile[] = [
    {
      label: "Requests",
      tone: "allowed",
      value: requests,
      note: `${formatPercent(unmatched, requests)} match no rule`,
    },
    {
      label: "Denied",
      tone: "limited",
      value: denied,
      note: `${formatPercent(denied, requests)} of all requests`,
    },
    {
      label: "Denied, had succeeded",
      tone: "undecided",
      value: deniedSucceeded ?? "unknown",
      note: stated.statuses ? "status below 400" : "the log states no statuses",
      bad: (deniedSucceeded ?? 0) > 0,
    },
    {
      label: "Clients denied",
      value: stated.addresses ? clientsDenied : "unknown",
      isEstimate: total.isDeniedEstimate,
      note: stated.addresses
        ? `${formatPercent(clientsDenied, clients)} of ${formatEstimate(clients, total.isEstimate)} addresses`
        : "the log states no addresses",
    },
  ];
  if (cost) {
    const { dollars, dollarsPer30Days } = cost;
    all.push({
      label: dollarsPer30Days === undefined ? "Store cost" : "Store cost of 30 days",
      value: formatDollars(dollarsPer30Days ?? dollars),
      note: `${formatDollars(dollars)} for ${formatCount(cost.count)} ${cost.unit} in the log`,
    });
  }
  return all;
}

/** The section about the differences between two configurations. */
function comparisonSection(comparison: Comparison, report: ReplayReport): Html {
  const { against, mostNewlyDenied, mostNewlyAllowed } = comparison;
  const stated = statedFacts(report);
  const isKnown = (rule: string) => report.leftOut.some((known) => known.rule === rule);
  const otherRules = comparison.leftOut.filter(({ rule }) => !isKnown(rule));
  const known = new Set(report.notes.map(({ text }) => text));
  const otherNotes = withoutReasons(comparison.notes, comparison.leftOut).filter(
    ({ text }) => !known.has(text),
  );
  const clients = [
    ["Clients newly denied most", mostNewlyDenied],
    ["Clients newly allowed most", mostNewlyAllowed],
  ] as const;
  return html`${notes(otherNotes, `What the numbers of ${shown(against)} assume`)}${leftOutRules(otherRules)}${tiles(comparedTiles(comparison, stated))}
<div class="card">${countsTable(comparison, report)}</div>
<div class="card">${comparedRulesTable(comparison)}</div>
${clients.map(
  ([heading, all]) =>
    all.length > 0 &&
    html`<div class="card"><h3>${heading}</h3>${comparedClients(heading, all, stated)}</div>\n`,
)}`;
}

function comparedTiles({ requests, clients }: Comparison, { statuses }: StatedFacts): Tile[] {
  const { isEstimate } = clients;
  const succeeded = formatCountIfKnown(requests.newlyDeniedSucceeded);
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
      note: `${formatCount(requests.newlyAllowed, "request")} newly allowed`,
    },
    {
      label: "Clients denied more, less",
      value: `${formatCount(clients.deniedMore)}, ${formatCount(clients.deniedLess)}`,
      note: "denied before and now",
    },
  ];
}

function countsTable(comparison: Comparison, report: ReplayReport): Html {
  const { against, before, costBefore, requests } = comparison;
  const counts = (name: string, text: (counts: Counts) => string) =>
    [name, text(before), text(report.total)] as const;
  const succeeded = counts("Of these, had succeeded", ({ deniedSucceeded }) =>
    formatCountIfKnown(deniedSucceeded),
  );
  const [priceBefore, price] = [costBefore, report.cost].map((cost) =>
    cost ? formatDollars(cost.dollars) : "–",
  );
  const rows = [
    counts(
      "Denied requests",
      ({ denied, requests }) => `${formatCount(denied)} (${formatPercent(denied, requests)})`,
    ),
    ...(statedFacts(report).statuses ? [succeeded] : []),
    counts("Denied clients", ({ clientsDenied, isDeniedEstimate }) =>
      formatEstimate(clientsDenied, isDeniedEstimate),
    ),
    [
      "Denied by this one only",
      formatCount(requests.newlyAllowed),
      formatCount(requests.newlyDenied),
    ],
    ["Price", priceBefore, price],
  ] as const;
  return table({
    caption: "Both configurations",
    showsCaption: true,
    cards: true,
    columns: [
      { label: "Number", cell: ([name]) => name },
      { label: shown(against), number: true, cell: ([, before]) => before },
      { label: shown(report.config), number: true, cell: ([, , now]) => now },
    ],
    rows,
  });
}

function comparedRulesTable({ rules }: Comparison): Html {
  const changed = rules.filter(isDifferent);
  const unchanged = rules.length - changed.length;
  const same = `${formatCount(unchanged, "rule")} ${unchanged === 1 ? "is" : "are"} the same`;
  const number = (label: string, read: (rule: ComparedRule) => number | undefined) => ({
    label,
    number: true,
    cell: (rule: ComparedRule) => {
      const value = read(rule);
      return value === undefined ? "–" : formatCount(value);
    },
  });
  return table({
    caption: unchanged > 0 ? `Changed rules; ${same}` : "All rules",
    showsCaption: true,
    cards: true,
    columns: [
      { label: "Rule", cell: ({ rule }) => shown(rule) },
      { label: "Change", cell: ({ change }) => change },
      { label: "Mode", cell: (rule) => shown(modesOf(rule)) },
      number("Over the limit before", ({ overLimitBefore }) => overLimitBefore),
      number("Over the limit now", ({ overLimit }) => overLimit),
      number("Denied before", ({ deniedBefore }) => deniedBefore),
      number("Denied now", ({ denied }) => denied),
    ],
    rows: changed,
  });
}

/** How many clients all rules together list, so that a report with many rules stays small. */
const MAX_ROWS = 100;
/** The minimum and the maximum number of clients that a rule lists. */
const MIN_RULE_ROWS = 3;
const MAX_RULE_ROWS = 20;
/** How many rules have a chart. */
const MAX_CHARTS = 40;

/** All rules as a table, and the details of the rules that denied requests. */
export function rulesSection(rules: readonly RuleReport[], stated: StatedFacts): Html {
  const listed = [...rules]
    .sort((a, b) => b.denied - a.denied)
    .map((rule, index) => ({ rule, id: rule.denied > 0 ? `rule-${index + 1}` : undefined }));
  const cards = listed.filter(({ id }) => id !== undefined);
  const share = Math.floor(MAX_ROWS / Math.max(1, cards.length));
  const rows = Math.min(MAX_RULE_ROWS, Math.max(MIN_RULE_ROWS, share));
  return html`${
    stated.statuses &&
    html`<p class="note">“Had succeeded” counts the requests over the limit that the log shows with a status below 400: those that users would have missed.</p>
`
  }<div class="card">${rulesTable(listed, stated)}</div>
${cards.map(({ rule, id = "" }, index) => ruleCard(rule, { id, rows, hasChart: index < MAX_CHARTS, stated }))}${
  cards.length > MAX_CHARTS &&
  html`<p class="note">Only the ${formatCount(MAX_CHARTS)} rules with the most denied requests have charts.</p>
`
}`;
}

/** A rule with the place of its card in the report. */
interface ListedRule {
  readonly rule: RuleReport;
  /** The id of its card; undefined for a rule without denials, which has no card. */
  readonly id: string | undefined;
}

/** The names and colours of requests over the limit, by mode. */
const MODES: Readonly<Record<RuleReport["mode"], { tone: Tone; denied: string }>> = {
  enforce: { tone: "limited", denied: "Denied" },
  shadow: { tone: "shadow", denied: "Would deny" },
  mark: { tone: "undecided", denied: "Marked" },
};

function clientsOverLimit(rule: RuleReport): string {
  return `${formatEstimate(rule.clientsDenied, rule.isDeniedEstimate)} of ${formatEstimate(rule.clients, rule.isEstimate)}`;
}

/** All rules with their numbers. */
function rulesTable(rules: readonly ListedRule[], { statuses }: StatedFacts): Html {
  const succeeded: Column<ListedRule> = {
    label: "Had succeeded",
    number: true,
    cell: ({ rule }) => formatCountIfKnown(rule.deniedSucceeded),
  };
  return table<ListedRule>({
    caption: "All rules, those with the most requests over the limit first",
    cards: true,
    columns: [
      {
        label: "Rule",
        cell: ({ rule: { name, mode, match }, id }) => {
          const link = id !== undefined && html`<a href="#${id}">${shown(name)}</a>`;
          return html`${link || shown(name)} ${modeBadge(mode)}<div class="any"><code>${shown(match)}</code></div>`;
        },
      },
      { label: "Key", cell: ({ rule }) => html`<code>${shown(rule.key)}</code>` },
      { label: "Limits", cell: ({ rule }) => shown(rule.limits) },
      { label: "Requests", number: true, cell: ({ rule }) => formatCount(rule.requests) },
      {
        label: "Over the limit",
        number: true,
        cell: ({ rule: { denied, requests, mode } }) =>
          part(denied, requests, MODES[mode]?.tone ?? "limited"),
      },
      ...(statuses ? [succeeded] : []),
      {
        label: "Clients over the limit",
        number: true,
        cell: ({ rule }) => clientsOverLimit(rule),
      },
    ],
    rows: rules,
  });
}

interface CardOptions {
  readonly id: string;
  /** The maximum number of clients and of windows. */
  readonly rows: number;
  readonly hasChart: boolean;
  readonly stated: StatedFacts;
}

/** The details of a rule that denied requests. */
function ruleCard(rule: RuleReport, { id, rows, hasChart, stated }: CardOptions): Html {
  const { mode, requests, denied, mostDenied, clientsDenied, worstWindows, mostOpen } = rule;
  const name = shown(rule.name);
  const { tone, denied: deniedName } = MODES[mode] ?? MODES.enforce;
  const succeeded = ["Had succeeded", formatCountIfKnown(rule.deniedSucceeded)] as const;
  const all = [
    ["Limits", shown(rule.limits)],
    ["Key", html`<code>${shown(rule.key)}</code>`],
    ["Requests", formatCount(requests)],
    [deniedName, `${formatCount(denied)} (${formatPercent(denied, requests)})`],
    ...(stated.statuses ? [succeeded] : []),
    ["Clients over the limit", clientsOverLimit(rule)],
    ...(mostOpen === undefined ? [] : [["Most open requests of a client", mostOpen] as const]),
  ] as const;
  const names = { context: `of the rule ${name}`, denied: deniedName, tone };
  const clients = mostDenied.slice(0, rows);
  const heading =
    clientsDenied > clients.length
      ? `The ${formatCount(clients.length, "client")} most denied`
      : "Denied clients";
  return html`<article class="card rule" id="${id}" aria-labelledby="${id}-name"><h3 id="${id}-name">${name} ${modeBadge(mode)}</h3>
<p class="note"><code>${shown(rule.match)}</code></p>
${facts(all)}
${hasChart && timelineCharts(rule.timeline, names)}
${
  clients.length > 0 &&
  html`<details class="printed" open><summary>${heading}</summary>${deniedClients(`${heading} by the rule ${name}`, clients, stated, tone)}</details>\n`
}${
  worstWindows.length > 0 &&
  html`<details class="printed"><summary>Worst windows</summary>${windowsTable(rule, rows)}</details>\n`
}</article>
`;
}

function windowsTable({ name, worstWindows }: RuleReport, count: number): Html {
  return table({
    caption: `The worst windows of the rule ${shown(name)}`,
    columns: [
      { label: "Window (UTC)", cell: ({ start, end }) => rangeText(start, end) },
      { label: "Policy", cell: ({ policy }) => shown(policy) },
      {
        label: "Requests",
        number: true,
        cell: ({ requests }) => (requests === undefined ? "–" : formatCount(requests)),
      },
      { label: "Over the limit", number: true, cell: ({ denied }) => formatCount(denied) },
    ],
    rows: worstWindows.slice(0, count),
  });
}

/** The latest time that a date can have, in milliseconds. */
const MAX_TIME = 8.64e15;
/** If the most denied requests in a step are below this share of the most allowed ones, they cannot be seen. */
const VISIBLE_SHARE = 0.2;

interface TimelineNames {
  /** The subject of the charts, such as `of the rule login`. */
  readonly context: string;
  /** The name of requests over the limit, such as `Denied`. */
  readonly denied: string;
  readonly tone: Tone;
}

/**
 * Charts of the requests over time. If the denied requests are too few to be seen, a second chart has only these.
 * Undefined for a timeline with less than two steps.
 */
export function timelineCharts(timeline: Timeline, names: TimelineNames): Html | undefined {
  const start = Date.parse(timeline.start ?? "");
  const step = timeline.stepSeconds * 1000;
  const count = Math.max(timeline.allowed.length, timeline.denied.length);
  if (!(count > 1) || !(step > 0) || !(start + count * step <= MAX_TIME)) return undefined;
  const time = { start, step, unit: "count", unfinished: false } as const;
  const allowed: Series = { label: "Allowed", tone: "allowed", values: timeline.allowed };
  const denied: Series = { label: names.denied, tone: names.tone, values: timeline.denied };
  const highestDenied = Math.max(...timeline.denied);
  const isSmall =
    highestDenied > 0 && highestDenied < Math.max(...timeline.allowed) * VISIBLE_SHARE;
  const drawn = (title: string, stacked: boolean, series: Series[]) =>
    chart({ title, context: names.context, data: { ...time, stacked, series } });
  const all = drawn("Requests over time", true, [allowed, denied]);
  const few = isSmall && drawn(`${names.denied} requests over time`, false, [denied]);
  return html`<div class="columns">${all}${few}</div>
`;
}
