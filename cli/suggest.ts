import type { Command } from "commander";
import { withLogOptions, withRemoved } from "./logs/open-logs.ts";
import { withoutNodeEnv } from "./process.ts";
import type { SuggestOptions } from "./suggest/run-suggest.ts";

const HELP = `
Examples:
  suggest access.log --match 'POST /login' --window 1m,1h
  suggest app.jsonl --match '/api/*' --key 'header:x-api-key | ip' --map header:x-api-key=key

Exit codes:
  0    done
  1    refused: a wrong option, or the log lacks what the key or the match needs
  2    not done: a log could not be read, or has no request
  130  ended by Ctrl-C; 129 by SIGHUP, 143 by SIGTERM. The report, if any request was read, is about
       the lines before that

docs/replay.md explains the numbers, and how to choose a limit.`;

const OF_RULE = "Name its requests and its clients with --match and --key.";

/** Adds the command `suggest`, which finds limits in access logs. */
export function addSuggestCommand(program: Command): void {
  withRemoved(withLogOptions(program.command("suggest")), {
    "--rule": OF_RULE,
    "--config": OF_RULE,
  })
    .description(
      "Shows how many requests clients send, and the limits that few of them would reach.",
    )
    .option(
      "--match <requests>",
      "such as 'POST /login'; JSON of a rule's match (default: every request)",
    )
    .option(
      "--key <key>",
      "what tells clients apart; repeat it for several values (default: ip)",
      collect,
    )
    .option(
      "--window <lengths>",
      "separated by commas, such as 1m,1h (default: 1m,1h)",
      collectList,
    )
    .option("--name <name>", "the name of the suggested rule")
    .option("--missing-as-absent", "treat values that the log does not state as absent")
    .option("--json", "print one JSON document")
    .option("--quiet", "show no progress")
    .addHelpText("after", HELP)
    .action(async (files: string[], options: SuggestOptions) => {
      const { runSuggest } = await withoutNodeEnv(() => import("./suggest/run-suggest.ts"));
      process.exitCode = await withoutNodeEnv(() => runSuggest(files, options));
    });
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

function collectList(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((each) => each.trim())];
}
