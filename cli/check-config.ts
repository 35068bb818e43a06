import type { Config } from "../src/config/schema.ts";
import { checkDeployments } from "./deployment/check-deployment.ts";
import type { Deployment } from "./deployment/deployment.ts";
import { devModeWarnings } from "./deployment/dev-mode.ts";
import {
  areFaultsFatal,
  isSelected,
  type Selection,
  selectEnvironments,
  unknownEnvironment,
} from "./deployment/environment.ts";
import { loadDeployments } from "./deployment/load-deployments.ts";
import { type WranglerOptions, wranglerOptions } from "./deployment/wrangler-process.ts";
import type { Finding, LocalFinding } from "./finding.ts";
import { loadConfig } from "./load-config.ts";
import { configFindings } from "./warnings/all.ts";
import { type FiledRule, filedRules } from "./warnings/rule-places.ts";
import { type DevOutcome, devOutcome } from "./wrangler-dev.ts";

/** The files and the environment that the check reads. */
export interface CheckOptions {
  /** The path of Weir's configuration. */
  readonly config: string;
  /** The path of wrangler's configuration; by default, the file that belongs to `config`. */
  readonly wrangler?: string | undefined;
  /** The only environment to check; `""` for the top level. */
  readonly env?: string | undefined;
  /** The format of the report if the configuration blocks this process. @default "text" */
  readonly format?: "json" | "text";
}

const NOT_STOPPED =
  "This command cannot find out which environment wrangler deploys, so a fault of one environment does not stop it. Set CLOUDFLARE_ENV instead of wrangler's option --env.";

const NO_RULES: LocalFinding = {
  code: "no-rules",
  severity: "warning",
  path: "rules",
  message: "There are no rules, so every request passes",
  cure: "Add a rule, as in docs/configuration.md",
};

/** The result of a check. */
export interface CheckResult {
  /** The reason why the configuration could not be loaded, and the remedy. */
  readonly error?: string;
  /** The rules of a valid configuration. */
  readonly rules?: readonly FiledRule[];
  readonly findings: readonly Finding[];
  /** Whether the faults must stop a deploy. */
  readonly isFatal: boolean;
  /** The reason why the faults do not stop a deploy, and the setting with which they stop it. */
  readonly note?: string;
  /**
   * The exit code and the notice if the check fails in `wrangler dev`; undefined if `wrangler dev` does
   * not run it.
   */
  readonly dev?: DevOutcome | undefined;
}

/**
 * Checks a configuration and its deployments.
 *
 * @param variables the environment variables, with which wrangler names its command
 * @param readWranglerOptions returns the options of the wrangler process that runs the check
 */
export async function checkConfig(
  { config: file, wrangler, env, format }: CheckOptions,
  variables: NodeJS.ProcessEnv,
  readWranglerOptions: () => WranglerOptions | undefined = wranglerOptions,
): Promise<CheckResult> {
  const loaded = await loadConfig(file, format);
  const dev = devOutcome(loaded, variables);
  switch (loaded.kind) {
    case "unreadable":
      return { error: loaded.error, findings: [], isFatal: true, dev };
    case "faulty": {
      const findings = loaded.faults.map(
        (fault): Finding => ({ code: "config", severity: "fault", file, ...fault }),
      );
      return { findings, isFatal: true, dev };
    }
    case "valid": {
      const { config } = loaded;
      if (config.rules.length === 0) {
        return { rules: [], findings: [{ ...NO_RULES, file }], isFatal: false, dev };
      }
      const started = variables.WRANGLER_COMMAND ? readWranglerOptions() : undefined;
      const selection = selectEnvironments(env, variables, started);
      const read = await loadDeployments(file, wrangler ?? started?.config);
      const deployments = "deployments" in read ? read.deployments : [];
      // Such an app calls rateLimit(config, { rule }) in its own modules.
      const routed = deployments.some(({ main }) => !/\bweir\s*\(/.test(main.text ?? ""));
      const own = configFindings(config, routed).map((finding): Finding => ({ file, ...finding }));
      const deployed =
        "fault" in read ? [read.fault] : findingsOf(config, deployments, selection, variables);
      const findings = [...own, ...deployed];
      const faults = findings.filter(({ severity }) => severity === "fault");
      const isFatal = areFaultsFatal(faults, selection, deployments);
      const note = faults.length > 0 && !isFatal && { note: NOT_STOPPED };
      return { rules: filedRules(config), findings, isFatal, dev, ...note };
    }
  }
}

function findingsOf(
  config: Config,
  deployments: readonly Deployment[],
  selection: Selection,
  variables: NodeJS.ProcessEnv,
): Finding[] {
  const selected = deployments.filter((each) => isSelected(selection, each));
  return [
    ...unknownEnvironment(selection, deployments),
    ...checkDeployments(config, deployments, (each) => isSelected(selection, each)),
    ...devModeWarnings(selected, variables),
  ];
}
