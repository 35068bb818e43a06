import type { Command } from "commander";
import type { RunOptions } from "./check/run-check.ts";
import { withoutNodeEnv } from "./process.ts";

/**
 * Adds the command `check`, which prints all faults and warnings of a configuration and its deployments. Without
 * faults, the command also prints the rules as Weir reads them, because a valid rule may still differ from its
 * author's intention. With a fault, the exit code is 1. Warnings change the exit code only with `--strict`, so that
 * they do not stop a deploy. In `wrangler dev`, `devOutcome` chooses the exit code.
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
    .action(async (options: RunOptions) => {
      // Each command loads its code only when it runs, so that the other commands start sooner.
      const { runCheck } = await withoutNodeEnv(() => import("./check/run-check.ts"));
      process.exitCode = await runCheck(options);
    });
}
