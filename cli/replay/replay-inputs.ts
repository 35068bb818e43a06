import type { Config } from "../../src/config/schema.ts";
import { plural, printable } from "../doctor/finding.ts";
import { loadConfig } from "../load-config.ts";
import type { LogFacts } from "../logs/log-request.ts";
import type { ReplayEngine } from "./replay-engine.ts";
import { ReplayError } from "./replay-error.ts";

/** How many faults of a configuration are printed. `weir check` prints all. */
const LISTED_FAULTS = 5;

/** A configuration, and its file as the user has written it. */
export interface ConfigFile {
  readonly file: string;
  readonly config: Config;
}

interface ReplayOptions {
  readonly against?: string;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly isolates?: number;
  readonly seed?: number;
}

/** @throws {ReplayError} if an option needs another one */
export function checkPairs({ maxNewlyDenied, against, seed, isolates }: ReplayOptions): void {
  if (maxNewlyDenied !== undefined && against === undefined) {
    throw new ReplayError(
      1,
      "--max-newly-denied compares two configurations. Name the other one with --against <file>.",
    );
  }
  if (seed !== undefined && isolates === undefined) {
    throw new ReplayError(
      1,
      "--seed is for the random numbers of --isolates. Add --isolates <n>, or leave --seed out.",
    );
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
 * Checks that all enforced rules are replayed if there is a bound, because a rule that is left out denies nobody.
 *
 * @throws {ReplayError} if there is a bound, and an enforced rule is left out
 */
export function checkLeftOut(
  { maxDenied, maxNewlyDenied }: ReplayOptions,
  { rules }: Config,
  { leftOut, notes }: Pick<ReplayEngine, "leftOut" | "notes">,
): void {
  if (maxDenied === undefined && maxNewlyDenied === undefined) return;
  const enforced = rules.filter(({ name, mode }) => mode === "enforce" && leftOut.includes(name));
  const [first] = enforced;
  if (!first) return;
  const reasons = notes.filter(({ rule }) => rule === first.name).map(({ text }) => text);
  const others =
    enforced.length > 1 ? [`${plural(enforced.length - 1, "more rule")} left out.`] : [];
  throw new ReplayError(
    2,
    [
      "--max-denied and --max-newly-denied need all enforced rules, but the log does not suffice for each of them.",
      ...reasons,
      ...others,
    ].join("\n"),
  );
}

/**
 * Reads a configuration.
 *
 * @param option the option that names the file, for messages
 * @throws {ReplayError} if it has faults, or if its file cannot be read
 */
export async function readConfig(
  file: string,
  { json }: { json?: true },
  option: "--config" | "--against" = "--config",
): Promise<ConfigFile> {
  const loaded = await loadConfig(file, json ? "json" : "text", 2, option);
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
