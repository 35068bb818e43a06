import { onInterruption } from "../doctor/interruption.ts";
import { type LogOptions, type OpenLogs, openLogs } from "../logs/open-logs.ts";
import { checkMapOf } from "./log-inputs.ts";
import { ReplayError } from "./replay-error.ts";

/** How a signal, such as Ctrl-C, ends a command. */
export interface Interruption {
  /** Aborted when the signal comes. */
  readonly signal: AbortSignal;
  /** The exit code of the signal; undefined before it comes. */
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
 * @throws {ReplayError} if a signal comes first, or if `--map` is of no use
 * @throws {LogError}
 */
export async function openUntilInterrupted(
  options: LogOptions,
  { signal, exitCode }: Interruption,
): Promise<OpenLogs> {
  try {
    const logs = await openLogs({ ...options, signal });
    checkMapOf(options, logs);
    return logs;
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ReplayError(exitCode() ?? 2, "Interrupted before the first request was read.");
  }
}
