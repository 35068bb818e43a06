import type { Config } from "../../src/config/schema.ts";
import { OBJECTS } from "../logs/log-file.ts";
import type { OpenLogs } from "../logs/open-logs.ts";
import type { RequestForm } from "../logs/request-form.ts";
import { LogPeriod, summariseLogs } from "../logs/summarise-logs.ts";
import { compareRules } from "./compare-rules.ts";
import { costReport } from "./cost-report.ts";
import { factNotes, logNotes } from "./log-notes.ts";
import type { ReplayEngine, ReplayNote } from "./replay-engine.ts";
import type { ReplayReport } from "./report.ts";
import { ReplayTally } from "./tally/replay-tally.ts";
import { withoutStatuses } from "./unknown-statuses.ts";

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
  readonly logs: OpenLogs;
  readonly replayed: ReplayedConfig;
  /** The configuration to compare with. */
  readonly against?: ReplayedConfig | undefined;
  readonly isolates?: number | undefined;
  /** Whether `ReplayEngine.compact` is used where it is possible; true by default. */
  readonly isCompact?: boolean;
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
  const { logs, replayed, against, isCompact = true } = input;
  const { compact } = replayed.engine;
  const hasUsualLines = logs.formats.every((format) => format === "combined");
  if (compact && isCompact && hasUsualLines && !against) {
    return replayEach(input, tally, compact.form, (rows) => compact.replay(rows, tally));
  }
  return replayEach(input, tally, OBJECTS, async (requests) => {
    await replayed.engine.replay(requests, (decided) => tally.add(decided));
    await against?.engine.replay(requests, (decided) => tally.comparison?.addBefore(decided));
  });
}

/** Replays each batch of requests. @param form how the requests are kept until then */
async function replayEach<Request>(
  { logs, signal, onProgress }: ReplayInput,
  tally: ReplayTally,
  form: RequestForm<Request>,
  replay: (requests: readonly Request[]) => void | Promise<void>,
): Promise<LogPeriod> {
  const period = new LogPeriod();
  for await (const requests of logs.batchesIn(form, signal)) {
    const [first, last] = [requests[0], requests.at(-1)];
    if (first === undefined || last === undefined) continue;
    period.add(form.timeOf(first), form.timeOf(last));
    tally.begin(form.timeOf(first));
    await replay(requests);
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
