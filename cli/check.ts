import type { Command } from "commander";
import { type CheckOptions, checkConfig } from "./check-config.ts";
import { jsonError, textError } from "./report-error.ts";
import { jsonReport } from "./report-json.ts";
import { textReport } from "./report-text.ts";

interface Options extends CheckOptions {
  readonly json?: true;
  readonly strict?: true;
}

/**
 * Adds the command `check`, which checks a configuration and its deployments. It prints all faults
 * and warnings. If there are no faults, it prints the rules as Weir reads them, because a valid rule
 * may still differ from the intention of its author. It exits with 1 if there is a fault. Warnings
 * change the exit code only with `--strict`, so that they do not stop a deploy. In `wrangler dev`,
 * `devOutcome` chooses the exit code.
 */
export function addCheckCommand(program: Command): void {
  program
    .command("check")
    .description(
      "Checks the rules and wrangler's configuration. Prints faults, warnings and the rules.",
    )
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option(
      "--wrangler <file>",
      "wrangler's configuration (default: the one beside the rules or in the current folder)",
    )
    .option("--env <name>", 'the only environment to check; "" for the top level')
    .option("--json", "print JSON")
    .option("--strict", "exit with 1 if there are warnings")
    .action(async ({ json, strict, ...options }: Options) => {
      const { config: file } = options;
      const { error, rules, findings, isFatal, note, dev } = await checkConfig(
        { ...options, format: json ? "json" : "text" },
        process.env,
      );
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
      process.exitCode = hasFailed ? (dev?.exitCode ?? 1) : 0;
    });
}
