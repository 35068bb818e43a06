import { access, constants, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { printable } from "../doctor/finding.ts";
import { ReplayError } from "./replay-error.ts";

/**
 * Checks that a page can be written, so that a long replay does not fail at its end.
 *
 * @throws {ReplayError} if the folder does not exist, or if files cannot be created in it
 */
export async function checkHtmlFile(file: string): Promise<void> {
  const existing = await stat(file).catch(() => undefined);
  if (existing && !existing.isFile()) {
    throw new ReplayError(
      2,
      `--html ${file}: this is not a file. Name a file, such as report.html.`,
    );
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
 * @throws {ReplayError} if the file cannot be written
 */
export async function writeHtmlFile(file: string, page: string): Promise<void> {
  const incomplete = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`);
  try {
    await writeFile(incomplete, page);
    await rename(incomplete, file);
  } catch (error) {
    await rm(incomplete, { force: true });
    throw notWritten(file, error);
  }
}

function notWritten(file: string, error: unknown): ReplayError {
  const reason = error instanceof Error ? printable(error.message) : String(error);
  return new ReplayError(2, `--html ${file}: the page cannot be written. ${reason}`);
}
