import { Command, InvalidArgumentError, Option } from "commander";
import { groupNames } from "./scenarios/all.ts";

const DEFAULT_SEED = 1;

export interface SimulationOptions {
  readonly seed: number;
  /** An access log to take requests from. */
  readonly log: string | undefined;
  /** Where to write the figures. */
  readonly json: string | undefined;
  /** Groups of scenarios. */
  readonly groups: readonly string[];
  /** Nothing is left out nor put in, so the results may take the place of the published ones. */
  readonly isWhole: boolean;
}

/**
 * Reads the command line.
 *
 * @param args the arguments alone, without the program's name
 * @throws {CommanderError} after printing what is wrong, or the help that was asked for; its
 * `exitCode` says which
 */
export function parseOptions(args: readonly string[]): SimulationOptions {
  const { seed, log, json, only } = new Command("npm run simulate --")
    .description("Simulates Weir's leases on up to 10,000 isolates, in virtual time.")
    .addOption(
      new Option("--seed <number>", "another one, other chances")
        .default(DEFAULT_SEED)
        .argParser(seedIn),
    )
    .option("--log <file>", "an access log to take requests from, in Common or Combined Log Format")
    .addOption(
      new Option("--only <group,…>", `what to simulate: ${groupNames().join(", ")}`).argParser(
        groupsIn,
      ),
    )
    .option(
      "--json <file>",
      "where to write the figures (a whole run: bench/results/simulation.json)",
    )
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{ seed: number; log?: string; json?: string; only?: string[] }>();
  return {
    seed,
    log,
    json,
    groups: only ?? groupNames(),
    isWhole: !only && log === undefined && seed === DEFAULT_SEED,
  };
}

function seedIn(text: string): number {
  const seed = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(seed)) {
    throw new InvalidArgumentError("Allowed: whole numbers from 0 on, such as 7.");
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
