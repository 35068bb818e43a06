import { printable } from "../doctor/finding.ts";
import { onInterruption } from "../doctor/interruption.ts";
import { LogError } from "../logs/log-error.ts";
import { type LogCommandOptions, logOptionsOf } from "../logs/log-options.ts";
import { openLogs } from "../logs/open-logs.ts";
import { startProgressBar } from "../logs/progress-bar.ts";
import { jsonText } from "../print/json-text.ts";
import { checkHtmlFile, writeHtmlFile } from "../replay/html-file.ts";
import { noRequests, ReplayError } from "../replay/replay-error.ts";
import { readConfig } from "../replay/replay-inputs.ts";
import { existingRule } from "./existing-rule.ts";
import { RefusedOption } from "./refused-option.ts";
import { type RequestedRule, type RuleOptions, requestedRule } from "./requested-rule.ts";
import { suggestFromLogs } from "./suggest-logs.ts";
import type { Suggestion } from "./suggestion.ts";
import { suggestionMarkdown } from "./suggestion-markdown.ts";
import { suggestionText } from "./suggestion-text.ts";

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
    const { message } = error as Error;
    if (options.json) console.log(jsonText({ ok: false, error: message }));
    else
      console.error(
        message
          .split("\n")
          .map((line) => printable(line))
          .join("\n"),
      );
    return exitCode;
  }
}

/** @returns the exit code */
async function suggest(files: readonly string[], options: SuggestOptions): Promise<number> {
  const { html } = options;
  const requested = await requestedBy(options);
  if (html !== undefined) await checkHtmlFile(html);
  const { suggestion, signalCode } = await interruptible(files, options, requested);
  if (suggestion.log.requests === 0 && signalCode === undefined) throw noRequests(suggestion.log);
  console.log(reportOf(suggestion, options));
  if (html !== undefined) await writeHtmlFile(html, await pageOf(suggestion));
  return signalCode ?? 0;
}

async function requestedBy(options: SuggestOptions): Promise<RequestedRule> {
  const { rule, config = "weir.config.ts", window } = options;
  if (rule !== undefined) return existingRule(await readConfig(config, options), rule, window);
  if (options.config === undefined) return requestedRule(options);
  throw new RefusedOption("--config needs --rule: it names the file of the rule.");
}

/** Reads logs until their end or until a signal. */
async function interruptible(
  files: readonly string[],
  options: SuggestOptions,
  requested: RequestedRule,
): Promise<{ suggestion: Suggestion; signalCode: number | undefined }> {
  const { quiet, missingAsAbsent } = options;
  const logs = await openLogs(logOptionsOf(files, options));
  const stopping = new AbortController();
  const { signal } = stopping;
  const interruption = onInterruption((reason) => stopping.abort(reason));
  const bar = startProgressBar(logs.progress, { quiet });
  try {
    const onProgress = () => bar.update();
    const input = { files, logs, requested, missingAsAbsent, signal, onProgress };
    return { suggestion: await suggestFromLogs(input), signalCode: interruption.exitCode() };
  } finally {
    bar.stop();
    interruption[Symbol.dispose]();
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
