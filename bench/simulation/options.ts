import { Command, InvalidArgumentError, Option } from "commander";
import { groupNames } from "./scenarios/all.ts";

const DEFAULT_SEED = 1;

export interface SimulationOptions {
  readonly seed: number;
  /**
   * The file for the figures. @default bench/results/simulation.json in a whole run, otherwise none
   */
  readonly json: string | undefined;
  /** The groups of scenarios to simulate. */
  readonly groups: readonly string[];
  /**
   * Whether the run has the default seed and all scenarios. Only such a run replaces the published
   * figures.
   */
  readonly isWhole: boolean;
}

/**
 * Reads the command line.
 *
 * @param args the arguments, without the program's name
 * @throws {CommanderError} after printing an error or the help; `exitCode` is 0 for the help
 */
export function parseOptions(args: readonly string[]): SimulationOptions {
  const { seed, json, only } = new Command("npm run simulate --")
    .description("Simulates Weir's leases on up to 10,000 isolates, in virtual time.")
    .addOption(
      new Option("--seed <number>", "the seed of the random numbers")
        .default(DEFAULT_SEED)
        .argParser(seedIn),
    )
    .addOption(
      new Option("--only <group,…>", `groups to simulate: ${groupNames().join(", ")}`).argParser(
        groupsIn,
      ),
    )
    .option(
      "--json <file>",
      "the file for the figures (default in a whole run: bench/results/simulation.json)",
    )
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{ seed: number; json?: string; only?: string[] }>();
  return {
    seed,
    json,
    groups: only ?? groupNames(),
    isWhole: !only && seed === DEFAULT_SEED,
  };
}

function seedIn(text: string): number {
  const seed = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(seed)) {
    throw new InvalidArgumentError("Allowed: whole numbers from 0 upwards, such as 7.");
  }
  return seed;
}

function groupsIn(text: string): string[] {
  const allowed = groupNames();
  const groups = text.split(",");
  const unknown = groups.filter((group) => !allowed.includes(group));
  if (unknown.length > 0) {
    const names = unknown.map((name) => `"${name}"`).join(", ");
    throw new InvalidArgumentError(`There is no ${names}. Allowed: ${allowed.join(", ")}.`);
  }
  return groups;
}
