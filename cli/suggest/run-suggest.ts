import { LogError } from "../logs/log-error.ts";
import type { LogCommandOptions } from "../logs/log-options.ts";
import { startProgressBar } from "../logs/progress-bar.ts";
import { jsonText } from "../print/json-text.ts";
import { checkHtmlFile, writeHtmlFile } from "../replay/html-file.ts";
import { checkedLogOptions } from "../replay/log-inputs.ts";
import { printFailure, printReport } from "../replay/print-report.ts";
import { noRequests, ReplayError } from "../replay/replay-error.ts";
import { readConfig } from "../replay/replay-inputs.ts";
import { openUntilInterrupted, untilInterrupted } from "../replay/until-interrupted.ts";
import { existingRule } from "./existing-rule.ts";
import { RefusedOption } from "./refused-option.ts";
import { type RequestedRule, type RuleOptions, requestedRule } from "./requested-rule.ts";
import { type SuggestInput, suggestFromLogs } from "./suggest-logs.ts";
import type { Suggestion } from "./suggestion.ts";
import { suggestionMarkdown } from "./suggestion-markdown.ts";
import { suggestionText } from "./suggestion-text.ts";

const DEFAULT_CONFIG = "weir.config.ts";

/** The options of the command `suggest`. */
export interface SuggestOptions extends LogCommandOptions, RuleOptions {
  readonly rule?: string;
  readonly config?: string;
  readonly missingAsAbsent?: true;
  readonly json?: true;
  readonly markdown?: true;
  readonly html?: string;
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
  try {
    return await suggest(files, options);
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined) throw error;
    printFailure((error as Error).message, options);
    return exitCode;
  }
}

/** @returns the exit code */
async function suggest(files: readonly string[], options: SuggestOptions): Promise<number> {
  const { rule, config = DEFAULT_CONFIG } = options;
  const logOptions = checkedLogOptions(files, options);
  const requested = await requestedBy(options);
  return untilInterrupted(async (interruption) => {
    const inputs = rule === undefined ? files : [...files, config];
    const html = options.html === undefined ? undefined : await checkHtmlFile(options.html, inputs);
    const logs = await openUntilInterrupted(logOptions, interruption);
    const { signal } = interruption;
    const suggestion = await withProgress(options, { files, logs, requested, signal });
    if (suggestion.log.requests === 0 && !suggestion.isPartial) throw noRequests(suggestion.log);
    const writePage = html && (async () => writeHtmlFile(html, await pageOf(suggestion), signal));
    return printReport(reportOf(suggestion, options), interruption, writePage);
  });
}

async function requestedBy(options: SuggestOptions): Promise<RequestedRule> {
  const { rule, config = DEFAULT_CONFIG, window } = options;
  if (rule !== undefined) return existingRule(await readConfig(config, options), rule, window);
  if (options.config === undefined) return requestedRule(options);
  throw new RefusedOption("--config needs --rule: it names the file of the rule.");
}

async function withProgress(
  { quiet, missingAsAbsent }: SuggestOptions,
  input: SuggestInput,
): Promise<Suggestion> {
  const bar = startProgressBar(input.logs.progress, { quiet });
  try {
    return await suggestFromLogs({ ...input, missingAsAbsent, onProgress: () => bar.update() });
  } finally {
    bar.stop();
  }
}

function reportOf(suggestion: Suggestion, { json, markdown }: SuggestOptions): string {
  if (json) return jsonText(suggestion);
  return markdown ? suggestionMarkdown(suggestion) : suggestionText(suggestion);
}

async function pageOf(suggestion: Suggestion): Promise<string> {
  const { suggestPage } = await import("../html/suggest-page.ts");
  return suggestPage(suggestion);
}

/** @returns undefined for an error in the program */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof RefusedOption) return 1;
  if (error instanceof ReplayError) return error.exitCode;
  return error instanceof LogError ? 2 : undefined;
}
