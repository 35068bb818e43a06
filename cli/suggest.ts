import { type Command, Option } from "commander";
import { withLogOptions } from "./logs/open-logs.ts";
import { withoutNodeEnv } from "./process.ts";
import type { SuggestOptions } from "./suggest/run-suggest.ts";

const HELP = `
Examples:
  suggest access.log --match 'POST /login' --window 1m,1h
  suggest app.jsonl --match '/api/*' --key 'header:x-api-key | ip' --map header:x-api-key=key
  suggest access.log --rule search --config weir.config.ts

Exit codes:
  0    done
  1    refused: a wrong option, or the log lacks what the key or the match needs
  2    not done: a log or the configuration could not be read, or the log has no request
  130  ended by Ctrl-C; 129 by SIGHUP, 143 by SIGTERM. The report, if any request was read, is about
       the lines before that

docs/replay.md explains the numbers, and how to choose a limit.`;

/** Adds the command `suggest`, which finds limits in access logs. */
export function addSuggestCommand(program: Command): void {
  withRule(withLogOptions(program.command("suggest")))
    .description(
      "Shows how many requests clients send, and the limits that few of them would reach.",
    )
    .addOption(new Option("--json", "print one JSON document").conflicts("markdown"))
    .option("--markdown", "print Markdown, such as for a pull request")
    .option("--quiet", "show no progress")
    .addHelpText("after", HELP)
    .action(async (files: string[], options: SuggestOptions) => {
      const { runSuggest } = await withoutNodeEnv(() => import("./suggest/run-suggest.ts"));
      process.exitCode = await withoutNodeEnv(() => runSuggest(files, options));
    });
}

function withRule(command: Command): Command {
  return command
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
    .addOption(
      new Option(
        "--rule <name>",
        "a rule of a configuration, in place of --match and --key",
      ).conflicts(["match", "key", "name"]),
    )
    .option("--config <file>", "the configuration of --rule (default: weir.config.ts)")
    .option("--missing-as-absent", "treat values that the log does not state as absent");
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

function collectList(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(",").map((each) => each.trim())];
}
