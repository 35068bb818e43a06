import { Command, InvalidArgumentError } from "commander";
import type { RunOptions, Target } from "./target.ts";

export interface FuzzOptions extends RunOptions {
  readonly targets: readonly Target[];
}

const CASES = 1_000_000;
const MAX = 2 ** 31 - 1;

/**
 * Parses the command line.
 *
 * @param args the arguments without the program's name
 * @throws {CommanderError} after it has printed a problem or the help. `exitCode` is 0 after the
 * help
 */
export function parseOptions(args: readonly string[], all: readonly Target[]): FuzzOptions {
  const width = Math.max(...all.map(({ name }) => name.length));
  const list = all.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n");
  const { target, cases, seed } = new Command("npm run fuzz --")
    .description(
      "Tests Weir with arbitrary input. Each target takes a few minutes. The target script needs " +
        "redis-server. After a finding, prints the smallest case that fails, and exits with 1.",
    )
    .option(
      "--target <names>",
      "targets to run, separated by commas, or all (default: all)",
      parseTargets(all),
    )
    .option("--cases <n>", "cases for each target", parseWholeNumber(1, MAX), CASES)
    .option("--seed <n>", "repeats the cases of this seed (default: a random seed)", parseSeed)
    .addHelpText("after", `\nTargets:\n${list}`)
    .allowExcessArguments(false)
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{ target?: readonly Target[]; cases: number; seed?: number }>();
  return { targets: target ?? all, cases, seed: seed ?? Math.floor(Math.random() * MAX) };
}

function parseTargets(all: readonly Target[]) {
  return (text: string): readonly Target[] => {
    if (text.trim() === "all") return all;
    return text.split(",").map((given) => {
      const target = all.find(({ name }) => name === given.trim());
      if (target) return target;
      const allowed = ["all", ...all.map(({ name }) => name)].join(", ");
      throw new InvalidArgumentError(`There is no target "${given.trim()}". Allowed: ${allowed}.`);
    });
  };
}

function parseWholeNumber(min: number, max: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Must be a whole number from ${min} to ${max}.`);
  };
}

const parseSeed = parseWholeNumber(0, MAX);
