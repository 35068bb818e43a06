import { formatCount } from "../../src/admin/format.ts";
import { checkDeployments } from "../deployment/check-deployment.ts";
import { loadDeployments } from "../deployment/deployment.ts";
import {
  areFaultsFatal,
  isSelected,
  selectEnvironments,
  unknownEnvironment,
} from "../deployment/environment.ts";
import { type CheckFinding, CODES_PAGE, found } from "../finding.ts";
import { type LoadedConfig, loadConfig } from "../load-config.ts";
import { jsonError, textError } from "../load-error.ts";
import { jsonText, printable, printableLines, tableWidth } from "../print/text.ts";
import { ruleTable, withoutSecrets } from "../rule-table.ts";
import { configFindings, type FiledRule, filedRules } from "../warnings/rules.ts";

/** The files and the environment that the check reads. */
export interface CheckOptions {
  /** The path of Weir's configuration. */
  readonly config: string;
  /** The path of wrangler's configuration; by default, the file that belongs to `config`. */
  readonly wrangler?: string | undefined;
  /** The only environment to check; `""` for the top level. */
  readonly env?: string | undefined;
}

const NOT_STOPPED =
  "This command cannot find out which environment wrangler deploys, so a fault of one environment does not stop it. Set CLOUDFLARE_ENV instead of wrangler's option --env.";

const NO_RULES = found(
  "no-rules",
  "rules",
  "There are no rules, so every request passes",
  "Add a rule, as in docs/configuration.md",
);

/** The result of a check. */
export interface CheckResult {
  /** The reason why the configuration could not be loaded, and the remedy. */
  readonly error?: string;
  /** The rules of a valid configuration. */
  readonly rules?: readonly FiledRule[];
  readonly findings: readonly CheckFinding[];
  /** Whether the faults must stop a deploy. */
  readonly isFatal: boolean;
  /** Why the faults do not stop a deploy, and the setting that makes them stop it. */
  readonly note?: string;
  /** The exit code and the notice of a failed check in `wrangler dev`; undefined outside of `wrangler dev`. */
  readonly dev?: DevOutcome | undefined;
}

/**
 * Checks a configuration and its deployments.
 *
 * @param variables the environment variables, with which wrangler names its command
 */
export async function checkConfig(
  { config: file, wrangler, env }: CheckOptions,
  variables: NodeJS.ProcessEnv,
): Promise<CheckResult> {
  const loaded = await loadConfig(file);
  const dev = devOutcome(loaded, variables);
  switch (loaded.kind) {
    case "unreadable":
      return { error: loaded.error, findings: [], isFatal: true, dev };
    case "faulty": {
      const findings = loaded.faults.map(
        ({ path, code: fault, message }): CheckFinding => ({
          code: "config",
          severity: "fault",
          file,
          path,
          fault,
          message,
        }),
      );
      return { findings, isFatal: true, dev };
    }
    case "valid": {
      const { config } = loaded;
      if (config.rules.length === 0) {
        return { rules: [], findings: [{ ...NO_RULES, file }], isFatal: false, dev };
      }
      const selection = selectEnvironments(env, variables);
      const read = await loadDeployments(file, wrangler);
      const deployments = "deployments" in read ? read.deployments : [];
      const own = configFindings(config).map((finding): CheckFinding => ({ file, ...finding }));
      const deployed =
        "fault" in read
          ? [read.fault]
          : [
              ...unknownEnvironment(selection, deployments),
              ...checkDeployments(config, deployments, (each) => isSelected(selection, each)),
            ];
      const findings = [...own, ...deployed];
      const faults = findings.filter(({ severity }) => severity === "fault");
      const isFatal = areFaultsFatal(faults, selection, deployments);
      const note = faults.length > 0 && !isFatal && { note: NOT_STOPPED };
      return { rules: filedRules(config), findings, isFatal, dev, ...note };
    }
  }
}

/**
 * Returns the report as JSON.
 *
 * @param file the path of the configuration, as given on the command line
 * @param rules the rules of a valid configuration; undefined if the configuration has faults
 */
export function jsonReport(
  file: string,
  rules: readonly FiledRule[] | undefined,
  findings: readonly CheckFinding[],
): string {
  const report = {
    ok: findings.length === 0,
    config: file,
    ...(rules && { rules: rules.map(withoutSecrets) }),
    faults: withoutSeverity(findings, "fault"),
    warnings: withoutSeverity(findings, "warning"),
  };
  return jsonText(report);
}

