import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseIsoTime } from "../../src/config/calendar.ts";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";
import { type AbsentField, fieldMap } from "./json-fields.ts";
import { type FileOptions, type LogFile, openLogFile } from "./log-file.ts";
import {
  hostName,
  LOG_FORMATS,
  type LogFacts,
  type LogFormat,
  type LogRequest,
} from "./log-request.ts";
import { LogCounts } from "./progress.ts";
import { type Period, readBatches } from "./time-order.ts";

/** The options of `weir replay` and `weir suggest` about logs, as commander parses them. */
export interface LogOptions extends Period {
  /** @default recognised by each file's content */
  readonly format?: LogFormat | undefined;
  /** For JSON lines: the path of the field of each fact, such as `ip` → `client.address`. */
  readonly map?: ReadonlyMap<string, string> | undefined;
  /** Whether a field of `map` may be missing in all first records, if requests can lack its fact. */
  readonly missingAsAbsent?: boolean | undefined;
  /** The host of all requests, for logs that do not state it. */
  readonly host?: string | undefined;
}

export interface OpenOptions extends LogOptions {
  /** Paths of files; `-` is the standard input. */
  readonly files: readonly string[];
  /** Whether to read how long requests took. Each request is then at its start, also if the log states its end. */
  readonly withDurations?: boolean | undefined;
  /** Ends the reading, even during a wait for lines. The batches then end with the requests that have been read. */
  readonly signal?: AbortSignal | undefined;
}

/** Logs whose first lines have been read. */
export interface Logs {
  /** The format of each file, in the order of the files. */
  readonly formats: readonly LogFormat[];
  /** The facts that all files can state. */
  readonly facts: LogFacts;
  readonly progress: LogCounts;
  /** The requests of all files, in the order of their times. Call it once. */
  batches(): AsyncIterable<readonly LogRequest[]>;
}

/**
 * Opens logs and recognises their formats.
 *
 * @throws {CommandFailure} if a file cannot be read or has no line in a known format at its start, if no file has a
 *   field of `map`, or if the signal is aborted before the first line
 */
export async function openLogs(options: OpenOptions): Promise<Logs> {
  const { format, host, withDurations, signal, map = [] } = options;
  const fields = fieldMap(map);
  const files = await openFiles(options, {
    format,
    fields,
    host: host && hostName(host),
    withDurations,
    signal,
  });
  const counts = new LogCounts();
  for (const { name, facts, note } of files) {
    if (!facts) counts.addNote(`${name} is empty.`);
    if (note !== undefined) counts.addNote(note);
  }
  for (const { reason } of absentInAll(files)) {
    counts.addNote(`${reason} Requests without it count as ones that lack it.`);
  }
  const [first = new Set<string>(), ...others] = files
    .map(({ facts }) => facts)
    .filter((facts) => facts !== undefined);
  return {
    formats: files.map(({ format }) => format),
    facts: new Set([...first].filter((fact) => others.every((facts) => facts.has(fact)))),
    progress: counts,
    batches: () => readBatches(files, counts, options),
  };
}

async function openFiles(
  { files: names, missingAsAbsent }: OpenOptions,
  options: FileOptions,
): Promise<LogFile[]> {
  const files: LogFile[] = [];
  try {
    for (const name of names) files.push(await openLogFile(name, options));
    const isMapped = files.some(({ format, facts }) => format === "json" || !facts);
    if (options.fields.size > 0 && !isMapped) {
      throw new CommandFailure(
        1,
        "--map is for JSON lines, and has no effect on the format combined.",
      );
    }
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
  const [first = [], ...others] = files
    .map(({ absent }) => absent)
    .filter((absent) => absent !== undefined);
  return first.filter(({ fact }) =>
    others.every((each) => each.some((other) => other.fact === fact)),
  );
}

/** Adds the argument LOG… and the options about logs to a command. */
export function withLogOptions(command: Command): Command {
  return withRemoved(command, {
    "--max-delay": "Lines may be out of order by a minute; sort a log with longer delays.",
    "--markdown": "Copy the text, or use --json.",
    "--html": "Use the text, or --json.",
  })
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
    .option("--from <time>", "only requests from this time, such as 2026-11-22T08:00Z", time)
    .option("--to <time>", "only requests before this time", time);
}

/** Explains options that earlier versions had. */
export function withRemoved(command: Command, removed: Readonly<Record<string, string>>): Command {
  for (const [flag, instead] of Object.entries(removed)) {
    const option = new Option(`${flag} [value]`).hideHelp();
    command
      .addOption(option)
      .on(`option:${option.name()}`, () =>
        command.error(`error: unknown option '${flag}'. ${instead}`, { exitCode: 1 }),
      );
  }
  return command;
}

/**
 * Returns the options for `openLogs`.
 *
 * @param files the values of the argument LOG…
 * @throws {CommandFailure} if options do not fit together
 */
export function checkedLogOptions(files: readonly string[], options: LogOptions): OpenOptions {
  const { host, from, to } = options;
  if (from !== undefined && to !== undefined && from >= to) {
    throw new CommandFailure(1, "--to must be a later time than --from.");
  }
  const paths = files.map((file) => resolve(file));
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
  return { ...options, files };
}

/** Adds the pairs of one `--map` to the pairs of earlier ones. */
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
