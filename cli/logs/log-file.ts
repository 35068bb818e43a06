import { AccessLineParser } from "./access-line.ts";
import { type ByteSource, type Head, openByteSource, reasonOf } from "./bytes.ts";
import {
  type FieldMap,
  isLogpush,
  jsonFields,
  type LogRecord,
  lacksZone,
  logpushFields,
  valueAt,
} from "./fields.ts";
import {
  type AbsentField,
  absentFields,
  missingFields,
  parseRecord,
  pathText,
  RecordParser,
} from "./json-records.ts";
import { LineReader } from "./lines.ts";
import {
  type LineParser,
  LogError,
  type LogFacts,
  type LogFormat,
  type LogRequest,
} from "./log-request.ts";
import { LogCounts } from "./progress.ts";

/** The first records by which fields are found. */
const MAX_RECORDS = 200;

/** Lines of access logs, also those whose request cannot be read. */
const ACCESS_LINE = /^\S+ .*\[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "/;

/**
 * Recognises the format of a file by its start.
 *
 * @param lines the first lines
 * @returns undefined if no line has a known format
 */
export function recogniseFormat(lines: readonly string[]): LogFormat | undefined {
  const parser = new AccessLineParser(undefined);
  if (lines.some((line) => ACCESS_LINE.test(line) || typeof parser.parse(line) === "object")) {
    return "combined";
  }
  const records = recordsOf(lines);
  if (records.length === 0) return undefined;
  return isLogpush(records) ? "logpush" : "json";
}

/**
 * Creates a parser for lines.
 *
 * @param lines the first lines of the file
 * @param fields the fields that `--map` names
 * @param host the host of requests whose lines state none
 */
export function createParser(
  format: LogFormat,
  lines: readonly string[],
  fields: FieldMap,
  host: string | undefined,
): LineParser {
  if (format === "combined") return new AccessLineParser(host);
  return new RecordParser(fieldsOf(format, recordsOf(lines), fields), host);
}

/**
 * Returns the fields of the facts.
 *
 * @param records the first records of the file
 * @param given the fields that `--map` names
 */
function fieldsOf(
  format: "json" | "logpush",
  records: readonly LogRecord[],
  given: FieldMap,
): FieldMap {
  return format === "logpush" ? logpushFields(records, given) : jsonFields(records, given);
}

/** Returns the records of the first lines. */
function recordsOf(lines: readonly string[], max = MAX_RECORDS): LogRecord[] {
  return lines
    .slice(0, max)
    .map(parseRecord)
    .filter((record) => record !== undefined);
}

/** What the first records of a file show about its fields. */
interface RecordStart {
  /** Fields that `--map` names, and that none of the first records has. */
  readonly absent: readonly AbsentField[];
  /** What a reader must know about the records. */
  readonly notes: readonly string[];
}

/**
 * Checks the fields of the first records of a file.
 *
 * @param lines the first lines
 * @param given the fields that `--map` names
 * @param mustHaveRequests whether one of the lines must be a request
 * @throws {LogError} if none of the records has a field that each request needs
 */
function checkStart(
  file: string,
  format: "json" | "logpush",
  lines: readonly string[],
  given: FieldMap,
  mustHaveRequests: boolean,
): RecordStart {
  const records = recordsOf(lines);
  // A program may write messages before its first request.
  const absent = given.size === 0 ? [] : absentFields(file, recordsOf(lines, lines.length), given);
  const fields = fieldsOf(format, records, given);
  if (mustHaveRequests) throw missingFields(file, format, records, fields);
  return { absent, notes: zoneNotes(file, records, fields) };
}

function zoneNotes(file: string, records: readonly LogRecord[], fields: FieldMap): string[] {
  const path = fields.get("time");
  if (!path || !records.some((record) => lacksZone(valueAt(record, path)))) return [];
  return [
    `${file}: the times in the field ${pathText(path)} have no zone. They are taken as UTC. If they are not, log them with a zone, such as 2026-11-22T10:00:00+01:00.`,
  ];
}

/** The bytes by which a format is recognised. */
const HEAD_BYTES = 256 * 1024;

const MAX_LINE_BYTES = 64 * 1024;
/** Records may have many fields, which are not all read. */
const MAX_RECORD_BYTES = 1024 * 1024;

/** How logs are opened. */
export interface FileOptions {
  /** @default recognised by each file's content */
  readonly format: LogFormat | undefined;
  readonly fields: FieldMap;
  readonly host: string | undefined;
  /** Ends the reading, even while the next bytes do not come. */
  readonly signal: AbortSignal | undefined;
}

/** Requests that were read at once. */
export interface RequestGroup {
  readonly requests: readonly LogRequest[];
  /** The mean length of their lines, in bytes. */
  readonly meanBytes: number;
}

/** A log whose first lines have been read. */
export interface LogFile {
  readonly name: string;
  readonly format: LogFormat;
  /** What its lines state; undefined for an empty file. */
  readonly facts: LogFacts | undefined;
  /** The time of its first request; -∞ if the first lines have none. */
  readonly firstAt: number;
  readonly size: number | undefined;
  /** What its first records show; undefined for other formats and for an empty file. */
  readonly start: RecordStart | undefined;
  /**
   * Reads the requests in the order of the file. A read error after the first bytes ends them, and becomes a note.
   * An interruption ends them after the lines that have been read.
   *
   * @throws {LogError} if the file can no longer be read at all
   */
  groups(counts: LogCounts): AsyncGenerator<RequestGroup>;
  /** Closes a file that is not read to its end. */
  close(): void;
}

/** @throws {LogError} if the file cannot be read, or if none of its first lines is in a known format */
export async function openLogFile(name: string, options: FileOptions): Promise<LogFile> {
  const source = await openByteSource(name, options.signal);
  try {
    return await readStart(source, options);
  } catch (error) {
    source.close();
    throw error;
  }
}

async function readStart(source: ByteSource, options: FileOptions): Promise<LogFile> {
  const { signal } = options;
  const head = await headOf(source, signal);
  const lines = linesOf(head);
  const isEmpty = lines.every((line) => line.trim() === "");
  const format = options.format ?? (isEmpty ? "combined" : recogniseFormat(lines));
  if (format === undefined) throw unknownFormat(source.name);
  const createReader = (counts: LogCounts) => {
    const parser = createParser(format, lines, options.fields, options.host);
    const maxBytes = format === "combined" ? MAX_LINE_BYTES : MAX_RECORD_BYTES;
    return { parser, reader: new LineReader({ file: source.name, parser, counts, maxBytes }) };
  };
  // The first requests are read twice: here, and with all others.
  const { reader, parser } = createReader(new LogCounts());
  const first = isEmpty ? [] : reader.push(head.bytes);
  if (head.isWhole && !isEmpty) first.push(...reader.end());
  if (options.format !== undefined && first.length === 0) {
    const likely = recogniseFormat(lines);
    if (likely !== undefined && likely !== format) throw otherFormat(source.name, format, likely);
  }
  // A user who names the format may know that the requests come later.
  const isUnread = first.length === 0 && (options.format === undefined || format === "logpush");
  const start =
    isEmpty || format === "combined"
      ? undefined
      : checkStart(source.name, format, lines, options.fields, isUnread);
  return {
    name: source.name,
    format,
    start,
    close: () => source.close(),
    facts: isEmpty ? undefined : parser.facts(),
    firstAt: first[0]?.at ?? Number.NEGATIVE_INFINITY,
    size: source.size,
    groups: (counts) =>
      readGroups(source, createReader(counts).reader, counts, { isEmpty, signal }),
  };
}

async function headOf(source: ByteSource, signal: AbortSignal | undefined): Promise<Head> {
  let head: Head;
  try {
    head = await source.head(HEAD_BYTES);
  } catch (error) {
    throw new LogError(`${source.name} cannot be read: ${reasonOf(error)}`);
  }
  if (signal?.aborted && !head.isWhole && !head.bytes.includes("\n")) {
    throw new LogError(`${source.name}: the command was interrupted before the first line.`);
  }
  return head;
}

/** Returns the lines of a file's start. The last one may be cut off. */
function linesOf({ bytes, isWhole }: Head): string[] {
  const lines = bytes
    .toString()
    .replace(/^\ufeff/, "")
    .split(/\r?\n/);
  if (!isWhole && lines.length > 1) lines.pop();
  return lines;
}

async function* readGroups(
  source: ByteSource,
  reader: LineReader,
  counts: LogCounts,
  { isEmpty, signal }: { isEmpty: boolean; signal: AbortSignal | undefined },
): AsyncGenerator<RequestGroup> {
  let hasStarted = false;
  try {
    const onRead = (bytes: number) => {
      counts.bytesRead += bytes;
    };
    const chunks = source.chunks(onRead);
    for await (const chunk of chunks) {
      hasStarted ||= chunk.length > 0;
      yield groupOf(reader.push(chunk), chunk.length);
    }
  } catch (error) {
    // After an interruption, the last line may be incomplete.
    if (signal?.aborted) return;
    // Since it was opened first, the file was removed or replaced: a report without it would mislead.
    if (!hasStarted) throw new LogError(`${source.name} cannot be read: ${reasonOf(error)}`);
    counts.addIncomplete(`${source.name} was read only up to an error: ${reasonOf(error)}`);
  }
  if (!hasStarted && !isEmpty) {
    counts.addIncomplete(`${source.name} became empty before it was read.`);
  }
  yield groupOf(reader.end(), 0);
}

function groupOf(requests: readonly LogRequest[], bytes: number): RequestGroup {
  return { requests, meanBytes: bytes / Math.max(1, requests.length) };
}

function unknownFormat(name: string): LogError {
  return new LogError(
    `${name}: none of the first lines has a known format. Allowed: Apache's and nginx's combined and common, Cloudflare Logpush and JSON lines; --format names one.`,
  );
}

function otherFormat(name: string, given: LogFormat, likely: LogFormat): LogError {
  return new LogError(
    `${name}: none of the first lines is a request in the format ${given}. They look like ${likely}: use --format ${likely}, or leave --format out.`,
  );
}
