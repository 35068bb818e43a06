import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseIsoTime } from "../../src/config/calendar.ts";
import { durationUpTo } from "../../src/config/window.ts";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";
import { type AbsentField, fieldMap } from "./fields.ts";
import { type FileOptions, type LogFile, openLogFile } from "./log-file.ts";
import {
  commonFacts,
  hostName,
  LOG_FORMATS,
  type LogFacts,
  type LogFormat,
  type LogRequest,
} from "./log-request.ts";
import { LogCounts, type LogProgress } from "./progress.ts";
import { mergeFiles, TimeOrder } from "./time-order.ts";

export interface LogOptions {
  /** Paths of files; `-` is the standard input. */
  readonly files: readonly string[];
  /** @default recognised by each file's content */
  readonly format?: LogFormat | undefined;
  /** For JSON lines: the path of the field of each fact, such as `ip` → `client.address`. */
  readonly map?: ReadonlyMap<string, string> | undefined;
  /** Whether a field of `map` may be missing in all first records, if requests can lack its fact. */
  readonly missingAsAbsent?: boolean | undefined;
  /** The host of all requests, for logs that do not state it. */
  readonly host?: string | undefined;
  /** How far lines may be out of order, in milliseconds. Later lines are counted in `late`. */
  readonly maxDelayMs: number;
  /** Only requests from this time, and before that time, in milliseconds since the Unix epoch. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /**
   * Ends the reading, even while the next lines do not come. The batches then end with the requests of all lines that
   * have been read.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Logs whose first lines have been read. */
export interface Logs {
  /** The format of each file, in the order of the files. */
  readonly formats: readonly LogFormat[];
  /** What all files can state. */
  readonly facts: LogFacts;
  readonly progress: LogProgress;
  /** The requests of all files, in the order of their times. Call it once. */
  batches(): AsyncIterable<readonly LogRequest[]>;
}

/**
 * Opens logs and recognises their formats.
 *
 * @throws {CommandFailure} if a file cannot be read, or if none of its first lines is in a known format, or if no file
 * has a field of `map`, or if the signal is aborted before the first line
 */
export async function openLogs(options: LogOptions): Promise<Logs> {
  const { format, host, signal } = options;
  const fields = fieldMap(options.map ?? []);
  const files = await openFiles(options, {
    format,
    fields,
    host: host && hostName(host),
    signal,
  });
  const counts = new LogCounts();
  for (const { name, format, facts, start } of files) {
    if (!facts) counts.addNote(`${name} is empty.`);
    else if (fields.size > 0 && format === "combined") {
      counts.addNote(
        `${name} is in the format ${format}: --map is for JSON lines, and has no effect on it.`,
      );
    }
    for (const note of start?.notes ?? []) counts.addNote(note);
  }
  for (const { reason } of absentInAll(files)) {
    counts.addNote(`${reason} Requests without it count as ones that lack it.`);
  }
  const sizes = files.map(({ size }) => size);
  counts.bytesTotal = sizes.reduce(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
  return {
    formats: files.map(({ format }) => format),
    facts: commonFacts(files.map(({ facts }) => facts).filter((facts) => facts !== undefined)),
    progress: counts,
    batches: () => readBatches(files, options, counts),
  };
}

async function openFiles(
  { files: names, missingAsAbsent }: LogOptions,
  options: FileOptions,
): Promise<LogFile[]> {
  const files: LogFile[] = [];
  try {
    for (const name of names) files.push(await openLogFile(name, options));
    const [absent] = absentInAll(files);
    if (!absent || missingAsAbsent) return files;
    throw new CommandFailure(
      2,
      `${absent.reason} If only few requests have it, add --missing-as-absent.`,
    );
  } catch (error) {
    // An open standard input would keep the program running.
    for (const file of files) file.close();
    throw error;
  }
}

/** Returns the fields of `--map` that none of the first records of any file has. */
function absentInAll(files: readonly LogFile[]): readonly AbsentField[] {
  const starts = files.map(({ start }) => start).filter((start) => start !== undefined);
  const [first = [], ...others] = starts.map(({ absent }) => absent);
  return first.filter(({ fact }) =>
    others.every((each) => each.some((other) => other.fact === fact)),
  );
}

/** The number of requests from which a batch is handed out. */
const BATCH = 4096;

async function* readBatches(
  files: readonly LogFile[],
  { maxDelayMs, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY }: LogOptions,
  counts: LogCounts,
): AsyncGenerator<readonly LogRequest[]> {
  const order = new TimeOrder(maxDelayMs, counts);
  const onRequest = (request: LogRequest, bytes: number) => {
    if (request.at >= from && request.at < to) order.add(request, bytes);
    else counts.outside++;
  };
  for await (const _ of mergeFiles(files, counts, onRequest)) {
    if (order.readyCount >= BATCH) yield* batchesOf(order.take(), counts);
  }
  yield* batchesOf(order.finish(), counts);
}

function* batchesOf(
  requests: readonly LogRequest[],
  counts: LogCounts,
): Generator<readonly LogRequest[]> {
  for (let from = 0; from < requests.length; from += BATCH) {
    const batch = requests.slice(from, from + BATCH);
    counts.requests += batch.length;
    yield batch;
  }
}

/** The highest value of `--max-delay`, in seconds: the lines of that time are kept in memory. */
const MAX_DELAY_SECONDS = 86_400;

/** The options of `weir replay` and `weir suggest` about logs, as commander parses them. */
export interface LogCommandOptions {
  readonly format?: LogFormat;
  readonly map?: ReadonlyMap<string, string>;
  readonly host?: string;
  readonly missingAsAbsent?: true;
  /** In milliseconds. */
  readonly maxDelay: number;
  /** Milliseconds since the Unix epoch. */
  readonly from?: number;
  readonly to?: number;
}

/** Adds the argument LOG… and the options about logs to a command. */
export function withLogOptions(command: Command): Command {
  return command
    .argument("<log...>", "access logs, plain or compressed with gzip or zstd; - is standard input")
    .addOption(
      new Option("--format <format>", "the logs' format (default: recognised)").choices(
        LOG_FORMATS,
      ),
    )
    .option(
      "--map <fact=field>",
      "for JSON lines: the field of a fact, such as ip=client.address; repeat it, or separate by commas",
      fieldOfFact,
    )
    .option("--host <name>", "the host of all requests, if the log does not state it")
    .addOption(
      new Option("--max-delay <time>", "how far lines may be out of order, such as 30s or 5m")
        .argParser(delay)
        .default(delay("1m"), "1m"),
    )
    .option("--from <time>", "only requests from this time, such as 2026-11-22T08:00Z", time)
    .option("--to <time>", "only requests before this time", time);
}

/**
 * Returns the options for `openLogs`.
 *
 * @param files the values of the argument LOG…
 * @throws {CommandFailure} if `--to` is not after `--from`, if a file is named twice, or if the host is no host name
 */
export function logOptionsOf(
  files: readonly string[],
  { format, map, host, missingAsAbsent, maxDelay, from, to }: LogCommandOptions,
): LogOptions {
  if (from !== undefined && to !== undefined && from >= to) {
    throw new CommandFailure(1, "--to must be a later time than --from.");
  }
  if (files.indexOf("-") !== files.lastIndexOf("-")) {
    throw new CommandFailure(1, "- is standard input, which can be read only once.");
  }
  const paths = files.map((file) => (file === "-" ? file : realPathOf(file)));
  const twice = files.find((_, index) => paths.indexOf(paths[index] as string) !== index);
  if (twice !== undefined) {
    throw new CommandFailure(
      1,
      `${printable(twice)} is named twice, so its requests would count twice. Name each log once.`,
    );
  }
  if (host !== undefined && hostName(host) === undefined) {
    throw new CommandFailure(
      1,
      `--host ${printable(host)}: this is not a host name. Allowed: a name such as api.example.com.`,
    );
  }
  return { files, format, map, host, missingAsAbsent, maxDelayMs: maxDelay, from, to };
}

function realPathOf(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file);
  }
}

