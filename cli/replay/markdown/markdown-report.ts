import { markdownText } from "../../print/markdown-text.ts";
import type { ReplayReport } from "../report.ts";
import { costOf, differenceOf, failureOf, logOf, notesOf, summaryOf } from "../summary.ts";
import { comparedRules, comparedTable, deniedTable, rulesTable } from "./tables.ts";

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
