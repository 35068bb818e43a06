import type { Severity } from "./code.ts";
import { type Finding, plural } from "./finding.ts";

/** What the doctor has examined, and with which settings. */
export interface Subject {
  /** The noun for the last line: "The database is ok." */
  readonly noun: string;
  /** A sentence for the first line of the report. */
  readonly headline: string;
  /** The same for programs. Contains no secret. */
  readonly fields: Readonly<Record<string, string | undefined>>;
}

/** Returns the report as a text for people. */
export function textReport({ headline, noun }: Subject, findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ code }) => code.length));
  const lines = findings.flatMap(({ code, severity, value, advice }) => [
    `  ${severity.padEnd(7)}  ${code.padEnd(width)}  ${value}`,
    ...(advice ? [`           → ${advice}.`] : []),
  ]);
  return [headline, "", ...lines, "", summaryOf(noun, findings)].join("\n");
}

/** Returns the report as JSON. */
export function jsonReport({ fields }: Subject, findings: readonly Finding[]): string {
  return JSON.stringify({ ok: isGood(findings), ...fields, findings }, null, 2);
}

/** Whether there is neither a fault nor a warning. */
export function isGood(findings: readonly Finding[]): boolean {
  return count(findings, "fault") + count(findings, "warning") === 0;
}

/** 1 if there are faults, or with `strict` if there are warnings; otherwise 0. */
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
