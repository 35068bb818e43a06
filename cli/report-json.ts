import type { Finding } from "./finding.ts";
import { withoutSecrets } from "./redaction.ts";
import type { FiledRule } from "./warnings/rule-places.ts";

/**
 * Returns the report as JSON.
 *
 * @param file the path of the configuration, as given on the command line
 * @param rules the rules of a valid configuration; undefined if the configuration has faults
 */
export function jsonReport(
  file: string,
  rules: readonly FiledRule[] | undefined,
  findings: readonly Finding[],
): string {
  const report = {
    ok: findings.length === 0,
    config: file,
    ...(rules && { rules: rules.map(withoutSecrets) }),
    faults: withoutSeverity(findings, "fault"),
    warnings: withoutSeverity(findings, "warning"),
  };
  return JSON.stringify(report, jsonReplacer, 2);
}

function withoutSeverity(findings: readonly Finding[], wanted: Finding["severity"]): object[] {
  return findings
    .filter(({ severity }) => severity === wanted)
    .map(({ severity: _, ...finding }) => finding);
}

/** A replacer for JSON. Without it, a Map would become an empty object. */
function jsonReplacer(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  return value;
}
