import { markdownText } from "../print/text.ts";
import type { ReplayReport } from "./report.ts";
import { joined, markdownNotes, markdownTable } from "./report-parts.ts";
import {
  comparedClients,
  comparedRules,
  costOf,
  deniedClients,
  differenceOf,
  failureOf,
  logOf,
  notesOf,
  replayedRules,
  summaryOf,
} from "./summary.ts";

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
          ...[comparedRules(comparison), ...comparedClients(comparison)].map(markdownTable),
        ]
      : []),
    sentences(summaryOf(report)),
    markdownTable(replayedRules(report.rules)),
    markdownTable(deniedClients(total.mostDenied)),
    markdownNotes(notesOf(report)),
    sentences([...logOf(report), ...(cost ? [costOf(cost)] : [])]),
  ];
  return bounded(`${joined(sections)}\n`);
}

function sentences(texts: readonly string[]): string {
  return texts.map(markdownText).join(" ");
}

/** Cuts off lines at the end of a text that is too long. */
function bounded(markdown: string): string {
  if (Buffer.byteLength(markdown) <= MAX_BYTES) return markdown;
  const start = Buffer.from(markdown)
    .subarray(0, MAX_BYTES - CUT.length)
    .toString();
  return start.slice(0, start.lastIndexOf("\n")) + CUT;
}
