import { Command, InvalidArgumentError } from "commander";

export type SoakOptions = {
  minutes: number;
  /** Connections that are kept alive and always in use, to all isolates together. */
  connections: number;
  /** The deadline of the Worker under test, in milliseconds. */
  timeoutMs: number;
  /** What a request may take beyond its deadline: origin, network and a busy machine, in ms. */
  marginMs: number;
  seed: number;
  /** Where the figures are written. */
  json: string;
};

/**
 * Reads the command line.
 *
 * @param args the arguments alone, without the program's name.
 * @throws {CommanderError} after printing what is wrong, or the help that was asked for; its
 * `exitCode` says which.
 */
export function parseOptions(args: readonly string[]): SoakOptions {
  const { timeout, margin, ...rest } = new Command("npm run soak --")
    .description(
      "Sends mixed traffic through Weir in workerd at full speed, breaks its store again and again, " +
        "and checks what Weir promises. Needs redis-server. Exits with 1 when a promise was broken.",
    )
    .option("--minutes <n>", "how long, from 0.5 to 1440", number(0.5, 1440), 10)
    .option("--connections <n>", "requests under way at once", wholeNumber(2, 1000), 32)
    .option("--timeout <ms>", "the Worker's timeoutMs", wholeNumber(50, 10_000), 1000)
    .option("--margin <ms>", "what a request may take beyond that", wholeNumber(0, 10_000), 200)
    .option("--seed <n>", "for other requests in another order", wholeNumber(0, 2 ** 31), 1)
    .option("--json <file>", "where to write the figures", "soak/results/latest.json")
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
    throw new InvalidArgumentError(`A number from ${min} to ${max} is wanted.`);
  };
}

function wholeNumber(min: number, max: number) {
  const read = number(min, max);
  return (text: string): number => {
    const value = read(text);
    if (Number.isInteger(value)) return value;
    throw new InvalidArgumentError(`A whole number from ${min} to ${max} is wanted.`);
  };
}
