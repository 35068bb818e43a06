import { jsonText } from "../print/json-text.ts";
import { printableLines } from "../print/printable-lines.ts";
import { ReplayError } from "./replay-error.ts";
import type { Interruption } from "./until-interrupted.ts";

/**
 * Prints a report after its page is written, so that the exit code is known before a reader of the report could
 * end the command. Without the page, the report itself is still complete.
 *
 * @param report ends with a line break or without one
 * @param writePage undefined without `--html`; not called after an interruption
 * @returns the exit code
 */
export async function printReport(
  report: string,
  { exitCode }: Interruption,
  writePage: (() => Promise<void>) | undefined,
): Promise<number> {
  const reason = exitCode() === undefined ? await reasonAgainst(writePage) : undefined;
  process.stdout.write(report.endsWith("\n") ? report : `${report}\n`);
  if (reason !== undefined) console.error(reason);
  return exitCode() ?? (reason === undefined ? 0 : 2);
}

/** @returns why the page could not be written */
async function reasonAgainst(writePage: () => Promise<void> = async () => {}) {
  try {
    await writePage();
    return undefined;
  } catch (error) {
    if (error instanceof ReplayError) return error.message;
    throw error;
  }
}

/** Prints why there is no report. */
export function printFailure(message: string, { json }: { readonly json?: true }): void {
  if (json) console.log(jsonText({ ok: false, error: message }));
  else console.error(printableLines(message));
}
