import { formatCount } from "../../src/admin/format.ts";
import { hasConcurrent } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { CommandFailure } from "../command-failure.ts";
import { requireConfig } from "../load-config.ts";
import type { LogFacts } from "../logs/log-request.ts";
import { factNotes, logNotes } from "../logs/needs.ts";
import { checkedLogOptions, type LogOptions } from "../logs/open-logs.ts";
import { summariseLogs } from "../logs/progress.ts";
import { compareRules } from "./compare-rules.ts";
import { ReplayEngine } from "./engine.ts";
import { checkHtmlFile, writeHtmlFile } from "./html-file.ts";
import {
  type ConfigFile,
  forEachRequest,
  type Interruption,
  type LogInput,
  printReport,
  runOnLogs,
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

export interface ReplayInput extends LogInput {
  readonly replayed: ReplayedConfig;
  /** The configuration to compare with. */
  readonly against?: ReplayedConfig | undefined;
}

/** Reads logs once, replays them under one or two configurations, and adds up the verdicts. */
export async function replayLogs(input: ReplayInput): Promise<ReplayReport> {
  const { files, logs, replayed, against, signal } = input;
  const totals = new ReplayTotals(replayed.engine, against?.engine, logs.facts.has("status"));
  await forEachRequest(input, (request) => {
    totals.add(replayed.engine.decide(request), against?.engine.decide(request));
  });
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
 * Checks that clients can be counted, because a bound on unknown clients could never be exceeded.
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

/** Returns the reason why the bounds cannot be checked; undefined if there is none. */
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
  const { config, against, html } = options;
  checkPairs(options);
  const logOptions = checkedLogOptions(files, options);
  const given = { file: config, config: await requireConfig(config) };
  const compared = against !== undefined && {
    file: against,
    config: await requireConfig(against, "--against"),
  };
  if (html !== undefined) await checkHtmlFile(html);
  const rules = [given.config, ...(compared ? [compared.config] : [])].flatMap(
    (each) => each.rules,
  );
  return runOnLogs({
    ...{ files, quiet: options.quiet },
    logOptions: { ...logOptions, withDurations: rules.some(hasConcurrent) },
    async read(input) {
      const { facts } = input.logs;
      checkBounds(options, facts);
      const withEngine = (file: ConfigFile): ReplayedConfig => ({
        ...file,
        engine: new ReplayEngine(file.config, facts, options.missingAsAbsent),
      });
      const replayed = withEngine(given);
      checkLeftOut(options, replayed.config, replayed.engine);
      const report = await replayLogs({
        ...input,
        ...{ replayed, against: compared ? withEngine(compared) : undefined },
      });
      return { ...report, failed: exceededBounds(report, options) };
    },
    print: (report, interruption) => print(report, options, interruption),
  });
}

/**
 * Writes the page, and then prints the report, because the report's reader may end the command. An error of the page
 * does not prevent the report.
 *
 * @returns the exit code
 */
async function print(
  report: ReplayReport,
  options: ReplayCommandOptions,
  interruption: Interruption,
): Promise<number> {
  const { html } = options;
  const isWritten = html !== undefined && interruption.exitCode() === undefined;
  const failure = isWritten ? await writePage(html, report, interruption.signal) : undefined;
  const exitCode = printReport(
    report,
    options,
    { text: textReport, markdown: markdownReport },
    interruption,
  );
  if (failure) console.error(failure.message);
  if (exitCode !== 0 || failure) return exitCode || 2;
  if (report.failed.length > 0) return 1;
  const unchecked = uncheckedBounds(report, options);
  if (unchecked !== undefined) console.error(unchecked);
  return unchecked === undefined ? 0 : 2;
}

/** @returns the reason why the page could not be written */
async function writePage(
  file: string,
  report: ReplayReport,
  signal: AbortSignal,
): Promise<CommandFailure | undefined> {
  const { replayPage } = await import("../html/replay-page.ts");
  try {
    await writeHtmlFile(file, replayPage(report), signal);
    return undefined;
  } catch (error) {
    if (error instanceof CommandFailure) return error;
    throw error;
  }
}
