import { formatCount } from "../../src/admin/format.ts";
import type { Config } from "../../src/config/schema.ts";
import { LogError, type LogFacts } from "../logs/log-request.ts";
import { factNotes, logNotes, type ReportNote } from "../logs/needs.ts";
import type { LogCommandOptions, Logs } from "../logs/open-logs.ts";
import { startProgressBar } from "../logs/progress.ts";
import { LogPeriod, summariseLogs } from "../logs/summarise-logs.ts";
import { jsonText } from "../print/text.ts";
import { Random } from "../simulation/random.ts";
import { chooseRules, compareRules, replayedRuleOf } from "./compare-rules.ts";
import { ExactEngine } from "./exact-engine.ts";
import {
  type ConfigFile,
  checkBounds,
  checkedLogOptions,
  checkHtmlFile,
  checkLeftOut,
  checkPairs,
  exceededBounds,
  type HtmlFile,
  noRequests,
  openUntilInterrupted,
  printFailure,
  printReport,
  ReplayError,
  readConfig,
  uncheckedBounds,
  untilInterrupted,
  writeHtmlFile,
} from "./inputs.ts";
import { ASSUMED, IsolatesEngine } from "./isolates.ts";
import { markdownReport } from "./markdown-report.ts";
import {
  type CreateReplayEngine,
  type ReplayEngine,
  type ReplayOptions,
  type ReplayReport,
  withoutStatuses,
} from "./report.ts";
import { RowTable } from "./row-table.ts";
import { LogRuleApplier } from "./rule-applier.ts";
import { ReplayTally } from "./tally.ts";
import { textReport } from "./text-report.ts";
import { costReport } from "./usage.ts";

const DEFAULT_SEED = 1;

/** Creates the engine for a configuration, and decides which rules the log's facts suffice for. */
export const createReplayEngine: CreateReplayEngine = (
  config: Config,
  facts: LogFacts,
  options: ReplayOptions,
): ReplayEngine => {
  const { isolates, seed = DEFAULT_SEED } = options;
  const { rules, leftOut, notes } = chooseRules(config, facts, options);
  const laterNotes: ReportNote[] = [];
  const shardChoice = new Random(seed, "shards");
  const random = () => shardChoice.uniform();
  const rows = new RowTable();
  // In isolates, clients have no rows, because the simulated store has them.
  const ownRows = isolates === undefined ? rows : undefined;
  const applier = new LogRuleApplier(config, rules, facts, options, random, ownRows);
  const engine =
    isolates === undefined
      ? new ExactEngine(config, rules, applier, rows)
      : new IsolatesEngine(config, applier, isolates, seed);
  return {
    rules: rules.map(replayedRuleOf),
    notes: [...notes, ...callNotes(config, isolates, seed)],
    leftOut,
    laterNotes,
    replay: (requests, onDecided) => engine.replay(requests, onDecided),
    async finish() {
      const usage = await engine.finish();
      laterNotes.push(...applier.notes());
      if (engine instanceof IsolatesEngine) laterNotes.push(...lostNotes(engine));
      return usage;
    },
  };
};

/** Notes about the calls to the store. The store in memory costs nothing. */
function callNotes({ store }: Config, isolates: number | undefined, seed: number): ReportNote[] {
  if (isolates !== undefined) return [assumptionsAbout(isolates, seed)];
  return store === "memory" ? [] : [EXACT_CALLS];
}

const EXACT_CALLS: ReportNote = {
  code: "calls-without-leases",
  text: "Each decision counts as one call to the store. Leases and the denial cache of a Worker make fewer calls: --isolates simulates them.",
};

function assumptionsAbout(isolates: number, seed: number): ReportNote {
  const { roundTripMs, routing, deathsPerMinute } = ASSUMED;
  const parts = [
    `calls to the store take ${roundTripMs} ms on average`,
    `${100 * (1 - routing.strays)}% of a client's requests go to its home isolate, which changes every ${1 / routing.movesPerMinute} minutes`,
    `${100 * deathsPerMinute}% of the isolates end in a minute`,
  ];
  const text = `Simulates ${formatCount(isolates, "isolate")} with the seed ${seed}. The log does not state these assumptions: ${parts.join("; ")}.`;
  return { code: "simulated-isolates", text };
}

function lostNotes({ lostWithIsolate }: IsolatesEngine): ReportNote[] {
  if (lostWithIsolate === 0) return [];
  const text = `${formatCount(lostWithIsolate, "request")} waited in isolates that ended, and count as undecided.`;
  return [{ code: "lost-with-isolate", text }];
}

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
  readonly isolates?: number | undefined;
  /** Up to this number of clients, numbers of clients are exact. By default, it depends on the rules. */
  readonly maxClients?: number | undefined;
  /** Ends the reading. The report is then about the lines that have been read until that moment. */
  readonly signal?: AbortSignal;
  /** Called after each batch of requests. */
  readonly onProgress?: () => void;
}

/** Replays logs under one or two configurations, reading them once, and adds up the verdicts. */
export async function replayLogs(input: ReplayInput): Promise<ReplayReport> {
  const { files, logs, replayed, against, isolates, signal } = input;
  const tally = new ReplayTally(replayed.engine, against?.engine, input.maxClients);
  const period = await replayAll(input, tally);
  const usage = await replayed.engine.finish();
  const usageBefore = await against?.engine.finish();
  const isPartial = signal?.aborted || undefined;
  const costOf = (used: typeof usage, { config }: ReplayedConfig) =>
    costReport(used, config.store, period.lengthMs);
  const sums = tally.report();
  const report: ReplayReport = {
    version: 1,
    log: summariseLogs(files, logs, period),
    config: replayed.file,
    isolates,
    isPartial,
    failed: [],
    notes: [
      ...factNotes(logs.facts),
      ...logNotes(logs.progress, isPartial),
      ...notesOf(replayed.engine),
    ],
    ...sums,
    cost: costOf(usage, replayed),
    leftOut: leftOutOf(replayed.engine),
    comparison: against &&
      tally.comparison && {
        against: against.file,
        leftOut: leftOutOf(against.engine),
        ...compareRules(replayed, against, tally, sums.rules),
        ...tally.comparison.report(),
        costBefore: usageBefore && costOf(usageBefore, against),
      },
  };
  return logs.facts.status ? report : withoutStatuses(report);
}

/** @returns the time from the first request to the last one */
async function replayAll(input: ReplayInput, tally: ReplayTally): Promise<LogPeriod> {
  const { logs, replayed, against, onProgress } = input;
  const period = new LogPeriod();
  for await (const requests of logs.batches()) {
    const [first, last] = [requests[0], requests.at(-1)];
    if (first === undefined || last === undefined) continue;
    period.add(first.at, last.at);
    tally.begin(first.at);
    await replayed.engine.replay(requests, (decided) => tally.add(decided));
    await against?.engine.replay(requests, (decided) => tally.comparison?.addBefore(decided));
    onProgress?.();
  }
  return period;
}

function notesOf({ notes, laterNotes }: ReplayEngine): ReportNote[] {
  return [...notes, ...laterNotes];
}

function leftOutOf({ leftOut, notes }: ReplayEngine): { rule: string; reason: string }[] {
  return leftOut.map((rule) => {
    const start = `The rule "${rule}" is left out. `;
    const texts = notes.filter((note) => note.rule === rule).map(({ text }) => text);
    const reasons = texts.map((text) => (text.startsWith(start) ? text.slice(start.length) : text));
    return { rule, reason: reasons.join(" ") };
  });
}

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
