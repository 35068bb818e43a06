import { type Command, Option } from "commander";
import type { ExplainOptions } from "./explain/explanation.ts";
import { withoutNodeEnv } from "./process.ts";

const HELP = `
Examples:
  explain POST https://api.example.com/login --ip 203.0.113.7
  explain /search?q=a -H 'x-api-key: abc' --cf country=DE
  explain 'https://api.example.com/graphql' -b 'session=abc' --data-raw '{}'
  explain GET /search --ip 203.0.113.7 --against https://api.example.com

The options that describe the request are those of curl. So in a curl command, such as a browser's Copy as cURL (bash),
replace the word curl by npx weir explain. Two have another meaning: -v is --verbose, and --json
prints JSON (for curl's, write --data and -H).

Without --against, the configuration is read from --config, all counts are 0, and nothing is sent, except that jwks
makes it fetch the issuer's keys. Secrets and vars come from environment variables, .dev.vars and wrangler's
configuration, as for weir doctor. With --against, the Worker explains the request with its live counters, and takes
no quota. The token is WEIR_ADMIN_TOKEN or WEIR_ADMIN_READ_TOKEN.

Exit codes:
  0    explained, whatever the verdict is
  1    wrong input: an option or the URL; or the Worker has refused the request
  2    not explained: no valid configuration, its code fails, no token, or the Worker does not answer

docs/replay.md shows an explanation.`;

/** Options of curl that do not change the request. */
const IGNORED = [
  "-4, --ipv4",
  "-6, --ipv6",
  "--cacert <file>",
  "-c, --cookie-jar <file>",
  "--compressed",
  "--connect-timeout <seconds>",
  "-D, --dump-header <file>",
  "-f, --fail",
  "-g, --globoff",
  "--http1.1",
  "--http2",
  "-i, --include",
  "-k, --insecure",
  "-L, --location",
  "-m, --max-time <seconds>",
  "-N, --no-buffer",
  "-o, --output <file>",
  "-O, --remote-name",
  "--path-as-is",
  "-x, --proxy <url>",
  "--resolve <address>",
  "--retry <times>",
  "-S, --show-error",
  "-s, --silent",
  "-w, --write-out <format>",
];

/** Adds the command `explain`, which shows which rules apply to a request, why, and what they would do. */
export function addExplainCommand(program: Command): void {
  // Several options add to one body, in their order. A file after @ is not read.
  const body: (string | undefined)[] = [];
  const bodyPart = (text: string) => void body.push(text.startsWith("@") ? undefined : text);
  const command = program
    .command("explain")
    .description(
      "Explains a request: which rules apply and why, the client's key and counters, and the response.",
    )
    .argument("[method]", "GET by default, POST with a body")
    .argument("[url]", "a URL, or a path")
    .option("-X, --request <method>", "the method")
    .option("-H, --header <field>", "a header field, such as 'x-api-key: abc'; repeatable", listed)
    .option("-d, --data <text>", "a part of the body; repeatable", bodyPart)
    .option("--data-raw <text>", "the same, but @ names no file", (text) => void body.push(text))
    .option("-b, --cookie <pairs>", "cookies, such as 'session=abc'; repeatable", listed)
    .option("-u, --user <user:password>", "the field authorization, with the scheme Basic")
    .option("-I, --head", "the method HEAD")
    .option("--ip <address>", "the client's IP address")
    .option("--cf <name=value>", "Cloudflare's data, such as country=DE; repeatable", listed)
    .option("--host <host>", "the host of the request, instead of the URL's")
    .option(
      "--at, --against <url>",
      "let the Worker at this URL explain it, with its live counters",
    )
    .option("--at-time <time>", "the time of the request, such as 2026-12-01T08:00:00Z")
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--wrangler <file>", "wrangler's configuration (default: the one beside the rules)")
    .option("--env <name>", 'the environment of wrangler\'s configuration; "" for the top level')
    .option("-v, --verbose", "show all conditions, and long texts in full")
    .option("--json", "print one JSON document")
    .addHelpText("after", HELP)
    .action(async (...args: unknown[]) => {
      const command = args.at(-1) as Command;
      // Each command loads its code only when it runs, so that the other commands start sooner.
      const { runExplain } = await withoutNodeEnv(() => import("./explain/explanation.ts"));
      const options = {
        ...command.opts<Omit<ExplainOptions, "words" | "body">>(),
        words: command.args,
        body,
      };
      await runExplain(options);
    });
  for (const flags of ["--data-binary <text>", "--data-ascii <text>"]) {
    command.addOption(new Option(flags).argParser(bodyPart).hideHelp());
  }
  for (const flags of IGNORED) command.addOption(new Option(flags).hideHelp());
}

function listed(each: string, others: readonly string[] = []): string[] {
  return [...others, each];
}
