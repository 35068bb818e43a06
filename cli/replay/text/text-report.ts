import { styled } from "../../admin/text.ts";
import { printable } from "../../doctor/finding.ts";
import { WIDTH, wrapped } from "../../print/fit-text.ts";
import type { ReplayReport } from "../report.ts";
import { costOf, differenceOf, failureOf, logOf, notesOf, summaryOf } from "../summary.ts";
import { deniedClients } from "./clients.ts";
import { comparisonSections } from "./comparison.ts";
import { ruleSection } from "./rule.ts";

/** Returns the report for a terminal, at most 120 columns wide. It ends without a line break. */
export function textReport(report: ReplayReport): string {
  const { total, rules, comparison } = report;
  const sections: string[] = [
    headline(report),
    notes(report),
    ...(comparison ? comparisonSections(comparison) : []),
    ...rules.map((rule) => ruleSection(rule, rules.length > 1)),
    total.mostDenied.length > 0 ? deniedClients("Clients denied most", total.mostDenied) : "",
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
  const shown = log.brokenLines.flatMap(({ file, line, reason, text }) => [
    ...wrapped(`${file}:${line}: ${reason}`, WIDTH - 2).map((each) => `  ${each}`),
    ...wrapped(printable(text), WIDTH - 4)
      .slice(0, 1)
      .map((each) => styled("dim", `    ${each}`)),
  ]);
  return [styled("bold", "Lines that could not be read"), ...shown].join("\n");
}

function lines(sentences: readonly string[]): string {
  return sentences.flatMap((sentence) => wrapped(sentence, WIDTH)).join("\n");
}
