import { formatCount } from "../../src/admin/format.ts";
import type { Config } from "../../src/config/schema.ts";
import { CommandFailure } from "../command-failure.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { factNotes, logNotes } from "../logs/needs.ts";
import { checkedLogOptions, type LogOptions, type Logs } from "../logs/open-logs.ts";
import { startProgressLine, summariseLogs } from "../logs/progress.ts";
import { jsonText } from "../print/text.ts";
import { compareRules } from "./compare-rules.ts";
import { ReplayEngine } from "./engine.ts";
import { checkHtmlFile, type HtmlFile, writeHtmlFile } from "./html-file.ts";
import {
  type ConfigFile,
  noRequests,
  openUntilInterrupted,
  printReport,
  readConfig,
  untilInterrupted,
} from "./inputs.ts";
import { markdownReport } from "./markdown-report.ts";
import type { FailedBound, ReplayReport } from "./report.ts";
import { textReport } from "./text-report.ts";
import { ReplayTotals } from "./totals.ts";
import { costReport } from "./usage.ts";

/** A configuration, and the engine that replays it. */
export interface ReplayedConfig {
  /** The file as the user has written it. */
  readonly file: string;
  readonly config: Config;
  readonly engine: ReplayEngine;
}

export interface ReplayInput {
  /** The logs' files as the user has written them. */
  readonly files: readonly string[];
  readonly logs: Logs;
  readonly replayed: ReplayedConfig;
  /** The configuration to compare with. */
  readonly against?: ReplayedConfig | undefined;
  /** Ends the reading. The report is then about the lines that have been read until that moment. */
  readonly signal?: AbortSignal;
  /** Called after each batch of requests. */
  readonly onProgress?: () => void;
}

/** Replays logs under one or two configurations, reading them once, and adds up the verdicts. */
export async function replayLogs(input: ReplayInput): Promise<ReplayReport> {
  const { files, logs, replayed, against, signal } = input;
  const totals = new ReplayTotals(replayed.engine, against?.engine, logs.facts.has("status"));
  await replayAll(input, totals);
  const isPartial = signal?.aborted || undefined;
  const { firstAt = 0, lastAt = 0 } = logs.progress;
  const costOf = ({ config, engine }: ReplayedConfig) =>
    costReport(engine.usage, config.store, lastAt - firstAt);
  const sums = totals.report();
  return {
    version: 1,
    log: summariseLogs(files, logs),
    config: replayed.file,
    isPartial,
    failed: [],
    notes: [
      ...factNotes(logs.facts),
      ...logNotes(logs.progress, isPartial),
      ...replayed.engine.notes,
    ],
    ...sums,
    cost: costOf(replayed),
    leftOut: replayed.engine.leftOut,
    comparison: against &&
      totals.comparison && {
        against: against.file,
        leftOut: against.engine.leftOut,
        ...compareRules(replayed, against, totals, sums.rules),
        ...totals.comparison.report(),
        costBefore: costOf(against),
      },
  };
}

async function replayAll(input: ReplayInput, totals: ReplayTotals): Promise<void> {
  const { logs, replayed, against, onProgress } = input;
  for await (const requests of logs.batches()) {
    for (const request of requests) {
      totals.add(replayed.engine.decide(request), against?.engine.decide(request));
    }
    onProgress?.();
  }
}

/** The options of the command `replay`. */
export interface ReplayCommandOptions extends LogOptions {
  readonly config: string;
  readonly against?: string;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly json?: true;
  readonly markdown?: true;
  readonly html?: string;
  readonly quiet?: true;
}

type Bounds = Pick<ReplayCommandOptions, "maxDenied" | "maxNewlyDenied">;

function hasBound({ maxDenied, maxNewlyDenied }: Bounds): boolean {
  return maxDenied !== undefined || maxNewlyDenied !== undefined;
}

