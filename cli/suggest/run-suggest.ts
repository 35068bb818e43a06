import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { type Rule, withoutConcurrent } from "../../src/config/rule.ts";
import { CommandFailure } from "../command-failure.ts";
import { requireConfig } from "../load-config.ts";
import { logNotes } from "../logs/needs.ts";
import { checkedLogOptions, type LogOptions } from "../logs/open-logs.ts";
import { summariseLogs } from "../logs/progress.ts";
import {
  type ConfigFile,
  forEachRequest,
  type LogInput,
  noRequests,
  printReport,
  runOnLogs,
} from "../replay/inputs.ts";
import { LogRules } from "../replay/rule-applier.ts";
import { buildSuggestion } from "./build-suggestion.ts";
import { ClientCounts } from "./counts.ts";
import { logNeeds, notesAbout } from "./notes.ts";
import { ruleText, suggestionMarkdown, suggestionText } from "./report.ts";
import {
  checkedConfig,
  limitsOf,
  type RequestedRule,
  type RuleOptions,
  requestedRule,
  requestedRuleOf,
} from "./requested-rule.ts";
import type { Suggestion } from "./suggestion.ts";

/** The number of names that an error lists. */
const MAX_NAMES = 20;

/**
 * Returns a rule of a configuration. Its tiers, exemptions and costs do not matter here: each request that it matches
 * counts as one.
 *
 * @param window other windows than those of the rule
 * @throws {CommandFailure}
 */
export function existingRule(
  { file, config }: ConfigFile,
  name: string,
  window?: readonly string[],
): RequestedRule {
  const rule = config.rules.find((each) => each.name === name);
  if (!rule) {
    throw new CommandFailure(1, `--rule: ${file} has no rule ${name}. ${cureFor(name, config)}`);
  }
  if (rule.for === "programs") {
    throw new CommandFailure(
      1,
      `--rule: ${name} counts only calls of programs, which no log has. Name a rule for requests.`,
    );
  }
  const windows = window ? windowsFor(name, window) : withoutConcurrent(rule).windows;
  if (windows.length === 0) {
    throw new CommandFailure(
      1,
      `--rule: ${name} limits only open requests, which are not counted here. For limits with windows, add --window, such as --window 1m.`,
    );
  }
  return { ...requestedRuleOf({ ...rule, windows }, config, undefined), file };
}

/** Windows that begin at multiples of their length after the epoch, whatever the rule's `start` is. */
function windowsFor(name: string, windows: readonly string[]): Rule["windows"] {
  const config = checkedConfig({ name, limits: limitsOf(windows) });
  return (config.rules[0] as Rule).windows;
}

function cureFor(name: string, { rules }: { readonly rules: readonly Rule[] }): string {
  const names = rules.map((each) => each.name);
  const nearest = nearestName(name, names);
  if (nearest !== undefined) return `Did you mean ${nearest}?`;
  const more = names.length - MAX_NAMES;
  const listed = names.slice(0, MAX_NAMES).join(", ");
  return `It has: ${listed || "no rules"}${more > 0 ? ` and ${more} more` : ""}.`;
}

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
  const clients = reader.clientsOf(rule);
  await forEachRequest(input, (request) => {
    const [match] = reader.matchesOf(request) ?? [];
    const client = match && clients.identityOf(match, reader.request);
    if (client !== undefined) counts.add(request, client, () => clients.shown());
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
    config: requested.file,
    rule: ruleText(requested, suggestion.windows, suggestion.clients),
  };
}

/** A log without requests states nothing, and naming a field of it would not help. */
async function errorFor(refusal: string, { files, logs }: SuggestInput): Promise<Error> {
  if (logs.facts.size > 0) return new CommandFailure(1, refusal);
  for await (const _ of logs.batches()) return new CommandFailure(1, refusal);
  return noRequests(summariseLogs(files, logs));
}

const DEFAULT_CONFIG = "weir.config.ts";

/** The options of the command `suggest`. */
export interface SuggestOptions extends LogOptions, RuleOptions {
  readonly rule?: string;
  readonly config?: string;
  readonly json?: true;
  readonly markdown?: true;
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
  const requested = await requestedBy(options);
  const { missingAsAbsent } = options;
  return runOnLogs({
    ...{ files, logOptions, quiet: options.quiet },
    read: (input) => suggestFromLogs({ ...input, requested, missingAsAbsent }),
    print: async (suggestion, interruption) =>
      printReport(
        suggestion,
        options,
        { text: suggestionText, markdown: suggestionMarkdown },
        interruption,
      ),
  });
}

async function requestedBy(options: SuggestOptions): Promise<RequestedRule> {
  const { rule, config = DEFAULT_CONFIG, window } = options;
  if (rule !== undefined) {
    const read = await requireConfig(config);
    return existingRule({ file: config, config: read }, rule, window);
  }
  if (options.config === undefined) return requestedRule(options);
  throw new CommandFailure(1, "--config needs --rule: it names the file of the rule.");
}
