import { CommandFailure } from "../command-failure.ts";
import { logNotes } from "../logs/needs.ts";
import { checkedLogOptions, type LogOptions } from "../logs/open-logs.ts";
import { summariseLogs } from "../logs/progress.ts";
import {
  forEachRequest,
  type LogInput,
  noRequests,
  printReport,
  runOnLogs,
} from "../replay/inputs.ts";
import { LogRules } from "../replay/log-rules.ts";
import { ClientCounts } from "./counts.ts";
import { logNeeds, notesAbout } from "./notes.ts";
import { suggestionText } from "./report.ts";
import { type RequestedRule, type RuleOptions, requestedRule } from "./requested-rule.ts";
import { ruleText } from "./rule-text.ts";
import { buildSuggestion, type Suggestion } from "./suggestion.ts";

export interface SuggestInput extends LogInput {
  readonly requested: RequestedRule;
  /** Treat values that the log does not state as absent. */
  readonly missingAsAbsent?: boolean | undefined;
}

/**
 * Reads logs, and returns the limits that they suggest for a rule.
 *
 * @throws {CommandFailure} if the logs lack what the rule needs
 * @throws {CommandFailure} if the logs have no requests
 * @throws {CommandFailure} if a log cannot be read
 */
export async function suggestFromLogs(input: SuggestInput): Promise<Suggestion> {
  const { files, logs, requested, missingAsAbsent = false } = input;
  const { rule, config, windows } = requested;
  const { refusal, notes: absentNotes } = logNeeds(requested, logs.facts, missingAsAbsent);
  if (refusal !== undefined) throw await errorFor(refusal, input);
  const reader = new LogRules(config, [rule], logs.facts, missingAsAbsent);
  const counts = new ClientCounts(windows);
  await forEachRequest(input, (request) => {
    const [client] = reader.clientsOf(request) ?? [];
    if (client) counts.add(request, client.identity, client.text);
  });
  const isPartial = input.signal?.aborted || undefined;
  const suggestion = buildSuggestion(requested, counts, summariseLogs(files, logs));
  const notes = [
    ...logNotes(logs.progress, isPartial),
    ...absentNotes,
    ...notesAbout(requested, suggestion, logs.facts, reader),
  ];
  return {
    ...suggestion,
    isPartial,
    notes,
    rule: ruleText(requested, suggestion.windows, suggestion.clients),
  };
}

/** A log without requests states nothing, and naming a field of it would not help. */
async function errorFor(refusal: string, { files, logs }: SuggestInput): Promise<Error> {
  if (logs.facts.size > 0) return new CommandFailure(1, refusal);
  for await (const _ of logs.batches()) return new CommandFailure(1, refusal);
  return noRequests(summariseLogs(files, logs));
}

/** The options of the command `suggest`. */
export interface SuggestOptions extends LogOptions, RuleOptions {
  readonly json?: true;
  readonly quiet?: true;
}

/**
 * Finds limits in logs and prints them.
 *
 * @returns the exit code
 */
export async function runSuggest(
  files: readonly string[],
  options: SuggestOptions,
): Promise<number> {
  const logOptions = checkedLogOptions(files, options);
  const requested = requestedRule(options);
  const { missingAsAbsent } = options;
  return runOnLogs({
    ...{ files, logOptions, quiet: options.quiet },
    read: (input) => suggestFromLogs({ ...input, requested, missingAsAbsent }),
    print: (suggestion, interruption) =>
      printReport(suggestion, options.json, suggestionText, interruption),
  });
}
