import { formatCount } from "../../src/admin/format.ts";
import type { Config } from "../../src/config/schema.ts";
import { CommandFailure } from "../command-failure.ts";
import { onInterruption } from "../interruption.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type Logs, type OpenOptions, openLogs } from "../logs/open-logs.ts";
import { type LogSummary, startProgressLine } from "../logs/progress.ts";
import { jsonText } from "../print/text.ts";

// The parts that replay and suggest share: options about logs, a configuration, interruptions, and the printing of a
// report.

/**
 * Returns the error for logs without a request to replay, so that a pipeline does not take an empty report for success.
 */
export function noRequests({
  files,
  lines,
  broken,
  outside,
  brokenLines,
}: LogSummary): CommandFailure {
  const reasons = [
    outside > 0 && `${formatCount(outside, "request")} outside --from and --to`,
    broken > 0 && `${formatCount(broken, "line")} that could not be read`,
  ].filter((reason) => reason !== false);
  const has = reasons.length > 0 ? reasons.join(", ") : `${formatCount(lines, "line")}`;
  const [first] = brokenLines;
  const example = first ? `\n${first.file}:${first.line}: ${first.reason}` : "";
  return new CommandFailure(
    2,
    `${files.join(", ")}: no request was found. The log has ${has}.${example}`,
  );
}

/** A configuration, and its file as the user has written it. */
export interface ConfigFile {
  readonly file: string;
  readonly config: Config;
}

/** How a signal, such as Ctrl-C, ends a command. */
export interface Interruption {
  /** Aborts when the process gets a signal, such as SIGINT. */
  readonly signal: AbortSignal;
  /** The exit code for the signal that the process got; undefined before that. */
  exitCode(): number | undefined;
}

/** Logs that a command reads. */
export interface LogInput {
  /** The files as the user has written them. */
  readonly files: readonly string[];
  readonly logs: Logs;
  /** Ends the reading. The report is then about the requests until that moment. */
  readonly signal?: AbortSignal;
  /** Called after each batch of requests. */
  readonly onProgress?: () => void;
}

export async function forEachRequest(
  { logs, onProgress }: LogInput,
  visit: (request: LogRequest) => void,
): Promise<void> {
  for await (const requests of logs.batches()) {
    for (const request of requests) visit(request);
    onProgress?.();
  }
}

interface LogReport {
  readonly log: LogSummary;
  readonly isPartial?: true | undefined;
}

/** How a command reports on logs. */
export interface LogCommand<Report extends LogReport> {
  readonly files: readonly string[];
  readonly logOptions: OpenOptions;
  readonly quiet?: true | undefined;
  read(input: LogInput): Promise<Report>;
  /** @returns the exit code */
  print(report: Report, interruption: Interruption): number;
}

/**
 * Reads logs and prints a report on them. A signal ends the reading, instead of ending the process at once.
 *
 * @returns the exit code
 * @throws {CommandFailure}
 */
export async function runOnLogs<Report extends LogReport>({
  files,
  logOptions,
  quiet,
  read,
  print,
}: LogCommand<Report>): Promise<number> {
  const stopping = new AbortController();
  const onSignal = onInterruption((reason) => stopping.abort(reason));
  const { signal } = stopping;
  const interruption = { signal, exitCode: () => onSignal.exitCode() };
  try {
    const logs = await openUntilInterrupted(logOptions, interruption);
    const line = startProgressLine(logs.progress, quiet);
    let report: Report;
    try {
      report = await read({ files, logs, signal, onProgress: () => line.update() });
    } finally {
      line.stop();
    }
    if (report.log.requests === 0 && !report.isPartial) throw noRequests(report.log);
    return print(report, interruption);
  } finally {
    onSignal[Symbol.dispose]();
  }
}

/** A signal also ends the wait for the first bytes of a standard input. */
async function openUntilInterrupted(
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

/** Prints a report as text, or as JSON. @returns the exit code */
export function printReport<Report>(
  report: Report,
  isJson: boolean | undefined,
  textOf: (report: Report) => string,
  { exitCode }: Interruption,
): number {
  process.stdout.write(`${isJson ? jsonText(report) : textOf(report)}\n`);
  return exitCode() ?? 0;
}
