import {
  formatCount,
  formatCountIfKnown,
  formatDuration,
  formatTime,
} from "../../src/admin/format.ts";
import {
  addedUp,
  barChart,
  padded,
  printable,
  styled,
  valuesPerBar,
  WIDTH,
  wrapped,
} from "../print/text.ts";
import type { ReplayReport, RuleReport, Timeline, WorstWindow } from "./report.ts";
import { brokenLinesText, joined, textNotes, textTable } from "./report-parts.ts";
import {
  comparedClients,
  comparedRules,
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

/** Leaves space for the title of a chart and its highest value. */
const CHART_WIDTH = WIDTH - 40;
/** How many windows and clients of a rule the report lists. `--json` has more. */
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
    ...(rule.denied > 0 ? windowsOf(rule.worstWindows).split("\n") : []),
    ...(rule.denied > 0 && hasClients ? clientsOf(rule).split("\n") : []),
  ];
  return [styled("bold", first), ...[...rest, ...details].map((line) => INDENT + line)].join("\n");
}

function countsOf(rule: RuleReport): string {
  if (rule.requests === 0) return "No request of the log matches this rule.";
  const verb =
    rule.mode === "enforce" ? "Over the limit" : `Over the limit (${rule.mode}: denies nothing)`;
  const succeeded =
    rule.denied > 0 ? `. Had succeeded: ${formatCountIfKnown(rule.deniedSucceeded)}` : "";
  const open =
    rule.mostOpen === undefined ? "" : ` Most open requests of a client: ${rule.mostOpen}.`;
  return `${verb}: ${rule.denied === 0 ? noneOf(rule) : deniedOf(rule)}${succeeded}.${open}`;
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

function windowsOf(windows: readonly WorstWindow[]): string {
  return textTable({
    headings: ["Worst windows", "Length", "Policy", "Requests", "Denied"],
    rows: windows
      .slice(0, LISTED)
      .map(({ policy, start, end, requests, denied }) => [
        formatTime(Date.parse(start)),
        formatDuration(Date.parse(end) - Date.parse(start)),
        { code: policy, width: 40 },
        requests ?? "",
        denied,
      ]),
  });
}

function clientsOf({ mostDenied }: RuleReport): string {
  return textTable({
    headings: ["Clients denied most", "Requests", "Denied", "Had succeeded"],
    rows: mostDenied
      .slice(0, LISTED)
      .map((client) => [{ code: client.client, width: 60 }, ...deniedNumbers(client)]),
  });
}

/** Returns the report for a terminal, at most 120 columns wide. It ends without a line break. */
export function textReport(report: ReplayReport): string {
  const { total, rules, comparison } = report;
  const costBefore = comparison?.costBefore;
  const sections: string[] = [
    headline(report),
    textNotes(notesOf(report)),
    ...(comparison
      ? [
          ...[comparedRules(comparison), ...comparedClients(comparison)].map(textTable),
          costBefore ? `With ${printable(comparison.against)}: ${costOf(costBefore)}` : "",
        ]
      : []),
    ...rules.map((rule) => ruleSection(rule, rules.length > 1)),
    textTable(deniedClients(total.mostDenied)),
    brokenLinesText(report.log),
    lines([...logOf(report), ...(report.cost ? [costOf(report.cost)] : [])]),
  ];
  return joined(sections);
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

function lines(sentences: readonly string[]): string {
  return sentences.flatMap((sentence) => wrapped(sentence, WIDTH)).join("\n");
}
