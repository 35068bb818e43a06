import { type Command, InvalidArgumentError } from "commander";
import { withLogOptions } from "./logs/open-logs.ts";
import { withoutNodeEnv } from "./process.ts";
import type { ReplayCommandOptions } from "./replay/run-replay.ts";

const HELP = `
Examples:
  replay access.log
  replay access.log access.log.*.gz --from 2026-11-22
  replay access.log.gz --against main.config.ts --max-newly-denied 0

Exit codes:
  0    done
  1    more clients are denied than --max-denied or --max-newly-denied allows, or a wrong option
  2    not replayed: a faulty configuration, a log that cannot be read, or a log without requests
  130  ended by Ctrl-C; 129 by SIGHUP, 143 by SIGTERM. The report, if any request was read, is about
       the lines before that

docs/replay.md explains the report.`;

/**
 * Adds the command `replay`, which decides the requests of access logs by the rules, at the times in the logs, and
 * reports which requests and clients would have been denied.
 */
export function addReplayCommand(program: Command): void {
  withLogOptions(program.command("replay"))
    .description(
      "Replays access logs. Shows which requests and clients the rules would have denied.",
    )
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--against <file>", "compare with this configuration, such as the deployed one")
    .option(
      "--missing-as-absent",
      "take facts that the log does not state as absent, instead of leaving rules out",
    )
    .option("--max-denied <n>", "exit with 1 if more clients are denied", clientCount)
    .option(
      "--max-newly-denied <n>",
      "exit with 1 if more clients are denied that --against never denies",
      clientCount,
    )
    .option("--json", "print one JSON document")
    .option("--quiet", "show no progress")
    .addHelpText("after", HELP)
    .action(async (files: string[], options: ReplayCommandOptions) => {
      // Each command loads its code only when it runs, so that the other commands start sooner.
      const { runReplay } = await withoutNodeEnv(() => import("./replay/run-replay.ts"));
      process.exitCode = await runReplay(files, options);
    });
}

function clientCount(text: string): number {
  const count = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError("Allowed: a whole number from 0.");
}
