import { Command, InvalidArgumentError } from "commander";

export interface SoakOptions {
  /** How long the traffic lasts, in minutes. */
  readonly minutes: number;
  /** The number of connections to all isolates in total. They are kept alive and always busy. */
  readonly connections: number;
  /** The deadline of the Worker under test, in milliseconds. */
  readonly timeoutMs: number;
  /** How much later than the deadline an answer may arrive on a busy machine, in milliseconds. */
  readonly marginMs: number;
  /** The seed of the random traffic. */
  readonly seed: number;
  /** The file for the results. */
  readonly json: string;
}

/**
 * Reads the command line.
 *
 * @param args the arguments, without the program's name
 * @throws {CommanderError} after printing an error or the help; `exitCode` is 0 for the help
 */
export function parseOptions(args: readonly string[]): SoakOptions {
  const { timeout, margin, ...rest } = new Command("npm run soak --")
    .description(
      "Sends mixed traffic through Weir in workerd at full speed, breaks its store again and again, " +
        "and checks that Weir keeps its promises. Needs redis-server. The exit code is 1 when a promise " +
        "was broken, and 2 when the run failed.",
    )
    .option(
      "--minutes <n>",
      "how many minutes the traffic lasts, from 0.5 to 1440",
      number(0.5, 1440),
      10,
    )
    .option(
      "--connections <n>",
      "the number of connections that send requests",
      wholeNumber(2, 1000),
      32,
    )
    .option(
      "--timeout <ms>",
      "the Worker's deadline for a decision (timeoutMs), in milliseconds",
      wholeNumber(50, 10_000),
      1000,
    )
    .option(
      "--margin <ms>",
      "how many milliseconds longer than --timeout an answer may take",
      wholeNumber(0, 10_000),
      200,
    )
    .option("--seed <n>", "the seed of the random traffic", wholeNumber(0, 2 ** 31), 1)
    .option("--json <file>", "the file for the results", "soak/results/latest.json")
    .allowExcessArguments(false)
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<Omit<SoakOptions, "timeoutMs" | "marginMs"> & { timeout: number; margin: number }>();
  return { ...rest, timeoutMs: timeout, marginMs: margin };
}

function number(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== "" && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Allowed: numbers from ${min} to ${max}.`);
  };
}

function wholeNumber(min: number, max: number) {
  const read = number(min, max);
  return (text: string): number => {
    const value = read(text);
    if (Number.isInteger(value)) return value;
    throw new InvalidArgumentError(`Allowed: whole numbers from ${min} to ${max}.`);
  };
}
