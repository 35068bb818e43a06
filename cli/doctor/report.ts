import type { Severity } from "./code.ts";
import { type Finding, plural, printable } from "./finding.ts";

/** The database or the Worker that the doctor examined, and the settings of the run. */
export interface Subject {
  /** The noun for the last line: "The database is ok." */
  readonly noun: string;
  /** A sentence for the first line of the report. */
  readonly headline: string;
  /** The values of the headline, for programs. They contain no secret. */
  readonly fields: Readonly<Record<string, string | undefined>>;
  /** The texts that the report must not contain. */
  readonly secrets: readonly string[];
}

/** Returns the report as a text for people. */
export function textReport(subject: Subject, unsafe: readonly Finding[]): string {
  const findings = safeFindings(subject, unsafe);
  const width = Math.max(...findings.map(({ code }) => code.length));
  const lines = findings.flatMap(({ code, severity, value, advice }) => [
    `  ${severity.padEnd(7)}  ${code.padEnd(width)}  ${value}`,
    ...(advice ? [`           → ${advice}.`] : []),
  ]);
  const headline = printable(subject.headline);
  return [headline, "", ...lines, "", summaryOf(subject.noun, findings)].join("\n");
}

/** Returns the report as JSON. */
export function jsonReport(subject: Subject, unsafe: readonly Finding[]): string {
  const findings = safeFindings(subject, unsafe);
  // The fields contain no text of a server.
  const fields = Object.entries(subject.fields).map(([name, value]) => [
    name,
    value && printable(value),
  ]);
  return JSON.stringify({ ok: isGood(findings), ...Object.fromEntries(fields), findings }, null, 2);
}

/**
 * Makes all texts of findings safe to print. Servers send parts of these texts, so this is done once
 * for all findings and does not depend on the check that created them.
 */
function safeFindings({ secrets }: Subject, findings: readonly Finding[]): Finding[] {
  return findings.map(({ value, measured, ...rest }) => ({
    ...rest,
    value: printable(value, secrets),
    ...(measured && {
      measured: Object.fromEntries(
        Object.entries(measured).map(([name, each]) => [
          name,
          typeof each === "string" ? printable(each, secrets) : each,
        ]),
      ),
    }),
  }));
}

/** Whether there is neither a fault nor a warning. */
export function isGood(findings: readonly Finding[]): boolean {
  return count(findings, "fault") + count(findings, "warning") === 0;
}

/** Returns the exit code: 1 for faults, and with `strict` also for warnings; otherwise 0. */
export function exitCodeOf(findings: readonly Finding[], strict: boolean): number {
  return count(findings, "fault") > 0 || (strict && !isGood(findings)) ? 1 : 0;
}

function summaryOf(noun: string, findings: readonly Finding[]): string {
  const [faults, warnings] = [count(findings, "fault"), count(findings, "warning")];
  const unknown = count(findings, "unknown");
  const rest = unknown > 0 ? ` ${plural(unknown, "value")} could not be read.` : "";
  if (faults + warnings === 0) return `${noun} is ok.${rest}`;
  return `${plural(faults, "fault")}, ${plural(warnings, "warning")}.${rest} docs/doctor.md explains each code.`;
}

function count(findings: readonly Finding[], wanted: Severity): number {
  return findings.filter(({ severity }) => severity === wanted).length;
}
