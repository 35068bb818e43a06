import { formatCount } from "../../src/admin/format.ts";
import type { Config } from "../../src/config/schema.ts";
import { CommandFailure } from "../command-failure.ts";
import { onInterruption } from "../interruption.ts";
import { loadConfig } from "../load-config.ts";
import { type Logs, type OpenOptions, openLogs } from "../logs/open-logs.ts";
import type { LogSummary } from "../logs/progress.ts";
import { printable } from "../print/text.ts";

// What replay and suggest have in common: options about logs, a configuration, a signal that ends the reading, and
// the printing of the report.

/** Returns the error for logs without a request to replay. A pipeline must not take them for a success. */
export function noRequests({
  files,
  lines,
  broken,
  late,
  outside,
  brokenLines,
}: LogSummary): CommandFailure {
  const reasons = [
    outside > 0 && `${formatCount(outside, "request")} outside --from and --to`,
    broken > 0 && `${formatCount(broken, "line")} that could not be read`,
    late > 0 && `${formatCount(late, "line")} that came too late (raise --max-delay)`,
  ].filter((reason) => reason !== false);
  const has = reasons.length > 0 ? reasons.join(", ") : `${formatCount(lines, "line")}`;
  const [first] = brokenLines;
  const example = first ? `\n${first.file}:${first.line}: ${first.reason}` : "";
  return new CommandFailure(
    2,
    `${files.join(", ")}: no request was found. The log has ${has}.${example}`,
  );
}

/** How many faults of a configuration are printed. `weir check` prints all. */
const LISTED_FAULTS = 5;

/** A configuration, and its file as the user has written it. */
export interface ConfigFile {
  readonly file: string;
  readonly config: Config;
}

/**
 * Reads a configuration.
 *
 * @param option the option that names the file, for messages
 * @throws {CommandFailure} if it has faults, or if its file cannot be read
 */
export async function readConfig(
  file: string,
  option: "--config" | "--against" = "--config",
): Promise<ConfigFile> {
  const loaded = await loadConfig(file, option);
  if (loaded.kind === "valid") return { file, config: loaded.config };
  if (loaded.kind === "unreadable") {
    throw new CommandFailure(2, `${printable(file)} could not be loaded.\n${loaded.error}`);
  }
  const name = printable(file);
  const { faults } = loaded;
  const listed = faults.slice(0, LISTED_FAULTS).map(({ path, message }) => `  ${path}: ${message}`);
  const more = faults.length > LISTED_FAULTS ? [`  and ${faults.length - LISTED_FAULTS} more`] : [];
  throw new CommandFailure(
    2,
    [
      `${name} has ${formatCount(faults.length, "fault")}. weir check --config ${name} explains them.`,
      ...listed,
      ...more,
    ].join("\n"),
  );
}

/** How a signal, such as Ctrl-C, ends a command. */
interface Interruption {
  /** Aborts when the process gets a signal, such as SIGINT. */
  readonly signal: AbortSignal;
  /** The exit code for the signal that the process got; undefined before that. */
  exitCode(): number | undefined;
}

/** Runs a function that a signal may end early, instead of ending the process at once. */
export async function untilInterrupted<Result>(
  run: (interruption: Interruption) => Promise<Result>,
): Promise<Result> {
  const stopping = new AbortController();
  const interruption = onInterruption((reason) => stopping.abort(reason));
  try {
    return await run({ signal: stopping.signal, exitCode: () => interruption.exitCode() });
  } finally {
    interruption[Symbol.dispose]();
  }
}

/**
 * Opens logs. Even the first bytes of a standard input may not come for long.
 *
 * @throws {CommandFailure} if a signal comes first
 */
export async function openUntilInterrupted(
  options: OpenOptions,
  { signal, exitCode }: Interruption,
): Promise<Logs> {
  try {
    return await openLogs({ ...options, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new CommandFailure(exitCode() ?? 2, "Interrupted before the first request was read.");
  }
}

/**
 * Prints a report after its page is written, so that the exit code is known before a reader of the report could
 * end the command. Without the page, the report itself is still complete.
 *
 * @param report ends with a line break or without one
 * @param writePage undefined without `--html`; not called after an interruption
 * @returns the exit code
 */
export async function printReport(
  report: string,
  { exitCode }: Interruption,
  writePage?: (() => Promise<void>) | undefined,
): Promise<number> {
  const reason = exitCode() === undefined ? await reasonAgainst(writePage) : undefined;
  process.stdout.write(report.endsWith("\n") ? report : `${report}\n`);
  if (reason !== undefined) console.error(reason);
  return exitCode() ?? (reason === undefined ? 0 : 2);
}

/** @returns why the page could not be written */
async function reasonAgainst(writePage: () => Promise<void> = async () => {}) {
  try {
    await writePage();
    return undefined;
  } catch (error) {
    if (error instanceof CommandFailure) return error.message;
    throw error;
  }
}
