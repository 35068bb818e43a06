import { onInterruption } from "../doctor/interruption.ts";
import { LogError } from "../logs/log-error.ts";
import type { LogCommandOptions } from "../logs/log-options.ts";
import { type Logs, openLogs } from "../logs/open-logs.ts";
import { startProgressBar } from "../logs/progress-bar.ts";
import { jsonText } from "../print/json-text.ts";
import { createReplayEngine } from "./create-replay-engine.ts";
import { exceededBounds } from "./exceeded-bounds.ts";
import { checkHtmlFile, writeHtmlFile } from "./html-file.ts";
import { markdownReport } from "./markdown/markdown-report.ts";
import { noRequests, ReplayError } from "./replay-error.ts";
import { type ConfigFile, checkBounds, checkedLogOptions, readConfig } from "./replay-inputs.ts";
import { type ReplayedConfig, type ReplayInput, replayLogs } from "./replay-logs.ts";
import type { ReplayReport } from "./report.ts";
import { textReport } from "./text/text-report.ts";

/** The options of the command `replay`. */
export interface ReplayCommandOptions extends LogCommandOptions {
  readonly config: string;
  readonly against?: string;
  readonly isolates?: number;
  readonly seed?: number;
  readonly missingAsAbsent?: true;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly json?: true;
  readonly markdown?: true;
  readonly html?: string;
  readonly quiet?: true;
}

/**
 * Replays logs and prints the report.
 *
 * @param files the logs
 * @returns the exit code
 */
export async function runReplay(
  files: readonly string[],
  options: ReplayCommandOptions,
): Promise<number> {
  try {
    return await replay(files, options);
  } catch (error) {
    if (!(error instanceof ReplayError || error instanceof LogError)) throw error;
    const { message } = error;
    if (options.json) console.log(jsonText({ ok: false, error: message }));
    else console.error(message);
    return error instanceof ReplayError ? error.exitCode : 2;
  }
}

/** @returns the exit code */
async function replay(files: readonly string[], options: ReplayCommandOptions): Promise<number> {
  const { config, against, html } = options;
  const logOptions = checkedLogOptions(files, options);
  if (html !== undefined) await checkHtmlFile(html);
  const replayed = await readConfig(config, options);
  const comparedWith = against === undefined ? undefined : await readConfig(against, options);
  const logs = await openLogs(logOptions);
  checkBounds(options, logs.facts);
  const withEngine = (given: ConfigFile): ReplayedConfig => ({
    ...given,
    engine: createReplayEngine(given.config, logs.facts, options),
  });
  const { report, signalCode } = await interruptible(logs, options, {
    files,
    logs,
    replayed: withEngine(replayed),
    against: comparedWith && withEngine(comparedWith),
    isolates: options.isolates,
  });
  if (report.log.requests === 0 && signalCode === undefined) throw noRequests(report.log);
  const bounded = { ...report, failed: exceededBounds(report, options) };
  print(bounded, options);
  if (signalCode !== undefined) return signalCode;
  if (html !== undefined && !(await hasWritten(html, bounded))) return 2;
  return bounded.failed.length > 0 ? 1 : 0;
}

/** Replays logs until their end or until a signal. */
async function interruptible(
  logs: Logs,
  { quiet }: ReplayCommandOptions,
  input: ReplayInput,
): Promise<{ report: ReplayReport; signalCode: number | undefined }> {
  const stopping = new AbortController();
  const interruption = onInterruption((reason) => stopping.abort(reason));
  const bar = startProgressBar(logs.progress, { quiet });
  try {
    const { signal } = stopping;
    const report = await replayLogs({ ...input, signal, onProgress: () => bar.update() });
    return { report, signalCode: interruption.exitCode() };
  } finally {
    bar.stop();
    interruption[Symbol.dispose]();
  }
}

function print(report: ReplayReport, { json, markdown }: ReplayCommandOptions): void {
  if (json) console.log(jsonText(report));
  else if (markdown) process.stdout.write(markdownReport(report));
  else console.log(textReport(report));
}

/** Writes the page. An error is printed, because the report itself is complete. */
async function hasWritten(file: string, report: ReplayReport): Promise<boolean> {
  const { replayPage } = await import("../html/replay-page.ts");
  try {
    await writeHtmlFile(file, replayPage(report));
    return true;
  } catch (error) {
    if (!(error instanceof ReplayError)) throw error;
    console.error(error.message);
    return false;
  }
}
