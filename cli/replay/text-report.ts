import {
  formatCount,
  formatCountIfKnown,
  formatDuration,
  formatTime,
} from "../../src/admin/format.ts";
import {
  addedUp,
  barChart,
  type Cell,
  fitted,
  padded,
  printable,
  styled,
  table,
  valuesPerBar,
  WIDTH,
  widthOf,
  wrapped,
} from "../print/text.ts";
import type { Comparison, ReplayReport, RuleReport, Timeline, WorstWindow } from "./report.ts";
import {
  type ClientTable,
  COMPARED_RULE,
  comparedClients,
  comparedRuleCells,
  costOf,
  deniedClients,
  deniedNumbers,
  deniedOf,
  differenceOf,
  failureOf,
  logOf,
  noneOf,
  notesOf,
  summaryOf,
} from "./summary.ts";

const MAX_CLIENT = 45;

/** Returns a table of clients with their user agents and paths; an empty text without clients. */
function clientsTable({ title, headings, rows, more }: ClientTable): string {
  if (rows.length === 0) return "";
  const names = ["Client", ...headings].map((heading) => heading.toUpperCase());
  const cells = rows.map(({ client, numbers }) => [fitted(client, MAX_CLIENT), ...numbers]);
  // The two last columns share the columns that the others leave.
  const taken = Math.max(...table(names, cells).split("\n").map(plainWidth));
  const width = Math.max(10, Math.floor((WIDTH - taken - 4) / 2));
  const described = rows.map(({ userAgent, path }, at) => [
    ...(cells[at] ?? []),
    ...[userAgent, path].map((text) => fitted(text, width)),
  ]);
  return [
    styled("bold", title),
    table([...names, "USER AGENT", "PATH"], described),
    ...(more > 0 ? [styled("dim", `and ${more} more with --json`)] : []),
  ].join("\n");
}