/** @throws {CommandFailure} if an option needs another one */
function checkPairs({ maxNewlyDenied, against }: ReplayCommandOptions): void {
  if (maxNewlyDenied !== undefined && against === undefined) {
    throw new CommandFailure(
      1,
      "--max-newly-denied compares two configurations. Name the other one with --against <file>.",
    );
  }
}

/**
 * Checks that clients can be counted, because otherwise no bound could ever be exceeded.
 *
 * @throws {CommandFailure} if there is a bound, and the log does not state addresses
 */
export function checkBounds(bounds: Bounds, facts: LogFacts): void {
  if (facts.has("ip") || !hasBound(bounds)) return;
  throw new CommandFailure(
    2,
    "--max-denied and --max-newly-denied count clients by their addresses, but the log does not state addresses. For JSON lines, name their field, such as --map ip=client.address.",
  );
}

/**
 * Checks that all enforced rules are replayed if there is a bound, because a rule that is left out denies nobody.
 *
 * @throws {CommandFailure} if there is a bound, and an enforced rule is left out
 */
function checkLeftOut(
  bounds: Bounds,
  { rules }: Config,
  { leftOut, notes }: Pick<ReplayEngine, "leftOut" | "notes">,
): void {
  if (!hasBound(bounds)) return;
  const isLeftOut = (name: string) => leftOut.some(({ rule }) => rule === name);
  const enforced = rules.filter(({ name, mode }) => mode === "enforce" && isLeftOut(name));
  const [first] = enforced;
  if (!first) return;
  const reasons = notes.filter(({ rule }) => rule === first.name).map(({ text }) => text);
  const others =
    enforced.length > 1 ? [`${formatCount(enforced.length - 1, "more rule")} left out.`] : [];
  throw new CommandFailure(
    2,
    [
      "--max-denied and --max-newly-denied need all enforced rules, but the log does not suffice for each of them.",
      ...reasons,
      ...others,
    ].join("\n"),
  );
}

/** Returns the bounds that a replay has exceeded. Clients are counted by their addresses. */
function exceededBounds(
  { total, comparison }: ReplayReport,
  { maxDenied, maxNewlyDenied }: Bounds,
): FailedBound[] {
  const bounds = [
    { option: "--max-denied", allowed: maxDenied, clients: total.clientsDenied },
    {
      option: "--max-newly-denied",
      allowed: maxNewlyDenied,
      clients: comparison?.clients.newlyDenied ?? 0,
    },
  ] as const;
  return bounds.flatMap(({ option, allowed, clients }) =>
    allowed !== undefined && clients > allowed ? [{ option, allowed, clients }] : [],
  );
}

/** Returns why the bounds cannot be checked; undefined if they can be, or if there is none. */
function uncheckedBounds({ log }: Pick<ReplayReport, "log">, bounds: Bounds): string | undefined {
  if (!log.isIncomplete || !hasBound(bounds)) return;
  return "--max-denied and --max-newly-denied need the whole log, but a file could not be read to its end. The rest may have more denied clients. The notes of the report name the file.";
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
  const { config, against } = options;
  checkPairs(options);
  const logOptions = checkedLogOptions(files, options);
  const replayed = await readConfig(config);
  const comparedWith = against === undefined ? undefined : await readConfig(against, "--against");
  return untilInterrupted(async (interruption) => {
    const inputs = [...files, config, ...(against === undefined ? [] : [against])];
    const html = options.html === undefined ? undefined : await checkHtmlFile(options.html, inputs);
    const logs = await openUntilInterrupted(logOptions, interruption);
    checkBounds(options, logs.facts);
    const withEngine = (given: ConfigFile): ReplayedConfig => ({
      ...given,
      engine: new ReplayEngine(given.config, logs.facts, options.missingAsAbsent),
    });
    const withRules = withEngine(replayed);
    checkLeftOut(options, withRules.config, withRules.engine);
    const report = await withProgress(logs, options, {
      ...{ files, logs, signal: interruption.signal },
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
  const line = startProgressLine(logs.progress, quiet);
  try {
    return await replayLogs({ ...input, onProgress: () => line.update() });
  } finally {
    line.stop();
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
