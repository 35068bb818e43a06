import type { Config } from "../../src/config/schema.ts";
import { plural, printable } from "../doctor/finding.ts";
import { loadConfig } from "../load-config.ts";
import { LogError } from "../logs/log-error.ts";
import { type LogCommandOptions, logOptionsOf } from "../logs/log-options.ts";
import type { LogFacts } from "../logs/log-request.ts";
import type { LogOptions } from "../logs/open-logs.ts";
import { ReplayError } from "./replay-error.ts";

/** How many faults of a configuration are printed. `weir check` prints all. */
const LISTED_FAULTS = 5;

/** A configuration, and its file as the user has written it. */
export interface ConfigFile {
  readonly file: string;
  readonly config: Config;
}

interface ReplayOptions extends LogCommandOptions {
  readonly against?: string;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly isolates?: number;
  readonly seed?: number;
}

/**
 * Returns the options for reading logs.
 *
 * @throws {ReplayError} if options do not fit together
 */
export function checkedLogOptions(files: readonly string[], options: ReplayOptions): LogOptions {
  if (options.maxNewlyDenied !== undefined && options.against === undefined) {
    throw new ReplayError(
      1,
      "--max-newly-denied compares two configurations. Name the other one with --against <file>.",
    );
  }
  if (options.seed !== undefined && options.isolates === undefined) {
    throw new ReplayError(
      1,
      "--seed is for the random numbers of --isolates. Add --isolates <n>, or leave --seed out.",
    );
  }
  try {
    return logOptionsOf(files, options);
  } catch (error) {
    throw error instanceof LogError ? new ReplayError(1, error.message) : error;
  }
}

/**
 * Checks that clients can be counted, because otherwise no bound could ever be exceeded.
 *
 * @throws {ReplayError} if there is a bound, and the log does not state addresses
 */
export function checkBounds(
  { maxDenied, maxNewlyDenied }: ReplayOptions,
  { ip }: Pick<LogFacts, "ip">,
): void {
  if (ip || (maxDenied === undefined && maxNewlyDenied === undefined)) return;
  throw new ReplayError(
    2,
    "--max-denied and --max-newly-denied count clients by their addresses, but the log does not state addresses. For JSON lines, name their field, such as --map ip=client.address.",
  );
}

/**
 * Reads a configuration.
 *
 * @throws {ReplayError} if it has faults, or if its file cannot be read
 */
export async function readConfig(file: string, { json }: { json?: true }): Promise<ConfigFile> {
  const loaded = await loadConfig(file, json ? "json" : "text", 2);
  if (loaded.kind === "valid") return { file, config: loaded.config };
  if (loaded.kind === "unreadable") {
    throw new ReplayError(2, `${printable(file)} could not be loaded.\n${loaded.error}`);
  }
  const name = printable(file);
  const { faults } = loaded;
  const listed = faults.slice(0, LISTED_FAULTS).map(({ path, message }) => `  ${path}: ${message}`);
  const more = faults.length > LISTED_FAULTS ? [`  and ${faults.length - LISTED_FAULTS} more`] : [];
  throw new ReplayError(
    2,
    [
      `${name} has ${plural(faults.length, "fault")}. weir check --config ${name} explains them.`,
      ...listed,
      ...more,
    ].join("\n"),
  );
}
