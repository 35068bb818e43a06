import type { Logs } from "../logs/open-logs.ts";
import { LogPeriod, summariseLogs } from "../logs/summarise-logs.ts";
import { logNotes } from "../replay/log-notes.ts";
import { noRequests } from "../replay/replay-error.ts";
import { buildSuggestion } from "./build-suggestion.ts";
import { ClientReader } from "./client-reader.ts";
import { logNeeds } from "./log-needs.ts";
import { notesAbout } from "./notes.ts";
import { RefusedOption } from "./refused-option.ts";
import type { RequestedRule } from "./requested-rule.ts";
import { ruleText } from "./rule-text.ts";
import { SuggestTally } from "./suggest-tally.ts";
import type { Suggestion } from "./suggestion.ts";

export interface SuggestInput {
  /** The files as the user has written them. */
  readonly files: readonly string[];
  readonly logs: Logs;
  readonly requested: RequestedRule;
  /** Treat values that the log does not state as absent. */
  readonly missingAsAbsent?: boolean | undefined;
  /** Ends the reading, so that the report is about the requests until then. */
  readonly signal?: AbortSignal;
  /** Is called after each batch of requests. */
  readonly onProgress?: () => void;
}

/**
 * Reads logs, and returns the limits that they suggest for a rule.
 *
 * @throws {RefusedOption} if the logs lack what the rule needs
 * @throws {ReplayError} if the logs have no requests
 * @throws {LogError} if a log cannot be read
 */
export async function suggestFromLogs(input: SuggestInput): Promise<Suggestion> {
  const { files, logs, requested, missingAsAbsent = false } = input;
  const { rule, config, windows } = requested;
  const { refusal, notes: absentNotes } = logNeeds(requested, logs.facts, missingAsAbsent);
  if (refusal !== undefined) throw await errorFor(refusal, input);
  const reader = new ClientReader(rule, config, logs.facts, missingAsAbsent);
  const tally = new SuggestTally(windows, { separateBots: rule.match.bots === undefined });
  const period = await countAll(input, reader, tally);
  const isPartial = input.signal?.aborted || undefined;
  const suggestion = buildSuggestion(requested, tally, summariseLogs(files, logs, period));
  const notes = [
    ...logNotes(logs.progress, isPartial),
    ...absentNotes,
    ...notesAbout(requested, suggestion, logs.facts, reader),
  ];
  return {
    ...suggestion,
    isPartial,
    notes,
    config: requested.file,
    rule: ruleText(requested, suggestion.windows, suggestion.clients),
  };
}

/** A log without requests states nothing, and naming a field of it would not help. */
async function errorFor(refusal: string, { files, logs }: SuggestInput): Promise<Error> {
  const { ip, status, host } = logs.facts;
  if (ip || status || host) return new RefusedOption(refusal);
  for await (const _ of logs.batches()) return new RefusedOption(refusal);
  return noRequests(summariseLogs(files, logs, new LogPeriod()));
}

/** @returns the time from the first request to the last one */
async function countAll(
  { logs, signal, onProgress }: SuggestInput,
  reader: ClientReader,
  tally: SuggestTally,
): Promise<LogPeriod> {
  const period = new LogPeriod();
  for await (const requests of logs.batches(signal)) {
    const [first, last] = [requests[0], requests.at(-1)];
    if (first && last) period.add(first.at, last.at);
    for (const request of requests) {
      const client = reader.clientOf(request);
      if (client) tally.add(request, client);
    }
    onProgress?.();
  }
  return period;
}
