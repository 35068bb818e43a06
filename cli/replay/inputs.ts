import { createReadStream, realpathSync, rmSync } from "node:fs";
import { readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { getSystemErrorMap } from "node:util";
import { formatCount } from "../../src/admin/format.ts";
import type { Config } from "../../src/config/schema.ts";
import { onInterruption } from "../doctor/examine.ts";
import { loadConfig } from "../load-config.ts";
import { hostName, LogError, type LogFacts, type LogFormat } from "../logs/log-request.ts";
import {
  type LogCommandOptions,
  type LogOptions,
  type Logs,
  logOptionsOf,
  openLogs,
} from "../logs/open-logs.ts";
import type { LogSummary } from "../logs/progress.ts";
import { jsonText, printable, printableLines } from "../print/text.ts";
import type { ReplayEngine } from "./engine.ts";
import type { FailedBound, ReplayReport } from "./report.ts";

/** A replay that is not possible. The message names the reason and the cure. */
export class ReplayError extends Error {
  /** 1 for options that do not fit together, the code of a signal that came too early, and 2 for anything else. */
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns the error for logs without a request to replay. A pipeline must not take them for a success. */
export function noRequests({
  files,
  lines,
  broken,
  late,
  outside,
  brokenLines,
}: LogSummary): ReplayError {
  const reasons = [
    outside > 0 && `${formatCount(outside, "request")} outside --from and --to`,
    broken > 0 && `${formatCount(broken, "line")} that could not be read`,
    late > 0 && `${formatCount(late, "line")} that came too late (raise --max-delay)`,
  ].filter((reason) => reason !== false);
  const has = reasons.length > 0 ? reasons.join(", ") : `${formatCount(lines, "line")}`;
  const [first] = brokenLines;
  const example = first ? `\n${first.file}:${first.line}: ${first.reason}` : "";
  return new ReplayError(
    2,
    `${files.join(", ")}: no request to replay. The log has ${has}.${example}`,
  );
}

interface Bounds {
  /** How many clients may be denied, and how many may be newly denied; undefined: any number. */
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
}

/** Returns the bounds that a replay has exceeded. Clients are counted by their addresses. */
export function exceededBounds(
  { total, comparison }: ReplayReport,
  { maxDenied, maxNewlyDenied }: Bounds,
): FailedBound[] {
  const bounds = [
    { option: "--max-denied", allowed: maxDenied, clients: total.clientsDenied },
    {
      option: "--max-newly-denied",
      allowed: maxNewlyDenied,
      clients: comparison?.clients.newlyDenied ?? 0,
    },
  ] as const;
  return bounds.flatMap(({ option, allowed, clients }) =>
    allowed !== undefined && clients > allowed ? [{ option, allowed, clients }] : [],
  );
}

/** Returns why the bounds cannot be checked; undefined if they can be, or if there is none. */
export function uncheckedBounds(
  { log }: Pick<ReplayReport, "log">,
  { maxDenied, maxNewlyDenied }: Bounds,
): string | undefined {
  if (!log.isIncomplete || (maxDenied === undefined && maxNewlyDenied === undefined)) return;
  return "--max-denied and --max-newly-denied need the whole log, but a file could not be read to its end. The rest may have more denied clients. The notes of the report name the file.";
}

/** Formats whose fields `--map` can name. */
const MAPPED: readonly LogFormat[] = ["json", "logpush"];

/**
 * Returns the options for reading logs.
 *
 * @throws {ReplayError} if options do not fit together
 */
export function checkedLogOptions(
  files: readonly string[],
  options: LogCommandOptions,
): LogOptions {
  const { format, host, map } = options;
  if (map && format) checkMap([format]);
  if (host !== undefined && hostName(host) === undefined) {
    throw new ReplayError(
      1,
      `--host ${printable(host)}: this is not a host name. Allowed: a name such as api.example.com.`,
    );
  }
  checkRepetitions(files);
  try {
    return logOptionsOf(files, options);
  } catch (error) {
    throw error instanceof LogError ? new ReplayError(1, error.message) : error;
  }
}

/**
 * Checks that `--map` is of use for logs whose formats are recognised.
 *
 * @throws {ReplayError} if no log has fields
 */
function checkMapOf({ map }: LogOptions, { formats, facts }: Logs): void {
  // An empty log has no format.
  if (map && (facts.ip || facts.status)) checkMap(formats);
}

function checkMap(formats: readonly LogFormat[]): void {
  if (formats.some((format) => MAPPED.includes(format))) return;
  const names = [...new Set(formats)].join(" and ");
  throw new ReplayError(
    1,
    `--map names fields of JSON lines, but the format of the logs is ${names}, which has no other fields. Write JSON lines to the log, or leave --map out.`,
  );
}

/** The requests of a file that is named twice would count twice. */
function checkRepetitions(files: readonly string[]): void {
  const known = new Set<string>();
  for (const file of files) {
    const path = file === "-" ? file : realPathOf(file);
    // For the standard input there is another message.
    if (known.has(path) && file !== "-") {
      throw new ReplayError(
        1,
        `${printable(file)} is named twice, so its requests would count twice. Name each log once.`,
      );
    }
    known.add(path);
  }
}

function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
}

/** How many faults of a configuration are printed. `weir check` prints all. */
const LISTED_FAULTS = 5;

/** A configuration, and its file as the user has written it. */
export interface ConfigFile {
  readonly file: string;
  readonly config: Config;
}

interface ReplayOptions {
  readonly against?: string;
  readonly maxDenied?: number;
  readonly maxNewlyDenied?: number;
  readonly isolates?: number;
  readonly seed?: number;
}

/** @throws {ReplayError} if an option needs another one */
export function checkPairs({ maxNewlyDenied, against, seed, isolates }: ReplayOptions): void {
  if (maxNewlyDenied !== undefined && against === undefined) {
    throw new ReplayError(
      1,
      "--max-newly-denied compares two configurations. Name the other one with --against <file>.",
    );
  }
  if (seed !== undefined && isolates === undefined) {
    throw new ReplayError(
      1,
      "--seed is for the random numbers of --isolates. Add --isolates <n>, or leave --seed out.",
    );
  }
}

/**
 * Checks that clients can be counted, because otherwise no bound could ever be exceeded.
 *
 * @throws {ReplayError} if there is a bound, and the log does not state addresses
 */
export function checkBounds(
  { maxDenied, maxNewlyDenied }: ReplayOptions,
  { ip }: Pick<LogFacts, "ip">,
): void {
  if (ip || (maxDenied === undefined && maxNewlyDenied === undefined)) return;
  throw new ReplayError(
    2,
    "--max-denied and --max-newly-denied count clients by their addresses, but the log does not state addresses. For JSON lines, name their field, such as --map ip=client.address.",
  );
}

/**
 * Checks that all enforced rules are replayed if there is a bound, because a rule that is left out denies nobody.
 *
 * @throws {ReplayError} if there is a bound, and an enforced rule is left out
 */
export function checkLeftOut(
  { maxDenied, maxNewlyDenied }: ReplayOptions,
  { rules }: Config,
  { leftOut, notes }: Pick<ReplayEngine, "leftOut" | "notes">,
): void {
  if (maxDenied === undefined && maxNewlyDenied === undefined) return;
  const isLeftOut = (name: string) => leftOut.some(({ rule }) => rule === name);
  const enforced = rules.filter(({ name, mode }) => mode === "enforce" && isLeftOut(name));
  const [first] = enforced;
  if (!first) return;
  const reasons = notes.filter(({ rule }) => rule === first.name).map(({ text }) => text);
  const others =
    enforced.length > 1 ? [`${formatCount(enforced.length - 1, "more rule")} left out.`] : [];
  throw new ReplayError(
    2,
    [
      "--max-denied and --max-newly-denied need all enforced rules, but the log does not suffice for each of them.",
      ...reasons,
      ...others,
    ].join("\n"),
  );
}

/**
 * Reads a configuration.
 *
 * @param option the option that names the file, for messages
 * @throws {ReplayError} if it has faults, or if its file cannot be read
 */
export async function readConfig(
  file: string,
  { json }: { json?: true },
  option: "--config" | "--against" = "--config",
): Promise<ConfigFile> {
  const loaded = await loadConfig(file, json ? "json" : "text", 2, option);
  if (loaded.kind === "valid") return { file, config: loaded.config };
  if (loaded.kind === "unreadable") {
    throw new ReplayError(2, `${printable(file)} could not be loaded.\n${loaded.error}`);
  }
  const name = printable(file);
  const { faults } = loaded;
  const listed = faults.slice(0, LISTED_FAULTS).map(({ path, message }) => `  ${path}: ${message}`);
  const more = faults.length > LISTED_FAULTS ? [`  and ${faults.length - LISTED_FAULTS} more`] : [];
  throw new ReplayError(
    2,
    [
      `${name} has ${formatCount(faults.length, "fault")}. weir check --config ${name} explains them.`,
      ...listed,
      ...more,
    ].join("\n"),
  );
}

/** How a signal, such as Ctrl-C, ends a command. */
interface Interruption {
  /** Aborted when the signal comes. */
  readonly signal: AbortSignal;
  /** The exit code of the signal; undefined before it comes. */
  exitCode(): number | undefined;
}

/** Runs a function that a signal may end early, instead of ending the process at once. */
export async function untilInterrupted<Result>(
  run: (interruption: Interruption) => Promise<Result>,
): Promise<Result> {
  const stopping = new AbortController();
  const interruption = onInterruption((reason) => stopping.abort(reason));
  try {
    return await run({ signal: stopping.signal, exitCode: () => interruption.exitCode() });
  } finally {
    interruption[Symbol.dispose]();
  }
}

/**
 * Opens logs. Even the first bytes of a standard input may not come for long.
 *
 * @throws {ReplayError} if a signal comes first, or if `--map` is of no use
 * @throws {LogError}
 */
export async function openUntilInterrupted(
  options: LogOptions,
  { signal, exitCode }: Interruption,
): Promise<Logs> {
  try {
    const logs = await openLogs({ ...options, signal });
    checkMapOf(options, logs);
    return logs;
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ReplayError(exitCode() ?? 2, "Interrupted before the first request was read.");
  }
}

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
 * @throws {ReplayError} if the file is an input or not a page, or if files cannot be created in its folder
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
 * @throws {ReplayError} if the file cannot be written
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
function notWritten(file: HtmlFile, error: unknown): ReplayError {
  const { code, errno, message } = error as NodeJS.ErrnoException;
  const [, reason] = getSystemErrorMap().get(errno ?? 0) ?? [];
  const detail = reason === undefined ? printable(message) : `${code}: ${reason}.`;
  return refused(2, file, `the page cannot be written. ${detail}`);
}

function refused(exitCode: 1 | 2, { name }: HtmlFile, reason: string): ReplayError {
  return new ReplayError(exitCode, `--html ${printable(name)}: ${reason}`);
}

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
  writePage?: (() => Promise<void>) | undefined,
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
