import { type Command, InvalidArgumentError } from "commander";
import type { ExplainOptions } from "./explain/explanation.ts";
import { withoutNodeEnv } from "./process.ts";

const HELP = `
Examples:
  explain POST https://api.example.com/login --ip 203.0.113.7
  explain /search?q=a -H 'x-api-key: abc' --cf country=DE
  explain --curl - < command.txt       (a browser's Copy as cURL)
  explain --har session.har --entry 3
  explain GET /search --ip 203.0.113.7 --against https://api.example.com

Without --against, the configuration is read from --config, all counts are 0, and nothing is sent. Secrets and
vars come from environment variables, .dev.vars and wrangler's configuration, as for weir doctor. With --against,
the Worker explains the request with its live counters, and takes no quota. The token is WEIR_ADMIN_TOKEN or
WEIR_ADMIN_READ_TOKEN.

Exit codes:
  0    explained, whatever the verdict is
  1    wrong input: an option, the URL, the curl command or the HAR file; or the Worker has refused the request
  2    not explained: no valid configuration, its code fails, no token, or the Worker does not answer

docs/explain.md shows an explanation and describes all options.`;

/** Adds the command `explain`, which shows which rules apply to a request, why, and what they would do. */
export function addExplainCommand(program: Command): void {
  program
    .command("explain")
    .description(
      "Explains a request: which rules apply and why, the client's key and counters, and the response.",
    )
    .argument("[method]", "GET by default")
    .argument("[url]", "a URL, or a path")
    .option("-H, --header <field>", "a header field, such as 'x-api-key: abc'; repeatable", listed)
    .option("--ip <address>", "the client's IP address")
    .option("--cf <name=value>", "Cloudflare's data, such as country=DE; repeatable", listed)
    .option("--host <host>", "the host of the request, instead of the URL's")
    .option("--curl <command>", "a curl command; with -, from standard input")
    .option("--har <file>", "a HAR file, or one entry of it; with -, from standard input")
    .option("--entry <n>", "the number of the entry in the HAR file; the first is 1", entryNumber)
    .option("--against <url>", "let the Worker at this URL explain it, with its live counters")
    .option("--at-time <time>", "the time of the request, such as 2026-12-01T08:00:00Z")
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--wrangler <file>", "wrangler's configuration (default: the one beside the rules)")
    .option("--env <name>", 'the environment of wrangler\'s configuration; "" for the top level')
    .option("--verbose", "show all conditions, and long texts in full")
    .option("--json", "print one JSON document")
    .addHelpText("after", HELP)
    .action(async (...args: unknown[]) => {
      const command = args.at(-1) as Command;
      // Each command loads its code only when it runs, so that the other commands start sooner.
      const { runExplain } = await withoutNodeEnv(() => import("./explain/explanation.ts"));
      const options = { ...command.opts<Omit<ExplainOptions, "words">>(), words: command.args };
      process.exitCode = await runExplain(options);
    });
}

function listed(each: string, others: readonly string[] = []): string[] {
  return [...others, each];
}

function entryNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Allowed: a whole number; the first entry is 1.");
}
