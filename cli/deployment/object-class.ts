import type { LocalFinding } from "../finding.ts";
import type { Deployment, ObjectBinding } from "./deployment.ts";
import { mayExport } from "./main-module.ts";
import { settingIn } from "./notation.ts";

/**
 * Findings about the class of a binding, if the class belongs to this Worker.
 *
 * @param exported the name under which edge-weir exports the class
 */
export function classFindings(
  { name, className, scriptName }: ObjectBinding,
  exported: "CounterObject" | "ControlObject",
  deployment: Deployment,
): LocalFinding[] {
  const { classes, main } = deployment;
  if (className === undefined) return [];
  if (scriptName !== undefined && scriptName !== deployment.name) return [];
  const storage = classes.get(className);
  const sqlite = settingIn(deployment.file, "new_sqlite_classes", [className]);
  const findings: (LocalFinding | false)[] = [
    storage === undefined && {
      code: "migration-missing",
      severity: "fault",
      path: "migrations",
      message: `No migration creates the class ${className} of ${name}`,
      cure: `Add a migration with a new tag and ${sqlite}`,
    },
    storage === "key-value" && {
      code: "migration-without-sqlite",
      severity: "fault",
      path: "migrations",
      message: `new_classes creates the class ${className} without SQLite, in which Weir stores ${exported === "CounterObject" ? "counters" : "statistics"}`,
      cure: `Write ${sqlite}. If the class is already deployed, add a new class instead, because Cloudflare cannot change its storage`,
    },
    !mayExport(main, className) && {
      code: "class-not-exported",
      severity: "fault",
      path: "main",
      message: `${main.path} does not export the class ${className} of ${name}`,
      cure: `Write export { ${exported}${className === exported ? "" : ` as ${className}`} } from "edge-weir" in ${main.path}`,
    },
  ];
  return findings.filter((finding) => finding !== false);
}
