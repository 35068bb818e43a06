import type { ChartData, Series, Tone } from "../../src/admin/dashboard/chart-drawing.ts";
import { formatCount, formatDollars, formatPercent } from "../../src/admin/format.ts";
import type {
  ComparedClient,
  Comparison,
  Counts,
  ReplayReport,
  RuleReport,
  Timeline,
  TotalReport,
  WorstWindow,
} from "../replay/report.ts";
import { hasNoRules, isDifferent, modesOf, withoutReasons } from "../replay/summary.ts";
import {
  bar,
  chart,
  estimateText,
  filesText,
  type Html,
  html,
  knownText,
  leftOutRules,
  notes,
  notice,
  rangeText,
  type StatedFacts,
  shown,
  statedFacts,
  type Tile,
  table,
  tiles,
} from "./components.ts";
import { documentOf, type Section } from "./document.ts";
import { comparedClients, costCard, deniedClients, type Fact, facts, logCard } from "./log-card.ts";

export interface Headline {
  readonly title: string;
  /** Paragraphs below the title. */
  readonly lead: readonly string[];
}

/** The answer that a reader looks for first: whom would these rules have denied? */
export function headlineOf(report: ReplayReport): Headline {
  const { total, comparison, rules } = report;
  const stated = statedFacts(report);
  if (total.requests === 0) {
    return {
      title: "No request was replayed",
      lead: ["The log has no request in this range of time, so all numbers are 0."],
    };
  }
  if (hasNoRules(report)) {
    return {
      title: "No rule could be replayed",
      lead: ["So it is unknown which requests these rules would have denied."],
    };
  }
  const compared = comparison ? [comparedLead(comparison, stated)] : [];
  const sentences = deniedLead(total, stated);
  if (rules.some(({ mode, denied }) => mode !== "enforce" && denied > 0)) {
    sentences.push(
      "Rules in the mode shadow or mark deny nothing, so these numbers leave them out.",
    );
  }
  const title = comparison ? comparedTitle(comparison, stated) : deniedTitle(total, stated);
  return {
    title: title.charAt(0).toUpperCase() + title.slice(1),
    lead: [...compared, sentences.join(" ")],
  };
}

function deniedTitle(total: TotalReport, { addresses }: StatedFacts): string {
  const { requests, denied, clients, clientsDenied, isEstimate, isDeniedEstimate } = total;
  if (denied === 0) return "No client would have been denied";
  if (!addresses) {
    return `${formatCount(denied)} of ${formatCount(requests, "request")} would have been denied`;
  }
  const whole = `${estimateText(clients, isEstimate)} client${clients === 1 ? "" : "s"}`;
  return `${estimateText(clientsDenied, isDeniedEstimate)} of ${whole} would have been denied`;
}

function deniedLead(total: TotalReport, { statuses }: StatedFacts): string[] {
  const { requests, denied, deniedSucceeded } = total;
  if (denied === 0) return [`${formatCount(requests, "request")} would have passed.`];
  const share = formatPercent(denied, requests);
  return [
    `${formatCount(denied)} of ${formatCount(requests, "request")} would have been denied (${share}).`,
    ...(statuses ? [lossText(deniedSucceeded ?? 0)] : []),
  ];
}

function lossText(deniedSucceeded: number): string {
  if (deniedSucceeded === 0) return "None of the denied requests had a status below 400.";
  return `${formatCount(deniedSucceeded)} of the denied requests had succeeded, with a status below 400: their clients may be customers.`;
}

function comparedTitle({ clients, requests }: Comparison, { addresses }: StatedFacts): string {
  if (!addresses) return `${formatCount(requests.newlyDenied, "request")} would be newly denied`;
  if (clients.newlyDenied === 0) return "No client would be newly denied";
  const count = estimateText(clients.newlyDenied, clients.isEstimate);
  return `${count} client${clients.newlyDenied === 1 ? "" : "s"} would be newly denied`;
}

