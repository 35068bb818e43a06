import {
  formatCount,
  formatCountIfKnown,
  formatEstimate,
  formatPercent,
} from "../../src/admin/format.ts";
import { markdownCode, markdownText } from "../print/text.ts";
import type {
  ComparedClient,
  Comparison,
  DeniedClient,
  Frequent,
  ReplayReport,
  RuleReport,
} from "./report.ts";
import {
  costOf,
  differenceOf,
  failureOf,
  isDifferent,
  logOf,
  modesOf,
  notesOf,
  summaryOf,
} from "./summary.ts";

/** How many clients, and how many rules, a table lists. */
const LISTED_CLIENTS = 10;
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
  const numberText = (value: number | undefined) => (value === undefined ? "" : formatCount(value));
  return table(
    [
      ...["Rule", "Change", "Mode", "Over the limit before", "Over the limit"],
      ...["Denied before", "Denied"],
    ],
    different
      .slice(0, LISTED_RULES)
      .map((rule) => [
        markdownCode(rule.rule),
        rule.change,
        modesOf(rule),
        numberText(rule.overLimitBefore),
        numberText(rule.overLimit),
        numberText(rule.deniedBefore),
        numberText(rule.denied),
      ]),
    different.length - LISTED_RULES,
  );
}

/** Returns the table of the clients denied most. */
function deniedTable(clients: readonly DeniedClient[]): string {
  return titled(
    "Clients denied most",
    table(
      ["Client", "Requests", "Denied", "Had succeeded", "User agent", "Path"],
      clients
        .slice(0, LISTED_CLIENTS)
        .map((client) => [
          markdownCode(client.client),
          formatCount(client.requests),
          formatCount(client.denied),
          formatCountIfKnown(client.deniedSucceeded),
          ...textsOf(client),
        ]),
      clients.length - LISTED_CLIENTS,
    ),
  );
}

/** Returns a table of clients whose requests two configurations decide differently. */
function comparedTable(title: string, clients: readonly ComparedClient[]): string {
  return titled(
    title,
    table(
      ["Client", "Requests", "Denied before", "Denied", "Had succeeded", "User agent", "Path"],
      clients
        .slice(0, LISTED_CLIENTS)
        .map((client) => [
          markdownCode(client.client),
          formatCount(client.requests),
          formatCount(client.deniedBefore),
          formatCount(client.denied),
          formatCountIfKnown(client.newlyDeniedSucceeded),
          ...textsOf(client),
        ]),
      clients.length - LISTED_CLIENTS,
    ),
  );
}

function textsOf({ userAgents, paths }: Record<"userAgents" | "paths", readonly Frequent[]>) {
  return [markdownCode(userAgents[0]?.text ?? ""), markdownCode(paths[0]?.text ?? "")];
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
          comparedTable("Clients newly denied most", comparison.mostNewlyDenied),
          comparedTable("Clients newly allowed most", comparison.mostNewlyAllowed),
        ]
      : []),
    sentences(summaryOf(report)),
    rulesTable(report.rules),
    deniedTable(total.mostDenied),
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
