import type { Config } from "../../src/config/schema.ts";
import type { Logs } from "../logs/open-logs.ts";
import { LogPeriod, summariseLogs } from "../logs/summarise-logs.ts";
import { compareRules } from "./compare-rules.ts";
import { costReport } from "./cost-report.ts";
import { factNotes, logNotes } from "./log-notes.ts";
import type { ReplayEngine, ReplayNote } from "./replay-engine.ts";
import type { ReplayReport } from "./report.ts";
import { ReplayTally } from "./tally/replay-tally.ts";

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
  /** Ends the reading. The report is then about the lines that have been read until that moment. */
  readonly signal?: AbortSignal;
  /** Called after each batch of requests. */
  readonly onProgress?: () => void;
}

/** Replays logs under one or two configurations, reading them once, and adds up the verdicts. */
export async function replayLogs(input: ReplayInput): Promise<ReplayReport> {
  const { files, logs, replayed, against, isolates, signal } = input;
  const tally = new ReplayTally(replayed.engine, against?.engine);
  const period = await replayAll(input, tally);
  const usage = await replayed.engine.finish();
  const usageBefore = await against?.engine.finish();
  const isPartial = signal?.aborted || undefined;
  const costOf = (used: typeof usage, { config }: ReplayedConfig) =>
    costReport(used, config.store, period.lengthMs);
  const sums = tally.report();
  return {
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
}

/** @returns the time from the first request to the last one */
async function replayAll(
  { logs, replayed, against, signal, onProgress }: ReplayInput,
  tally: ReplayTally,
): Promise<LogPeriod> {
  const period = new LogPeriod();
  for await (const requests of logs.batches(signal)) {
    period.add(requests);
    tally.begin(requests);
    await replayed.engine.replay(requests, (decided) => tally.add(decided));
    await against?.engine.replay(requests, (decided) => tally.comparison?.addBefore(decided));
    onProgress?.();
  }
  return period;
}

function notesOf({ notes, laterNotes }: ReplayEngine): ReplayNote[] {
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
