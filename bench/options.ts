import { Command, InvalidArgumentError, Option } from "commander";
import { BASELINE, SUBJECTS, type Subject } from "./environment/subjects.ts";
import { CONNECTIONS } from "./load/closed-loop.ts";
import { WORKLOADS } from "./load/workloads.ts";

/** A run consists of the workloads and of these experiments. */
export const EXPERIMENTS = ["isolates", "added-cpu"] as const;
const PARTS = [...WORKLOADS.map(({ name }) => name), ...EXPERIMENTS];
const DEFAULT_REDIS_LATENCY_MS = 20;
/** A latency above Weir's default `timeoutMs`, 1,000 ms, would leave requests undecided. */
const MAX_REDIS_LATENCY_MS = 900;
const MAX_CONNECTIONS = 1024;

export interface BenchOptions {
  /**
   * Whether to send only a few requests. A quick run tests the bench, and its figures mean little.
   */
  readonly quick: boolean;
  /** The latencies of Redis, in milliseconds. Each workload runs once for each value. */
  readonly redisLatenciesMs: readonly number[];
  /** The latency of the origin, in milliseconds. */
  readonly originLatencyMs: number;
  /** The numbers of connections. Each workload except the bursts runs once for each value. */
  readonly connections: readonly number[];
  /** The subjects of the run. The baseline is always one of them. */
  readonly subjects: readonly Subject[];
  /** Names of workloads and experiments. */
  readonly parts: readonly string[];
  /** The file for the figures. @default bench/results/latest.json in a whole run, otherwise none */
  readonly json: string | undefined;
  /** Whether the run leaves nothing out. Only such a run replaces the published figures. */
  readonly isWhole: boolean;
}

/**
 * Reads the command line.
 *
 * @param args the arguments, without the program's name
 * @throws {CommanderError} after printing an error or the help; `exitCode` is 0 for the help
 */
export function parseOptions(args: readonly string[]): BenchOptions {
  const names = SUBJECTS.map(({ name }) => name);
  const given = new Command("npm run bench --")
    .description("Measures Weir and other limiters on this machine, and prints a report.")
    .option("--quick", "only test the bench itself, with few requests (about a minute)")
    .addOption(
      new Option(
        "--redis-latency <ms,…>",
        "how long Redis takes to answer, in ms (default: 20)",
      ).argParser(numbersOf(0, MAX_REDIS_LATENCY_MS, "0,5,20,100")),
    )
    .addOption(
      new Option(
        "--origin-latency <ms>",
        "how long the origin takes to answer, in ms (default: 0)",
      ).argParser(numbersOf(0, MAX_REDIS_LATENCY_MS, "20", 1)),
    )
    .addOption(
      new Option(
        "--connections <n,…>",
        `how many connections send requests (default: ${CONNECTIONS})`,
      ).argParser(numbersOf(1, MAX_CONNECTIONS, "4,16,64,256")),
    )
    .addOption(
      new Option(
        "--only <subject,…>",
        `subjects in addition to the baseline: ${names.join(", ")}`,
      ).argParser(listOf(names)),
    )
    .addOption(
      new Option("--workload <name,…>", `parts to run: ${PARTS.join(", ")}`).argParser(
        listOf(PARTS),
      ),
    )
    .option(
      "--json <file>",
      "the file for the figures (default in a whole run: bench/results/latest.json)",
    )
    .showHelpAfterError("(--help shows what is allowed)")
    .exitOverride()
    .parse(args, { from: "user" })
    .opts<{
      quick?: boolean;
      redisLatency?: number[];
      originLatency?: number[];
      connections?: number[];
      only?: string[];
      workload?: string[];
      json?: string;
    }>();

  const { quick = false, redisLatency = [DEFAULT_REDIS_LATENCY_MS], only, workload, json } = given;
  const { connections = [CONNECTIONS], originLatency: [originLatencyMs = 0] = [] } = given;
  return {
    quick,
    redisLatenciesMs: redisLatency,
    originLatencyMs,
    connections,
    subjects: SUBJECTS.filter(({ name }) => name === BASELINE || !only || only.includes(name)),
    parts: workload ?? PARTS,
    json,
    isWhole:
      !(quick || only || workload || originLatencyMs) &&
      redisLatency.includes(DEFAULT_REDIS_LATENCY_MS) &&
      connections.includes(CONNECTIONS),
  };
}

function numbersOf(
  least: number,
  most: number,
  example: string,
  maxCount = Number.POSITIVE_INFINITY,
): (text: string) => number[] {
  return (text) => {
    const values = text.split(",").map((part) => (/^\d+$/.test(part) ? Number(part) : Number.NaN));
    const isAllowed = values.every((value) => value >= least && value <= most);
    if (!isAllowed || new Set(values).size < values.length || values.length > maxCount) {
      throw new InvalidArgumentError(
        `Allowed: whole numbers from ${least} to ${most}, each once, such as ${example}.`,
      );
    }
    return values;
  };
}

function listOf(allowed: readonly string[]): (text: string) => string[] {
  return (text) => {
    const names = text.split(",");
    const unknown = names.filter((name) => !allowed.includes(name));
    if (unknown.length > 0) {
      const quoted = unknown.map((name) => `"${name}"`).join(", ");
      throw new InvalidArgumentError(`There is no ${quoted}. Allowed: ${allowed.join(", ")}.`);
    }
    return names;
  };
}
