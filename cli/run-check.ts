import { type CheckOptions, checkConfig } from "./check-config.ts";
import { jsonError, textError } from "./report-error.ts";
import { jsonReport } from "./report-json.ts";
import { textReport } from "./report-text.ts";

/** The options of the command `check`. */
export interface RunOptions extends CheckOptions {
  readonly json?: true;
  readonly strict?: true;
}

/**
 * Checks a configuration and prints the result.
 *
 * @returns the exit code
 */
export async function runCheck({ json, strict, ...options }: RunOptions): Promise<number> {
  const { config: file } = options;
  const { error, rules, findings, isFatal, note, dev } = await checkConfig(
    { ...options, format: json ? "json" : "text" },
    process.env,
  );
  if (error !== undefined) {
    if (json) console.log(jsonError(file, error));
    else console.error(textError(file, error));
  } else if (json) {
    console.log(jsonReport(file, rules, findings));
  } else {
    const hasFaults = findings.some(({ severity }) => severity === "fault");
    console[hasFaults ? "error" : "log"](textReport(file, rules, findings, note));
  }
  const hasFailed = isFatal || (strict && findings.length > 0);
  if (hasFailed && dev && !json) console.error(dev.notice);
  return hasFailed ? (dev?.exitCode ?? 1) : 0;
}
