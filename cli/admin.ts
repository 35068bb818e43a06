import { type Command, InvalidArgumentError, Option } from "commander";
import { MAX_FACTOR } from "../src/overrides/override.ts";
import { withoutNodeEnv } from "./process.ts";

/** The maximum number of clients in a report of the control object. */
const MAX_CLIENTS = 100;
/** The maximum number of denials in an answer of the API. */
const MAX_DENIALS = 1000;

const HELP = `
Exit codes:
  0    done
  1    refused: a wrong option, no such rule or override, or the token may only read
  2    the Worker could not be asked: no token, no connection, no Weir or no control object. Nothing was changed
  3    a change was asked for, but its result is not known: it may have been made

The token is WEIR_ADMIN_TOKEN or, for reading, WEIR_ADMIN_READ_TOKEN: an environment variable, or in .dev.vars
or .env. No option takes it, because the history of the shell would keep it. docs/cli.md explains more.`;

/** The text of `--help` after the options. */
function helpWith(...examples: string[]): string {
  return `\nExamples:\n${examples.map((each) => `  ${each}`).join("\n")}\n${HELP}`;
}

/**
 * Adds the commands for operators. They call a Worker's admin API to show limited clients, and to change limits
 * without a deploy.
 */
export function addAdminCommands(program: Command): void {
  addPeek(program);
  addReset(program);
  addOverride(program);
  addOverrides(program);
  addStatistics(program);
  addTop(program);
  addDenials(program);
}

function addPeek(program: Command): void {
  withClient(adminCommand(program, "peek"))
    .description("Shows the quota that a client has left. Takes no quota.")
    .argument("[rule]", "only this rule; by default all rules that can count the client")
    .addHelpText(
      "after",
      helpWith("peek --ip 203.0.113.7", "peek search --known header:x-api-key=- < key.txt"),
    )
    .action(runs("runPeek"));
}

function addReset(program: Command): void {
  withClient(adminCommand(program, "reset"))
    .description("Gives a client the whole quota of a rule back, and lifts its ban.")
    .argument("<rule>", "the name of the rule")
    .option("--ban-only", "lift the ban, but keep the counts")
    .requiredOption("--reason <text>", "why, for the audit list")
    .addHelpText("after", helpWith('reset login --ip 203.0.113.7 --reason "Ticket 4711"'))
    .action(runs("runReset"));
}

function addOverride(program: Command): void {
  withClient(adminCommand(program, "override"))
    .description(
      "Changes a rule for one client or for all, without a deploy and for a limited time.",
    )
    .argument("<rule>", "the name of the rule")
    .option("--limit <n>", "the client's limit, if the rule has one limit", wholeNumber)
    .option("--limits <list>", "the client's limits by policy, such as search/1m=5,search/1h=50")
    .option(
      "--factor <x>",
      `multiply all limits by this number, at most ${MAX_FACTOR}`,
      positiveNumber,
    )
    .option("--unlimited", "do not limit the client")
    .option("--block", "deny every request of the client")
    .addOption(
      new Option("--mode <mode>", "for all clients: enforce, shadow or off").choices([
        "enforce",
        "shadow",
        "off",
      ]),
    )
    .option("--for <time>", "how long, such as 30m, 2h or 7d, or a number of seconds")
    .option("--remove", "remove the override")
    .requiredOption("--reason <text>", "why, for other operators and the audit list")
    .addHelpText(
      "after",
      helpWith(
        'override login --ip 203.0.113.7 --limit 500 --for 2h --reason "Migration of a customer"',
        'override search --client IDENTITY --limits 1m=100,1h=2000 --for 7d --reason "Trial"',
        'override search --mode shadow --for 1h --reason "Denies too much since the deploy"',
        'override login --ip 203.0.113.7 --remove --reason "Migration is over"',
      ),
    )
    .action(runs("runOverride"));
}

function addOverrides(program: Command): void {
  adminCommand(program, "overrides")
    .description("Lists all overrides, the newest first.")
    .addHelpText("after", helpWith("overrides", "overrides --at https://api.example.com --json"))
    .action(runs("runOverrides"));
}

function addStatistics(program: Command): void {
  withTime(adminCommand(program, "stats"))
    .description("Shows how many requests were allowed and limited, by rule.")
    .addOption(
      new Option("--by <unit>", "one line for each minute, hour or day").choices([
        "minute",
        "hour",
        "day",
      ]),
    )
    .addHelpText("after", helpWith("stats", "stats --rule login --last 1d --by hour"))
    .action(runs("runStatistics"));
}

function addTop(program: Command): void {
  withTime(adminCommand(program, "top"))
    .description("Shows the clients that were limited most.")
    .option("--count <n>", `how many clients, at most ${MAX_CLIENTS}`, upTo(MAX_CLIENTS), 20)
    .addHelpText("after", helpWith("top", "top --rule login --last 15m"))
    .action(runs("runTop"));
}

function addDenials(program: Command): void {
  withClient(adminCommand(program, "denials"))
    .description("Shows when clients were denied, and by which policy: the newest 2,000 of 7 days.")
    .option("--rule <name>", "only this rule")
    .option(
      "--since <time>",
      "when the time begins: how long ago (2h), 12:00 (UTC), or a time with its zone",
    )
    .option("--until <time>", "when the time ends")
    .option("--limit <n>", `how many lines, at most ${MAX_DENIALS}`, upTo(MAX_DENIALS), 20)
    .addHelpText(
      "after",
      helpWith("denials --rule login", "denials --ip 203.0.113.7 --since 12:00 --until 12:30"),
    )
    .action(runs("runDenials"));
}

function adminCommand(program: Command, name: string): Command {
  return program
    .command(name)
    .option("--at <url>", "a URL of the Worker", "http://localhost:8787")
    .option("--wrangler <file>", "wrangler's configuration, whose folder has .dev.vars")
    .option("--env <name>", "the environment whose files have the token, such as .dev.vars.NAME")
    .option("--json", "print one JSON document");
}

function withClient(command: Command): Command {
  return command
    .option("--ip <address>", "the client's IP address")
    .option(
      "--known <name=value>",
      "what identifies the client, such as header:x-api-key=abc; with - as the value, from standard input",
      (each: string, others: readonly string[] = []) => [...others, each],
    )
    .option("--client <identity>", "the client's identity, from weir top or the log");
}

function withTime(command: Command): Command {
  return command
    .option("--rule <name>", "only this rule")
    .option("--last <time>", "how long ago the time begins, such as 15m, 1h or 30d", "1h");
}

/** Each command loads its code only when it runs, so that the other commands start sooner. */
function runs(name: keyof typeof import("./admin/run-admin.ts")) {
  return async (...args: unknown[]) => {
    const command = args.at(-1) as Command;
    const commands = await withoutNodeEnv(() => import("./admin/run-admin.ts"));
    const rule: string | undefined = command.args[0];
    await commands[name]({
      ...command.opts<object>(),
      ...(rule === undefined ? {} : { rule }),
    } as never);
  };
}

function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Allowed: a whole number.");
}

function upTo(max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (/^\d{1,4}$/.test(text) && value >= 1 && value <= max) return value;
    throw new InvalidArgumentError(`Allowed: a whole number from 1 to ${max}.`);
  };
}

function positiveNumber(text: string): number {
  const value = Number(text);
  const isNumber = /^\d{1,9}(?:\.\d{1,6})?$/.test(text);
  if (isNumber && value > 0 && value <= MAX_FACTOR) return value;
  throw new InvalidArgumentError(
    `Allowed: a number above 0 and at most ${MAX_FACTOR}, such as 2 or 0.5.`,
  );
}
