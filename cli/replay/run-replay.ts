import { formatCount } from "../../src/admin/format.ts";
import { hasConcurrent } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { CommandFailure } from "../command-failure.ts";
import { requireConfig } from "../load-config.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { factNotes, logNotes, type ReportNote } from "../logs/needs.ts";
import { checkedLogOptions, type LogOptions } from "../logs/open-logs.ts";
import { summariseLogs } from "../logs/progress.ts";
import { ReplayEngine, type ReplayedRequest } from "./engine.ts";
import {
  type ConfigFile,
  forEachRequest,
  type Interruption,
  type LogInput,
  printReport,
  runOnLogs,
} from "./inputs.ts";
import type { FailedBound, ReplayReport } from "./report.ts";
import { textReport } from "./text-report.ts";
import { ReplayTotals } from "./totals.ts";

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
  const totals = new ReplayTotals(replayed.engine, logs.facts.has("status"));
  await forEachRequest(input, (request) => {
    if (against) decideBoth(request, [replayed.engine, against.engine], totals);
    else replayed.engine.decide(request, (decided) => totals.add(decided));
  });
  for (const { engine } of [replayed, ...(against ? [against] : [])]) engine.end();
  const isPartial = signal?.aborted || undefined;
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
      ...totals.notes(),
      ...replayed.engine.notes,
    ],
    ...sums,
    leftOut: replayed.engine.leftOut,
    comparison: against && {
      against: against.file,
      leftOut: against.engine.leftOut,
      notes: [...unfairNotes(replayed, against), ...against.engine.notes],
      ...totals.comparison(),
    },
  };
}

/** Returns a note for each rule that was left out under only one configuration, which makes the comparison unfair. */
function unfairNotes(...configs: readonly [ReplayedConfig, ReplayedConfig]): ReportNote[] {
  const [now, before] = configs.map(({ engine }) => engine.leftOut.map(({ rule }) => rule));
  return configs.flatMap(({ file, engine }, index) => {
    const leftOutThere = index === 0 ? before : now;
    return engine.leftOut
      .filter(({ rule }) => !leftOutThere?.includes(rule))
      .map(({ rule }) => ({
        ...{ code: "unfair-comparison", rule },
        text: `The rule "${rule}" is left out of ${file} alone. So the comparison is not fair: it does not show the requests that only this rule denies there.`,
      }));
  });
}

/** Under either configuration, a request may wait for its turn, so one of the verdicts may come later. */
function decideBoth(
  request: LogRequest,
  [now, before]: readonly [ReplayEngine, ReplayEngine],
  totals: ReplayTotals,
): void {
  let decidedNow: ReplayedRequest | undefined;
  let decidedBefore: ReplayedRequest | undefined;
  const addBoth = () => {
    if (decidedNow && decidedBefore) totals.add(decidedNow, decidedBefore);
  };
  now.decide(request, (decided) => {
    decidedNow = decided;
    addBoth();
  });
  before.decide(request, (decided) => {
    decidedBefore = decided;
    addBoth();
  });
}

/** The options of the command `replay`. */
export interface ReplayCommandOptions extends LogOptions {
  readonly config: string;
  readonly against?: string;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly json?: true;
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
  const { config, against } = options;
  checkPairs(options);
  const logOptions = checkedLogOptions(files, options);
  const given = { file: config, config: await requireConfig(config) };
  const compared = against !== undefined && {
    file: against,
    config: await requireConfig(against, "--against"),
  };
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

/** @returns the exit code */
function print(
  report: ReplayReport,
  options: ReplayCommandOptions,
  interruption: Interruption,
): number {
  const exitCode = printReport(report, options.json, textReport, interruption);
  if (exitCode !== 0) return exitCode;
  if (report.failed.length > 0) return 1;
  const unchecked = uncheckedBounds(report, options);
  if (unchecked !== undefined) console.error(unchecked);
  return unchecked === undefined ? 0 : 2;
}