function withoutSeverity(
  findings: readonly CheckFinding[],
  wanted: CheckFinding["severity"],
): object[] {
  return findings
    .filter(({ severity }) => severity === wanted)
    .map(({ severity: _, ...finding }) => finding);
}

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
  findings: readonly CheckFinding[],
  note?: string,
): string {
  const hasFaults = findings.some(({ severity }) => severity === "fault");
  const table =
    rules && rules.length > 0 && !hasFaults ? [ruleTable(rules, tableWidth(process.env))] : [];
  const headline = printable(headlineOf(file, rules, findings));
  const sections = sectionsOf(findings).map(printableLines);
  const more = findings.some(({ code }) => code !== "config") ? [`Each code: ${CODES_PAGE}`] : [];
  return [headline, ...table, ...sections, ...more, ...(note ? [note] : [])].join("\n\n");
}

function headlineOf(
  file: string,
  rules: readonly FiledRule[] | undefined,
  findings: readonly CheckFinding[],
): string {
  const counts = (["fault", "warning"] as const)
    .map((each) => [findings.filter(({ severity }) => severity === each).length, each] as const)
    .filter(([count]) => count > 0)
    .map(([count, each]) => formatCount(count, each));
  if (counts.length === 0) return `${file} is ok: ${formatCount(rules?.length ?? 0, "rule")}.`;
  const files = [...new Set(findings.map((each) => each.file))];
  return `${counts.join(" and ")} in ${files.join(" and ")}:`;
}

/** Groups the findings by file and environment, with the faults of each group first. */
function sectionsOf(findings: readonly CheckFinding[]): string[] {
  const groups = new Map<string, CheckFinding[]>();
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

function entryOf({ code, severity, path, message, cure }: CheckFinding): string {
  if (code === "config") return `  ${severity}: ${path || "the configuration"}: ${message}`;
  const place = path && ` at ${path}`;
  return [
    `  ${severity} ${code}${place}`,
    `    ${message}.`,
    ...(cure === undefined ? [] : [`    Cure: ${cure}.`]),
  ].join("\n");
}

/** The options of the command `check`. */
export interface RunOptions extends CheckOptions {
  readonly json?: true;
  readonly strict?: true;
}

/**
 * Checks a configuration and prints the result.
 *
 * @returns the exit code
 */
export async function runCheck({ json, strict, ...options }: RunOptions): Promise<number> {
  const { config: file } = options;
  const { error, rules, findings, isFatal, note, dev } = await checkConfig(options, process.env);
  if (error !== undefined) {
    if (json) console.log(jsonError(file, error));
    else console.error(textError(file, error));
  } else if (json) {
    console.log(jsonReport(file, rules, findings));
  } else {
    const hasFaults = findings.some(({ severity }) => severity === "fault");
    console[hasFaults ? "error" : "log"](textReport(file, rules, findings, note));
  }
  const hasFailed = isFatal || (strict && findings.length > 0);
  if (hasFailed && dev && !json) console.error(dev.notice);
  return hasFailed ? (dev?.exitCode ?? 1) : 0;
}

/** The result of a check that failed in `wrangler dev`. */
interface DevOutcome {
  /** A sentence about the effect of the problem on `wrangler dev`. */
  readonly notice: string;
  readonly exitCode: 0 | 1;
}

/**
 * Decides how a failed `check` ends, if `wrangler dev` runs it as the command of `[build]`.
 *
 * After the exit code 1, wrangler prints more than 120 lines about the process, and delays all requests. So the
 * command exits with 0 if a later step reports the problem: the Worker answers with 503 and the faults, and esbuild
 * reports a wrong syntax or import in a few lines. An error that the file itself throws would keep the Worker from
 * starting and end `wrangler dev`, so the command exits with 1.
 *
 * @param variables the environment variables, with which wrangler names its command
 * @returns undefined if `wrangler dev` does not run the command
 */
function devOutcome(
  loaded: LoadedConfig,
  { WRANGLER_COMMAND, NODE_ENV = "" }: NodeJS.ProcessEnv,
): DevOutcome | undefined {
  if (WRANGLER_COMMAND !== "dev") return undefined;
  if (loaded.kind === "valid") {
    return { notice: "These findings stop a deploy, but not wrangler dev.", exitCode: 0 };
  }
  // With a NODE_ENV other than these two, `defineConfig` throws in wrangler's bundle.
  const isDevelopment = NODE_ENV === "" || NODE_ENV === "development";
  if (loaded.kind === "faulty" && isDevelopment) {
    return {
      notice: "Until the file is correct, the Worker answers requests with 503 and these faults.",
      exitCode: 0,
    };
  }
  const isReportedByBundler = loaded.kind === "unreadable" && !loaded.throws;
  return {
    notice: "Until the file is correct, wrangler delays all requests.",
    exitCode: isReportedByBundler ? 0 : 1,
  };
}
