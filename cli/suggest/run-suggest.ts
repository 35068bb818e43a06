import { writeFile } from "node:fs/promises";
import { printable } from "../doctor/finding.ts";
import { LogError } from "../logs/log-error.ts";
import { type LogCommandOptions, logOptionsOf } from "../logs/log-options.ts";
import { openLogs } from "../logs/open-logs.ts";
import { startProgressBar } from "../logs/progress-bar.ts";
import { ConfigFileError, existingRule } from "./existing-rule.ts";
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
    const suggestion = await suggest(files, options);
    if (options.html !== undefined) await writePage(options.html, suggestion);
    console.log(reportOf(suggestion, options));
    return 0;
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined) throw error;
    const { message } = error as Error;
    if (options.json) console.log(JSON.stringify({ ok: false, error: message }, null, 2));
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

async function suggest(files: readonly string[], options: SuggestOptions): Promise<Suggestion> {
  const requested = await requestedBy(options);
  const logs = await openLogs(logOptionsOf(files, options));
  const bar = startProgressBar(logs.progress, { quiet: options.quiet });
  try {
    const { missingAsAbsent } = options;
    return await suggestFromLogs({
      files,
      logs,
      requested,
      missingAsAbsent,
      onProgress: bar.update,
    });
  } finally {
    bar.stop();
  }
}

async function requestedBy(options: SuggestOptions): Promise<RequestedRule> {
  const { rule, config = "weir.config.ts", window } = options;
  if (rule !== undefined) return existingRule({ rule, config, window });
  if (options.config === undefined) return requestedRule(options);
  throw new RefusedOption("--config needs --rule: it names the file of the rule.");
}

function reportOf(suggestion: Suggestion, { json, markdown }: SuggestOptions): string {
  if (json) return JSON.stringify(suggestion, null, 2);
  return markdown ? suggestionMarkdown(suggestion) : suggestionText(suggestion);
}

/** A page that could not be written. */
class PageError extends Error {}

async function writePage(file: string, suggestion: Suggestion): Promise<void> {
  const { suggestPage } = await import("../html/suggest-page.ts");
  try {
    await writeFile(file, suggestPage(suggestion));
  } catch (error) {
    throw new PageError(`--html: ${file} could not be written: ${(error as Error).message}`);
  }
}

/** @returns undefined for an error in the program */
function exitCodeOf(error: unknown): number | undefined {
  if (error instanceof RefusedOption) return 1;
  const isKnown = [LogError, ConfigFileError, PageError].some((known) => error instanceof known);
  return isKnown ? 2 : undefined;
}