/** Adds the pairs of one `--map` to those of the ones before it. */
function fieldOfFact(
  text: string,
  before: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, string> {
  const fields = new Map(before);
  for (const pair of text.split(",")) {
    const at = pair.indexOf("=");
    const [fact, field] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    if (at === -1 || fact === "" || field === "") {
      throw new InvalidArgumentError("Allowed: FACT=FIELD, such as ip=client.address.");
    }
    if (fields.has(fact)) {
      throw new InvalidArgumentError(`${fact} has two fields. Name one.`);
    }
    fields.set(fact, field);
  }
  try {
    fieldMap(fields);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return fields;
}

/** @returns milliseconds */
function delay(text: string): number {
  if (/^0s?$/.test(text)) return 0;
  const seconds = durationUpTo(MAX_DELAY_SECONDS, /^\d{1,8}$/.test(text) ? Number(text) : text);
  if (seconds !== undefined) return seconds * 1000;
  throw new InvalidArgumentError('Allowed: 0, or a time from "1s" to "1d", such as 30s or 5m.');
}

/** A day, or a time with its zone. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** @returns milliseconds since the Unix epoch */
function time(text: string): number {
  const at = TIME.test(text) ? parseIsoTime(text) : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new InvalidArgumentError(
    "Allowed: a time with its zone, such as 2026-11-22T08:00Z, or a day in UTC, such as 2026-11-22.",
  );
}