/** The width of a line without the codes of its colours. */
function plainWidth(line: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the codes of colours begin with one
  return widthOf(line.replace(/\u001b\[\d{1,3}m/g, ""));
}

/** Returns the sections that compare two configurations: rules, and clients that are treated differently. */
function comparisonSections(comparison: Comparison): string[] {
  const { against, costBefore } = comparison;
  return [
    rulesTable(comparison),
    ...comparedClients(comparison).map(clientsTable),
    costBefore ? `With ${printable(against)}: ${costOf(costBefore)}` : "",
  ];
}

function rulesTable({ against, rules }: Comparison): string {
  const rows = rules.map((each): Cell[] => {
    const { rule, change } = each;
    const marked = change === "same" ? change : ({ text: change, style: "yellow" } as const);
    return [rule, marked, ...comparedRuleCells(each)];
  });
  return [
    styled("bold", `Rules, compared with ${printable(against)}`),
    table(
      COMPARED_RULE.map((heading) => heading.toUpperCase()),
      rows,
    ),
  ].join("\n");
}

/** Beside a chart are its title and its highest value. */
const CHART_WIDTH = WIDTH - 40;
/** How many windows and clients of a rule are listed. `--json` has more. */
const LISTED = 5;
const INDENT = "  ";

/** Returns the section of a rule: its counts, a chart, its worst windows and its clients. */
function ruleSection(rule: RuleReport, hasClients: boolean): string {
  const { name, mode, limits, key, match } = rule;
  const title = `${name} (${mode}): ${limits}, counted by ${key}, for ${match}`;
  const [first = "", ...rest] = wrapped(title, WIDTH);
  const details = [
    ...wrapped(countsOf(rule), WIDTH - 2),
    ...(rule.requests > 0 ? chartOf(rule.timeline) : []),
    ...(rule.denied > 0 ? windowsOf(rule.worstWindows) : []),
    ...(rule.denied > 0 && hasClients ? clientsOf(rule) : []),
  ];
  return [styled("bold", first), ...[...rest, ...details].map((line) => INDENT + line)].join("\n");
}

function countsOf(rule: RuleReport): string {
  if (rule.requests === 0) return "No request of the log matches this rule.";
  const verb =
    rule.mode === "enforce" ? "Over the limit" : `Over the limit (${rule.mode}: denies nothing)`;
  const succeeded =
    rule.denied > 0 ? `. Had succeeded: ${formatCountIfKnown(rule.deniedSucceeded)}` : "";
  return `${verb}: ${rule.denied === 0 ? noneOf(rule) : deniedOf(rule)}${succeeded}.`;
}

function chartOf({ start, stepSeconds, allowed, denied }: Timeline): string[] {
  if (start === undefined) return [];
  const requests = allowed.map((value, step) => value + (denied[step] ?? 0));
  const perBar = valuesPerBar(requests.length, CHART_WIDTH);
  const barMs = perBar * stepSeconds * 1000;
  const bars = Math.ceil(requests.length / perBar);
  const end = Date.parse(start) + bars * barMs;
  const line = (title: string, values: readonly number[]) => {
    const highest = Math.max(...addedUp(values, CHART_WIDTH), 0);
    return `${title}  ${padded(barChart(values, CHART_WIDTH), bars)}  up to ${formatCount(highest)} in ${formatDuration(barMs)}`;
  };
  const hasDenied = denied.some((value) => value > 0);
  const [from, to] = [formatTime(Date.parse(start)), formatTime(end)];
  const axis =
    bars > from.length + to.length + 2 ? padded(from, bars - to.length) + to : `${from} to ${to}`;
  return [
    line("requests", requests),
    ...(hasDenied ? [line("denied  ", denied)] : []),
    styled("dim", `          ${axis}`),
  ];
}

function windowsOf(windows: readonly WorstWindow[]): string[] {
  const rows = windows
    .slice(0, LISTED)
    .map(({ policy, start, end, requests, denied }) => [
      formatTime(Date.parse(start)),
      formatDuration(Date.parse(end) - Date.parse(start)),
      fitted(policy, 40),
      requests ?? "",
      denied,
    ]);
  return indented(table(["WORST WINDOWS", "LENGTH", "POLICY", "REQUESTS", "DENIED"], rows));
}

function clientsOf({ mostDenied }: RuleReport): string[] {
  const rows = mostDenied
    .slice(0, LISTED)
    .map((client) => [fitted(client.client, 60), ...deniedNumbers(client)]);
  return indented(table(["CLIENTS DENIED MOST", "REQUESTS", "DENIED", "HAD SUCCEEDED"], rows));
}

function indented(text: string): string[] {
  return text.split("\n");
}

/** Returns the report for a terminal, at most 120 columns wide. It ends without a line break. */
export function textReport(report: ReplayReport): string {
  const { total, rules, comparison } = report;
  const sections: string[] = [
    headline(report),
    notes(report),
    ...(comparison ? comparisonSections(comparison) : []),
    ...rules.map((rule) => ruleSection(rule, rules.length > 1)),
    clientsTable(deniedClients(total.mostDenied)),
    brokenLines(report),
    lines([...logOf(report), ...(report.cost ? [costOf(report.cost)] : [])]),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

function headline(report: ReplayReport): string {
  const { comparison, failed, total } = report;
  const [first = "", ...others] = summaryOf(report);
  const sentences = [...others, ...(comparison ? differenceOf(comparison) : [])];
  return [
    ...wrapped(first, WIDTH).map((line) =>
      styled(total.denied > 0 ? ["bold", "yellow"] : "bold", line),
    ),
    ...sentences.flatMap((sentence) => wrapped(sentence, WIDTH)),
    ...failed.map((bound) => styled("red", failureOf(bound))),
  ].join("\n");
}

function notes(report: ReplayReport): string {
  const indented = (text: string) =>
    wrapped(text, WIDTH - 2).map((line, at) => `${at === 0 ? "! " : "  "}${line}`);
  return notesOf(report)
    .flatMap(indented)
    .map((line) => styled("yellow", line))
    .join("\n");
}

function brokenLines({ log }: ReplayReport): string {
  if (log.brokenLines.length === 0) return "";
  const shown = log.brokenLines.flatMap(({ file, line, reason }) =>
    wrapped(`${file}:${line}: ${reason}`, WIDTH - 2).map((each) => `  ${each}`),
  );
  return [styled("bold", "Lines that could not be read"), ...shown].join("\n");
}

function lines(sentences: readonly string[]): string {
  return sentences.flatMap((sentence) => wrapped(sentence, WIDTH)).join("\n");
}
