import { createReadStream } from "node:fs";
import { access, constants, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { printable } from "../doctor/finding.ts";
import { ReplayError } from "./replay-error.ts";

const PAGE_START = "<!doctype html>";

/**
 * Checks that a page can be written, so that a long replay does not fail at its end. It refuses to replace another
 * kind of file: `--html access.log` without the name of a page would delete the log.
 *
 * @throws {ReplayError} if the file is not a page, or if files cannot be created in its folder
 */
export async function checkHtmlFile(file: string): Promise<void> {
  const existing = await stat(file).catch(() => undefined);
  if (existing && !existing.isFile()) {
    throw new ReplayError(
      2,
      `--html ${file}: this is not a file. Name a file, such as report.html.`,
    );
  }
  if (existing && existing.size > 0 && !(await isPage(file))) {
    throw new ReplayError(
      2,
      `--html ${file}: this file exists, and it is not a page. Name another file.`,
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

async function isPage(file: string): Promise<boolean> {
  const start = createReadStream(file, { end: PAGE_START.length - 1 });
  try {
    return (await text(start)).toLowerCase() === PAGE_START;
  } catch (error) {
    throw notWritten(file, error);
  }
}

function notWritten(file: string, error: unknown): ReplayError {
  const reason = error instanceof Error ? printable(error.message) : String(error);
  return new ReplayError(2, `--html ${file}: the page cannot be written. ${reason}`);
}
