import { Command, InvalidArgumentError } from "commander";
import type { Effort, Target } from "./target.ts";

export interface FuzzOptions extends Effort {
  readonly targets: readonly Target[];
}

const CASES = 1_000_000;
const MAX = 2 ** 31 - 1;

/**
 * Reads the command line.
 *
 * @param args the arguments alone, without the program's name.
 * @throws {CommanderError} after printing what is wrong, or the help that was asked for; its
 * `exitCode` says which.
 */
export function parseOptions(args: readonly string[], all: readonly Target[]): FuzzOptions {
  const width = Math.max(...all.map(({ name }) => name.length));
  const list = all.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n");
  const { target, cases, seed } = new Command("npm run fuzz --")
    .description(
      "Holds Weir against arbitrary input, a few minutes for each target. The target script needs " +
        "redis-server. Exits with 1 when something did not hold, and shows the smallest case.",
    )
    .option(
      "--target <names>",
      "which, with a comma between several, or all (default: all)",
      names(all),
    )
    .option("--cases <n>", "how many of each", wholeNumber(1, MAX), CASES)
    .option("--seed <n>", "for the same cases again (default: another one each time)", seedOf)
    .addHelpText("after", `\nTargets:\n${list}`)
    .allowExcessArguments(false)
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{ target?: readonly Target[]; cases: number; seed?: number }>();
  return { targets: target ?? all, cases, seed: seed ?? Math.floor(Math.random() * MAX) };
}

function names(all: readonly Target[]) {
  return (text: string): readonly Target[] => {
    if (text.trim() === "all") return all;
    return text.split(",").map((given) => {
      const found = all.find(({ name }) => name === given.trim());
      if (found) return found;
      const allowed = ["all", ...all.map(({ name }) => name)].join(", ");
      throw new InvalidArgumentError(`There is no "${given.trim()}". Allowed: ${allowed}.`);
    });
  };
}

function wholeNumber(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`A whole number from ${min} to ${max} is wanted.`);
  };
}

const seedOf = wholeNumber(0, MAX);
