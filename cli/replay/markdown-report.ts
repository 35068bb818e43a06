import {
  formatCount,
  formatCountIfKnown,
  formatEstimate,
  formatPercent,
} from "../../src/admin/format.ts";
import { markdownCode, markdownText } from "../print/text.ts";
import type { Comparison, ReplayReport, RuleReport } from "./report.ts";
import {
  type ClientTable,
  COMPARED_RULE,
  comparedClients,
  comparedRuleCells,
  costOf,
  deniedClients,
  differenceOf,
  failureOf,
  isDifferent,
  logOf,
  notesOf,
  summaryOf,
} from "./summary.ts";

/** How many rules a table lists. */
const LISTED_RULES = 50;

/** Returns the table of all rules. */
function rulesTable(rules: readonly RuleReport[]): string {
  return table(
    [
      ...["Rule", "Mode", "Limit", "Requests", "Over the limit", "Had succeeded", "Clients"],
      "Clients over the limit",
    ],
    rules
      .slice(0, LISTED_RULES)
      .map((rule) => [
        markdownCode(rule.name),
        rule.mode,
        markdownText(rule.limits),
        formatCount(rule.requests),
        `${formatCount(rule.denied)} (${formatPercent(rule.deniedShare)})`,
        formatCountIfKnown(rule.deniedSucceeded),
        formatEstimate(rule.clients, rule.isEstimate),
        formatEstimate(rule.clientsDenied, rule.isDeniedEstimate),
      ]),
    rules.length - LISTED_RULES,
  );
}

/** Returns the table of the rules that were added, removed or changed, or whose verdicts differ. */
function comparedRules({ rules }: Comparison): string {
  const different = rules.filter(isDifferent);
  const rows = different
    .slice(0, LISTED_RULES)
    .map((each) => [
      markdownCode(each.rule),
      each.change,
      ...comparedRuleCells(each).map(cellText),
    ]);
  return table(COMPARED_RULE, rows, different.length - LISTED_RULES);
}

function clientsTable({ title, headings, rows, more }: ClientTable): string {
  const lines = rows.map(({ client, numbers, userAgent, path }) => [
    markdownCode(client),
    ...numbers.map(cellText),
    ...[userAgent, path].map((text) => markdownCode(text)),
  ]);
  return titled(title, table(["Client", ...headings, "User agent", "Path"], lines, more));
}

function cellText(cell: number | string): string {
  return typeof cell === "number" ? formatCount(cell) : cell;
}

function titled(title: string, content: string): string {
  return content === "" ? "" : `### ${title}\n\n${content}`;
}

/** @param left how many rows are not listed, if any */
function table(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  left: number,
): string {
  if (rows.length === 0) return "";
  const isNumber = headings.map((_, column) =>
    rows.every((row) => /^(?:[\d ]*(?: \(.*\))?|unknown)$/.test(row[column] ?? "")),
  );
  const lines = [headings, isNumber.map((each) => (each ? "---:" : "---")), ...rows].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
  return [...lines, ...(left > 0 ? ["", `and ${formatCount(left)} more`] : [])].join("\n");
}

/** The maximum length in bytes. GitHub allows 65,536 characters in a comment. */
const MAX_BYTES = 60 * 1024;
const CUT = "\n\nThe rest is left out, because it is too long. `--json` has everything.\n";

/** Returns the report as a short text in GitHub's Markdown, for a comment on a pull request. */
export function markdownReport(report: ReplayReport): string {
  const { comparison, total, failed, cost } = report;
  const sections = [
    "## Replay of an access log",
    failed.map((bound) => `**${markdownText(failureOf(bound))}**`).join("\n\n"),
    ...(comparison
      ? [
          sentences(differenceOf(comparison)),
          comparedRules(comparison),
          ...comparedClients(comparison).map(clientsTable),
        ]
      : []),
    sentences(summaryOf(report)),
    rulesTable(report.rules),
    clientsTable(deniedClients(total.mostDenied)),
    notes(report),
    sentences([...logOf(report), ...(cost ? [costOf(cost)] : [])]),
  ];
  return bounded(`${sections.filter((section) => section !== "").join("\n\n")}\n`);
}

function sentences(texts: readonly string[]): string {
  return texts.map(markdownText).join(" ");
}

function notes(report: ReplayReport): string {
  return notesOf(report)
    .map((text) => `- ${markdownText(text)}`)
    .join("\n");
}

/** Cuts off lines at the end of a text that is too long. */
function bounded(markdown: string): string {
  if (Buffer.byteLength(markdown) <= MAX_BYTES) return markdown;
  const start = Buffer.from(markdown)
    .subarray(0, MAX_BYTES - CUT.length)
    .toString();
  return start.slice(0, start.lastIndexOf("\n")) + CUT;
}
