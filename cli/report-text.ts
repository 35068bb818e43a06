import type { Finding } from "./finding.ts";
import { ruleTable } from "./rule-table.ts";
import type { FiledRule } from "./warnings/rule-places.ts";

/**
 * The URL of the page that explains the codes. The path of a file in the package would depend on the
 * package manager.
 */
const PAGE = "https://github.com/edge-weir/edge-weir/blob/main/docs/check.md";

/**
 * Returns the report for a terminal. Only a report without findings contains the words "is ok".
 *
 * @param file the path of the configuration, as given on the command line
 * @param rules the rules of a valid configuration; undefined if the configuration has faults
 * @param note a remark for the end of the report
 */
export function textReport(
  file: string,
  rules: readonly FiledRule[] | undefined,
  findings: readonly Finding[],
  note?: string,
): string {
  const faults = findings.filter(({ severity }) => severity === "fault");
  const table = rules && rules.length > 0 && faults.length === 0 ? [ruleTable(rules)] : [];
  const headline = headlineOf(file, rules, faults.length, findings.length - faults.length);
  const more = findings.some(({ code }) => code !== "config") ? [`Each code: ${PAGE}`] : [];
  return [headline, ...table, ...sectionsOf(findings), ...more, ...(note ? [note] : [])].join(
    "\n\n",
  );
}

function headlineOf(
  file: string,
  rules: readonly FiledRule[] | undefined,
  faults: number,
  warnings: number,
): string {
  const counts = [
    faults > 0 && plural(faults, "fault"),
    warnings > 0 && plural(warnings, "warning"),
  ].filter((count) => count !== false);
  if (counts.length > 0) return `${file} has ${counts.join(" and ")}:`;
  return `${file} is ok: ${plural(rules?.length ?? 0, "rule")}.`;
}

/** Groups the findings by file and environment, with the faults of each group first. */
function sectionsOf(findings: readonly Finding[]): string[] {
  const groups = new Map<string, Finding[]>();
  for (const finding of findings) {
    const { file, environment } = finding;
    const heading = environment === undefined ? file : `${file}, environment ${environment}`;
    groups.set(heading, [...(groups.get(heading) ?? []), finding]);
  }
  return [...groups].map(([heading, group]) => {
    const faults = group.filter(({ severity }) => severity === "fault");
    const warnings = group.filter(({ severity }) => severity === "warning");
    return [heading, ...[...faults, ...warnings].map(entryOf)].join("\n");
  });
}

function entryOf({ code, severity, path, message, cure }: Finding): string {
  if (code === "config") return `  ${severity}: ${path || "the configuration"}: ${message}`;
  const place = path && ` at ${path}`;
  return [
    `  ${severity} ${code}${place}`,
    `    ${message}.`,
    ...(cure === undefined ? [] : [`    Cure: ${cure}.`]),
  ].join("\n");
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
