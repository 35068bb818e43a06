import { constants } from "node:fs";
import { access, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";

/**
 * Checks that a page can be written, so that a long replay does not fail at its end. The name must end like the name
 * of a page, because `--html access.log` would replace the log.
 *
 * @throws {CommandFailure}
 */
export async function checkHtmlFile(file: string): Promise<void> {
  if (!/\.html?$/i.test(file)) {
    throw refused(1, file, "the name of a page ends in .html, such as report.html.");
  }
  try {
    await access(dirname(file), constants.W_OK);
  } catch (error) {
    throw notWritten(file, error);
  }
}

/**
 * Writes a page. The file gets its name only when it is complete, so an error leaves an older page as it is.
 *
 * @param signal if it is aborted, nothing is written
 * @throws {CommandFailure} if the file cannot be written
 */
export async function writeHtmlFile(
  file: string,
  page: string,
  signal: AbortSignal,
): Promise<void> {
  const incomplete = `${file}.${process.pid}.tmp`;
  try {
    await writeFile(incomplete, page, { signal });
    await rename(incomplete, file);
  } catch (error) {
    if (!signal.aborted) throw notWritten(file, error);
  } finally {
    await rm(incomplete, { force: true });
  }
}

function notWritten(file: string, error: unknown): CommandFailure {
  return refused(2, file, `the page cannot be written. ${printable((error as Error).message)}`);
}

function refused(exitCode: 1 | 2, file: string, reason: string): CommandFailure {
  return new CommandFailure(exitCode, `--html ${printable(file)}: ${reason}`);
}
