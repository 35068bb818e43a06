import { createReadStream, rmSync } from "node:fs";
import { readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { getSystemErrorMap } from "node:util";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";

/** A file for a page, which can be written. */
export interface HtmlFile {
  /** As the user has written it. */
  readonly name: string;
  /** The file itself: links are followed. */
  readonly path: string;
}

const PAGE_START = "<!doctype html>";
const ADVICE = "Name another file, such as report.html.";

/**
 * Checks that a page can be written, so that a long replay does not fail at its end. It refuses to replace another
 * kind of file: `--html access.log` without the name of a page would delete the log.
 *
 * @param inputs the files that the command reads
 * @throws {CommandFailure} if the file is an input or not a page, or if files cannot be created in its folder
 */
export async function checkHtmlFile(name: string, inputs: readonly string[]): Promise<HtmlFile> {
  const file = { name, path: await withoutLinks(name) };
  if (name === "") throw refused(1, file, `The name of the file is missing. ${ADVICE}`);
  const existing = await stat(file.path, { bigint: true }).catch(() => undefined);
  if (existing && !existing.isFile()) throw refused(2, file, `this is not a file. ${ADVICE}`);
  for (const input of inputs) {
    const read = await stat(input, { bigint: true }).catch(() => undefined);
    if (existing && read?.ino === existing.ino && read.dev === existing.dev) {
      throw refused(1, file, `the command reads this file. ${ADVICE}`);
    }
  }
  if (existing && existing.size > 0n && !(await isPage(file))) {
    throw refused(2, file, `this file exists, and it is not a page. ${ADVICE}`);
  }
  await tryToCreate(file);
  return file;
}

/**
 * Writes a page. The file gets its name only when it is complete, so an error leaves an older page as it is.
 *
 * @param signal if it is aborted, nothing is written
 * @throws {CommandFailure} if the file cannot be written
 */
export async function writeHtmlFile(
  file: HtmlFile,
  page: string,
  signal: AbortSignal,
): Promise<void> {
  const incomplete = incompleteOf(file);
  const remove = () => rmSync(incomplete, { force: true });
  // A second Ctrl-C ends the process at once.
  process.once("exit", remove);
  try {
    await writeFile(incomplete, page, { signal });
    await rename(incomplete, file.path);
  } catch (error) {
    if (!signal.aborted) throw notWritten(file, error);
  } finally {
    remove();
    process.off("exit", remove);
  }
}

/** Permissions would not suffice: no file can be created in some folders, such as /proc. */
async function tryToCreate(file: HtmlFile): Promise<void> {
  const incomplete = incompleteOf(file);
  try {
    await writeFile(incomplete, "");
    await rm(incomplete);
  } catch (error) {
    throw notWritten(file, error);
  }
}

function incompleteOf({ path }: HtmlFile): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
}

/** A renamed file would replace a link, and not the file to which it leads. */
async function withoutLinks(name: string): Promise<string> {
  try {
    return await realpath(name);
  } catch {
    // The page may be new, also at the end of a link.
    const target = await readlink(name).catch(() => undefined);
    return target === undefined ? name : resolve(dirname(name), target);
  }
}

async function isPage(file: HtmlFile): Promise<boolean> {
  const start = createReadStream(file.path, { end: PAGE_START.length - 1 });
  try {
    return (await text(start)).toLowerCase() === PAGE_START;
  } catch (error) {
    throw notWritten(file, error);
  }
}

/** Node's own messages name the incomplete file, which users do not know. */
function notWritten(file: HtmlFile, error: unknown): CommandFailure {
  const { code, errno, message } = error as NodeJS.ErrnoException;
  const [, reason] = getSystemErrorMap().get(errno ?? 0) ?? [];
  const detail = reason === undefined ? printable(message) : `${code}: ${reason}.`;
  return refused(2, file, `the page cannot be written. ${detail}`);
}

function refused(exitCode: 1 | 2, { name }: HtmlFile, reason: string): CommandFailure {
  return new CommandFailure(exitCode, `--html ${printable(name)}: ${reason}`);
}
