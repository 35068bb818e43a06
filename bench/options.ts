import { Command, InvalidArgumentError, Option } from "commander";
import { FLOOR, SUBJECTS, type Subject } from "./environment/subjects.ts";
import { WORKLOADS } from "./load/workloads.ts";

/** What is measured beside the plain workloads. */
export const EXPERIMENTS = ["isolates", "flood", "added-cpu", "cpu"] as const;
const PARTS = [...WORKLOADS.map(({ name }) => name), ...EXPERIMENTS];
const DEFAULT_DISTANCE_MS = 20;
const MAX_DISTANCE_MS = 900;

export type BenchOptions = {
  /** Few requests: to see that the bench works, not for its figures. */
  quick: boolean;
  /** How far Redis is, in ms; the plain workloads run once for each. */
  distances: number[];
  /** The floor is always among them. */
  subjects: readonly Subject[];
  /** Names of workloads and experiments. */
  parts: readonly string[];
  /** Where to write the figures. */
  json: string | undefined;
  /** Nothing is left out, so the results may take the place of the published ones. */
  isWhole: boolean;
};

/**
 * Reads the command line.
 *
 * @param args the arguments alone, without the program's name.
 * @throws {CommanderError} after printing what is wrong, or the help that was asked for; its
 * `exitCode` says which.
 */
export function parseOptions(args: readonly string[]): BenchOptions {
  const names = SUBJECTS.map(({ name }) => name);
  const given = new Command("npm run bench --")
    .description("Measures Weir and its peers side by side on this machine, and writes a report.")
    .option("--quick", "few requests, about a minute: a smoke test, whose figures say little")
    .addOption(
      new Option("--distance <ms,…>", "how far Redis is, in ms (default: 20)").argParser(distances),
    )
    .addOption(
      new Option("--only <subject,…>", `subjects beside the floor: ${names.join(", ")}`).argParser(
        listOf(names),
      ),
    )
    .addOption(
      new Option("--workload <name,…>", `what to run: ${PARTS.join(", ")}`).argParser(
        listOf(PARTS),
      ),
    )
    .option("--json <file>", "where to write the figures (a whole run: bench/results/latest.json)")
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{
      quick?: boolean;
      distance?: number[];
      only?: string[];
      workload?: string[];
      json?: string;
    }>();

  const { quick = false, distance = [DEFAULT_DISTANCE_MS], only, workload, json } = given;
  return {
    quick,
    distances: distance,
    subjects: SUBJECTS.filter(({ name }) => name === FLOOR || !only || only.includes(name)),
    parts: workload ?? PARTS,
    json,
    isWhole: !quick && !only && !workload && distance.includes(DEFAULT_DISTANCE_MS),
  };
}

function distances(text: string): number[] {
  const values = text.split(",").map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
  if (values.some((value) => !(value <= MAX_DISTANCE_MS)) || new Set(values).size < values.length) {
    // Weir gives a decision one second, unless it is told otherwise.
    throw new InvalidArgumentError(
      `Allowed: whole numbers from 0 to ${MAX_DISTANCE_MS}, each once, such as 0,5,20,100.`,
    );
  }
  return values;
}

function listOf(allowed: readonly string[]): (text: string) => string[] {
  return (text) => {
    const names = text.split(",");
    const unknown = names.filter((name) => !allowed.includes(name));
    if (unknown.length > 0) {
      throw new InvalidArgumentError(
        `There is no ${unknown.map((name) => `"${name}"`).join(", ")}. Allowed: ${allowed.join(", ")}.`,
      );
    }
    return names;
  };
}
