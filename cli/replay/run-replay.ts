import { LogError } from "../logs/log-error.ts";
import type { LogCommandOptions } from "../logs/log-options.ts";
import type { Logs } from "../logs/open-logs.ts";
import { startProgressBar } from "../logs/progress-bar.ts";
import { jsonText } from "../print/json-text.ts";
import { createReplayEngine } from "./create-replay-engine.ts";
import { exceededBounds, uncheckedBounds } from "./exceeded-bounds.ts";
import { checkHtmlFile, type HtmlFile, writeHtmlFile } from "./html-file.ts";
import { checkedLogOptions } from "./log-inputs.ts";
import { markdownReport } from "./markdown/markdown-report.ts";
import { printFailure, printReport } from "./print-report.ts";
import { noRequests, ReplayError } from "./replay-error.ts";
import {
  type ConfigFile,
  checkBounds,
  checkLeftOut,
  checkPairs,
  readConfig,
} from "./replay-inputs.ts";
import { type ReplayedConfig, type ReplayInput, replayLogs } from "./replay-logs.ts";
import type { ReplayReport } from "./report.ts";
import { textReport } from "./text/text-report.ts";
import { openUntilInterrupted, untilInterrupted } from "./until-interrupted.ts";

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
    printFailure(error.message, options);
    return error instanceof ReplayError ? error.exitCode : 2;
  }
}

/** @returns the exit code */
async function replay(files: readonly string[], options: ReplayCommandOptions): Promise<number> {
  const { config, against } = options;
  checkPairs(options);
  const logOptions = checkedLogOptions(files, options);
  const replayed = await readConfig(config, options);
  const comparedWith =
    against === undefined ? undefined : await readConfig(against, options, "--against");
  return untilInterrupted(async (interruption) => {
    const inputs = [...files, config, ...(against === undefined ? [] : [against])];
    const html = options.html === undefined ? undefined : await checkHtmlFile(options.html, inputs);
    const logs = await openUntilInterrupted(logOptions, interruption);
    checkBounds(options, logs.facts);
    const withEngine = (given: ConfigFile): ReplayedConfig => ({
      ...given,
      engine: createReplayEngine(given.config, logs.facts, options),
    });
    const withRules = withEngine(replayed);
    checkLeftOut(options, withRules.config, withRules.engine);
    const report = await withProgress(logs, options, {
      ...{ files, logs, isolates: options.isolates, signal: interruption.signal },
      replayed: withRules,
      against: comparedWith && withEngine(comparedWith),
    });
    if (report.log.requests === 0 && !report.isPartial) throw noRequests(report.log);
    const bounded = { ...report, failed: exceededBounds(report, options) };
    const writePage = html && (() => writeReplayPage(html, bounded, interruption.signal));
    const exitCode = await printReport(textOf(bounded, options), interruption, writePage);
    if (exitCode !== 0) return exitCode;
    if (bounded.failed.length > 0) return 1;
    const unchecked = uncheckedBounds(report, options);
    if (unchecked !== undefined) console.error(unchecked);
    return unchecked === undefined ? 0 : 2;
  });
}

async function withProgress(
  logs: Logs,
  { quiet }: ReplayCommandOptions,
  input: ReplayInput,
): Promise<ReplayReport> {
  const bar = startProgressBar(logs.progress, { quiet });
  try {
    return await replayLogs({ ...input, onProgress: () => bar.update() });
  } finally {
    bar.stop();
  }
}

function textOf(report: ReplayReport, { json, markdown }: ReplayCommandOptions): string {
  if (json) return jsonText(report);
  return markdown ? markdownReport(report) : textReport(report);
}

async function writeReplayPage(
  file: HtmlFile,
  report: ReplayReport,
  signal: AbortSignal,
): Promise<void> {
  const { replayPage } = await import("../html/replay-page.ts");
  await writeHtmlFile(file, replayPage(report), signal);
}