function comparedLead({ requests, clients }: Comparison, { statuses }: StatedFacts): string {
  const { newlyDenied, newlyDeniedSucceeded, newlyAllowed } = requests;
  const isLoss = statuses && newlyDenied > 0;
  const loss = isLoss ? ` (${knownText(newlyDeniedSucceeded)} of them had succeeded)` : "";
  const changed = `${formatCount(newlyDenied, "request")} would be newly denied${loss}, and ${formatCount(newlyAllowed, "request")} newly allowed.`;
  if (clients.noLongerDenied === 0) return changed;
  const count = estimateText(clients.noLongerDenied, clients.isEstimate);
  return `${changed} Clients that would no longer be denied: ${count}.`;
}

/** What changes between two configurations. */
export function comparisonSection(comparison: Comparison, report: ReplayReport): Html {
  const { mostNewlyDenied, mostNewlyAllowed } = comparison;
  const stated = statedFacts(report);
  const isKnown = (rule: string) => report.leftOut.some((known) => known.rule === rule);
  const otherRules = comparison.leftOut.filter(({ rule }) => !isKnown(rule));
  return html`${notesOf(comparison, report)}${leftOutRules(otherRules)}${tiles(comparedTiles(comparison, stated))}
<div class="card">${countsTable(comparison, report)}</div>
<div class="card">${comparedRulesTable(comparison)}</div>
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
      note: `${formatCount(requests.newlyAllowed, "request")} newly allowed`,
    },
    {
      label: "Clients denied more, less",
      value: `${formatCount(clients.deniedMore)}, ${formatCount(clients.deniedLess)}`,
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
        ({ denied, requests }) => `${formatCount(denied)} (${formatPercent(denied, requests)})`,
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
    [
      "Denied by this one only",
      formatCount(requests.newlyAllowed),
      formatCount(requests.newlyDenied),
    ],
    ["Price", ...[costBefore, cost].map((each) => (each ? formatDollars(each.dollars) : "–"))],
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

function comparedRulesTable({ rules }: Comparison): Html {
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
        html`<td class="number" data-label="${columns[index + 3]?.label}">${number === undefined ? "–" : formatCount(number)}</td>`,
    );
    return html`<tr><th scope="row">${shown(each.rule)}</th><td data-label="Change">${each.change}</td><td data-label="Mode">${shown(modesOf(each))}</td>${cells}</tr>`;
  });
  const unchanged = rules.length - changed.length;
  const same = `${formatCount(unchanged, "rule")} ${unchanged === 1 ? "is" : "are"} the same`;
  const caption = unchanged > 0 ? `Changed rules; ${same}` : "All rules";
  return table({ caption, showsCaption: true, columns, cards: true }, rows);
}

/** A rule with the place of its card in the report. */
export interface ListedRule {
  readonly rule: RuleReport;
  /** The id of its card; undefined if it has none, because it denied nothing. */
  readonly id: string | undefined;
}

/** Returns the rules in the order of their denied requests. */
export function listedRules(rules: readonly RuleReport[]): ListedRule[] {
  return [...rules]
    .sort((a, b) => b.denied - a.denied)
    .map((rule, index) => ({ rule, id: rule.denied > 0 ? `rule-${index + 1}` : undefined }));
}

/** What happens to requests over the limit in each mode. */
export const MODES: Readonly<Record<RuleReport["mode"], { tone: Tone; denied: string }>> = {
  enforce: { tone: "limited", denied: "Denied" },
  shadow: { tone: "shadow", denied: "Would deny" },
  mark: { tone: "undecided", denied: "Marked" },
};

/** All rules with their numbers. */
export function rulesTable(rules: readonly ListedRule[], { statuses }: StatedFacts): Html {
  const columns = [
    { label: "Rule" },
    { label: "Key" },
    { label: "Limits" },
    { label: "Requests", number: true },
    { label: "Over the limit", number: true },
    ...(statuses ? [{ label: "Had succeeded", number: true }] : []),
    { label: "Clients over the limit", number: true },
  ];
  const caption = "All rules, those with the most requests over the limit first";
  return table(
    { id: "rules-table", caption, columns, cards: true },
    rules.map((each) => row(each, statuses)),
  );
}

function row({ rule, id }: ListedRule, hasStatuses: boolean): Html {
  const { name, mode, match, key, limits, requests, denied, deniedSucceeded } = rule;
  const clients = `${estimateText(rule.clientsDenied, rule.isDeniedEstimate)} of ${estimateText(rule.clients, rule.isEstimate)}`;
  const title = id === undefined ? html`${shown(name)}` : html`<a href="#${id}">${shown(name)}</a>`;
  return html`<tr${id !== undefined && html` data-rule="${id}"`}><th scope="row">${title} ${modeBadge(mode)}<div class="match"><code>${shown(match)}</code></div></th><td data-label="Key"><code>${shown(key)}</code></td><td data-label="Limits">${shown(limits)}</td><td class="number" data-label="Requests">${formatCount(requests)}</td><td class="number" data-label="Over the limit">${formatCount(denied)} <small>${formatPercent(denied, requests)}</small>${bar(denied / Math.max(1, requests), MODES[mode]?.tone ?? "limited")}</td>${hasStatuses && html`<td class="number" data-label="Had succeeded">${knownText(deniedSucceeded)}</td>`}<td class="number" data-label="Clients over the limit">${clients}</td></tr>`;
}

/** The mode of a rule. Enforced rules, which are most, have no badge. */
export function modeBadge(mode: RuleReport["mode"]): Html | false {
  return mode !== "enforce" && html`<span class="badge ${mode}">${mode}</span>`;
}

/** The latest time that a date can have, in milliseconds. */
const MAX_TIME = 8.64e15;

/** Below this share of the highest step, denied requests are too few to be seen among all requests. */
const VISIBLE_SHARE = 0.2;

interface TimelineNames {
  /** What the charts are about, such as `of the rule login`. */
  readonly context: string;
  /** What happens to requests over the limit. */
  readonly denied: string;
  readonly tone: Tone;
}

/**
 * The requests over time, and beside them the denied requests alone if they are too few to be seen. Nothing
 * for a timeline with less than two steps.
 */
export function timelineCharts(timeline: Timeline, names: TimelineNames): Html | undefined {
  const time = timeOf(timeline);
  if (!time) return undefined;
  const { context } = names;
  const allowed: Series = { label: "Allowed", tone: "allowed", values: timeline.allowed };
  const denied: Series = { label: names.denied, tone: names.tone, values: timeline.denied };
  const highest = Math.max(...timeline.allowed);
  const highestDenied = Math.max(...timeline.denied);
  const isSmall = highestDenied > 0 && highestDenied < highest * VISIBLE_SHARE;
  const all: ChartData = { ...time, stacked: true, series: [allowed, denied] };
  const few: ChartData = { ...time, stacked: false, series: [denied] };
  return html`<div class="columns">${chart("Requests over time", context, all)}${isSmall && chart(`${names.denied} requests over time`, context, few)}</div>
`;
}

function timeOf({ start, stepSeconds, allowed, denied }: Timeline) {
  const from = Date.parse(start ?? "");
  const step = stepSeconds * 1000;
  const count = Math.max(allowed.length, denied.length);
  if (!(count > 1) || !(step > 0) || !(from + count * step <= MAX_TIME)) return undefined;
  return { start: from, step, unit: "count", unfinished: false } as const;
}

/** Returns a timeline with half as many steps, each twice as long. */
export function halved(timeline: Timeline): Timeline {
  const pairs = (values: readonly number[]) =>
    values.flatMap((value, index) => (index % 2 ? [] : [value + (values[index + 1] ?? 0)]));
  const { start, stepSeconds, allowed, denied } = timeline;
  return { start, stepSeconds: 2 * stepSeconds, allowed: pairs(allowed), denied: pairs(denied) };
}

const MAX_STEPS = 120;

interface CardOptions {
  readonly id: string;
  /** The maximum number of clients and of windows. */
  readonly rows: number;
  readonly hasChart: boolean;
  readonly stated: StatedFacts;
}

/** The details of a rule that denied requests. */
export function ruleCard(rule: RuleReport, options: CardOptions): Html {
  const { id, hasChart } = options;
  const { name, mode, requests, denied, deniedSucceeded } = rule;
  const { isEstimate, isDeniedEstimate } = rule;
  const { tone, denied: deniedName } = MODES[mode] ?? MODES.enforce;
  const context = `of the rule ${shown(name)}`;
  const succeeded: Fact = ["Had succeeded", knownText(deniedSucceeded)];
  const numbers = facts([
    ["Limits", shown(rule.limits)],
    ["Key", html`<code>${shown(rule.key)}</code>`],
    ["Requests", formatCount(requests)],
    [deniedName, `${formatCount(denied)} (${formatPercent(denied, requests)})`],
    ...(options.stated.statuses ? [succeeded] : []),
    [
      "Clients over the limit",
      `${estimateText(rule.clientsDenied, isDeniedEstimate)} of ${estimateText(rule.clients, isEstimate)}`,
    ],
  ]);
  return html`<article class="card rule" id="${id}" aria-labelledby="${id}-name"><h3 id="${id}-name">${shown(name)} ${modeBadge(mode)}</h3>
<p class="hint"><code>${shown(rule.match)}</code></p>
${numbers}
${hasChart && timelineCharts(shortened(rule.timeline), { context, denied: deniedName, tone })}
${clients(rule, options)}${windows(rule, options)}</article>
`;
}

/** The charts of all rules together are most of a report, so they have fewer steps than the chart of the total. */
function shortened(timeline: RuleReport["timeline"]) {
  return timeline.allowed.length > MAX_STEPS ? halved(timeline) : timeline;
}

function clients(
  { name, mode, mostDenied, clientsDenied }: RuleReport,
  { rows, stated }: CardOptions,
): Html | false {
  const listed = mostDenied.slice(0, rows);
  const heading =
    clientsDenied > listed.length
      ? `The ${formatCount(listed.length, "client")} most denied`
      : "Denied clients";
  const caption = `${heading} by the rule ${shown(name)}`;
  const content = deniedClients(caption, listed, stated, MODES[mode]?.tone);
  return (
    listed.length > 0 &&
    html`<details class="printed" data-clients open><summary>${heading}</summary>${content}</details>
`
  );
}

function windows({ name, worstWindows }: RuleReport, { rows }: CardOptions): Html | false {
  const columns = [
    { label: "Window (UTC)" },
    { label: "Policy" },
    { label: "Requests", number: true },
    { label: "Over the limit", number: true },
  ];
  const row = ({ policy, start, end, requests, denied }: WorstWindow) => {
    const whole = requests === undefined ? "–" : formatCount(requests);
    return html`<tr><th scope="row">${rangeText(start, end)}</th><td>${shown(policy)}</td><td class="number">${whole}</td><td class="number">${formatCount(denied)}</td></tr>`;
  };
  const caption = `The worst windows of the rule ${shown(name)}`;
  const content = table({ caption, columns }, worstWindows.slice(0, rows).map(row));
  return (
    worstWindows.length > 0 &&
    html`<details class="printed"><summary>Worst windows</summary>${content}</details>
`
  );
}

/** How many clients all rules together list, so that a report with many rules stays small. */
const MAX_ROWS = 100;
/** Each rule lists at least and at most this many clients. */
const MIN_RULE_ROWS = 3;
const MAX_RULE_ROWS = 20;
/** How many rules have a chart. */
const MAX_CHARTS = 40;

/** All rules as a table, and the details of those that denied requests. */
export function rulesSection(rules: readonly RuleReport[], stated: StatedFacts): Html {
  const listed = listedRules(rules);
  const cards = listed.filter(({ id }) => id !== undefined);
  const share = Math.floor(MAX_ROWS / Math.max(1, cards.length));
  const rows = Math.min(MAX_RULE_ROWS, Math.max(MIN_RULE_ROWS, share));
  return html`${
    stated.statuses &&
    html`<p class="hint">“Had succeeded” counts the requests over the limit that the log shows with a status below 400: those that users would have missed.</p>
`
  }<div class="card">${filterForm(rules.length)}${rulesTable(listed, stated)}</div>
${cards.map(({ rule, id = "" }, index) => ruleCard(rule, { id, rows, hasChart: index < MAX_CHARTS, stated }))}${
  cards.length > MAX_CHARTS &&
  html`<p class="hint">Only the ${formatCount(MAX_CHARTS)} rules with the most denied requests have charts.</p>
`
}`;
}

/** The script shows the form, because it does nothing without the script. */
function filterForm(count: number): Html | false {
  return (
    count > 1 &&
    html`<form class="filter" hidden><label><span class="hidden">Filter the rules by name, path, key or client</span><input type="search" placeholder="Filter by rule, path, key or client" autocomplete="off" spellcheck="false"></label><output></output></form>
`
  );
}

/** Returns the report of `weir replay` as one HTML file, which loads nothing. The same report has the same page. */
export function replayPage(report: ReplayReport): string {
  const { title } = headlineOf(report);
  return documentOf({
    title,
    command: "weir replay",
    top: topOf(report),
    sections: sectionsOf(report),
  });
}

function topOf(report: ReplayReport): Html {
  const { log, config, leftOut } = report;
  const { title, lead } = headlineOf(report);
  const time = log.from && log.to ? `, ${rangeText(log.from, log.to)} UTC` : "";
  return html`<div class="headline"><p class="hint">Replay of <b>${filesText(log.files)}</b> under <b>${shown(config)}</b>${time}</p>
<h1>${title}</h1>
${lead.map((text) => html`<p class="lead">${text}</p>`)}</div>
${verdictNotices(report)}${leftOutRules(leftOut)}${notes(withoutReasons(report.notes, leftOut))}`;
}

/** What a reader of a failed or interrupted replay must know first. */
function verdictNotices({ failed, isPartial }: ReplayReport): Html[] {
  const failures = failed.map(({ option, allowed, clients }) => {
    const kind = option === "--max-newly-denied" ? "newly denied" : "denied";
    return notice(
      "bad",
      html`<p><b>${formatCount(clients, "client")} ${kind}, but <code>${option}</code> allows ${formatCount(allowed)}.</b></p>`,
    );
  });
  if (!isPartial) return failures;
  const text =
    "The replay was interrupted: this report is about the part of the log that was read.";
  return [notice("bad", html`<p><b>${text}</b></p>`), ...failures];
}

function sectionsOf(report: ReplayReport): Section[] {
  const { comparison, total, timeline, rules, cost } = report;
  const stated = statedFacts(report);
  const sections: Section[] = [];
  const add = (id: string, name: string, heading: string, content: Html) =>
    sections.push({ id, name, heading, content });
  if (comparison) {
    const heading = `Compared with ${shown(comparison.against)}`;
    add("comparison", "Comparison", heading, comparisonSection(comparison, report));
  }
  const names = { context: "of all rules", denied: "Denied", tone: "limited" } as const;
  add(
    "total",
    "Total",
    "All requests",
    html`${tiles(totalTiles(report))}${timelineCharts(timeline, names)}`,
  );
  if (rules.length > 0) add("rules", "Rules", "Rules", rulesSection(rules, stated));
  if (total.mostDenied.length > 0) {
    const content = deniedClients("The clients most denied, by address", total.mostDenied, stated);
    add("clients", "Clients", "Addresses most denied", html`<div class="card">${content}</div>\n`);
  }
  if (cost) add("cost", "Cost", "Cost of the store", costCard(cost));
  add(
    "log",
    "Log",
    "How this was made",
    logCard(report.log, [
      ["Configuration", shown(report.config)],
      ["Decided", decidedText(report)],
    ]),
  );
  return sections;
}

function decidedText({ isolates }: ReplayReport): string {
  if (isolates === undefined) return "exactly, by one store";
  return `as ${formatCount(isolates, "isolate")} with leases and caches`;
}

function totalTiles(report: ReplayReport): Tile[] {
  const { total, cost } = report;
  const stated = statedFacts(report);
  const { requests, unmatched, denied, deniedSucceeded, clients, clientsDenied } = total;
  const { isEstimate, isDeniedEstimate } = total;
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
      isEstimate: isDeniedEstimate,
      note: stated.addresses
        ? `${formatPercent(clientsDenied, clients)} of ${estimateText(clients, isEstimate)} addresses`
        : "the log states no addresses",
    },
  ];
  if (cost) {
    const { dollars, dollarsPer30Days } = cost;
    all.push({
      label: dollarsPer30Days === undefined ? "Store cost" : "Store cost of 30 days",
      value: formatDollars(dollarsPer30Days ?? dollars),
      note: `${formatCount(cost.count)} ${cost.unit} in the log`,
    });
  }
  return all;
}
