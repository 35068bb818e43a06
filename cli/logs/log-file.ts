import { isAscii } from "node:buffer";
import { CommandFailure } from "../command-failure.ts";
import { AccessLineParser } from "./access-line.ts";
import { type ByteSource, type Head, openByteSource, reasonOf } from "./bytes.ts";
import {
  checkStart,
  type FieldMap,
  fieldsOf,
  isLogpush,
  type RecordStart,
  recordsOf,
} from "./fields.ts";
import { RecordParser } from "./json-records.ts";
import type { LineParser, LogFacts, LogFormat, LogRequest } from "./log-request.ts";
import { LogCounts } from "./progress.ts";

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

const NEWLINE = 10;
const RETURN = 13;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** How much of a line that is too long is kept for the report, in characters. */
const KEPT = 512;

/** Lines of one file, and how to read them. */
interface LineInput {
  /** The name of the file, for the report. */
  readonly file: string;
  readonly parser: LineParser;
  readonly counts: LogCounts;
  /** The maximum length of a line, in bytes. Of longer lines, the rest is not held in memory. */
  readonly maxBytes: number;
}

/**
 * Reads requests from the lines of one file, and counts the lines that are none. Bytes that are no UTF-8 become
 * U+FFFD.
 */
export class LineReader {
  readonly #input: LineInput;
  /** The start of the line that the next bytes continue. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #isStart = true;
  #number = 0;
  #requests: LogRequest[] = [];

  constructor(input: LineInput) {
    this.#input = input;
  }

  /** Returns the requests that these bytes complete, in the order of the file. */
  push(chunk: Buffer): LogRequest[] {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end === -1) this.#keep(chunk);
    else {
      this.#readLines(Buffer.concat([...this.#pending, chunk.subarray(0, end)]));
      this.#pending = [];
      this.#pendingBytes = 0;
      this.#keep(chunk.subarray(end + 1));
    }
    return this.#take();
  }

  /** Returns the request that the end of the file completes: the last line may have no line end. */
  end(): LogRequest[] {
    if (this.#pendingBytes > 0) this.#readLines(Buffer.concat(this.#pending));
    return this.#take();
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  /** Keeps the start of a line, with up to two bytes more than allowed: one may belong to the line end. */
  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.#input.maxBytes + 2 - this.#pendingBytes);
    if (kept.length === 0) return;
    this.#pending.push(kept);
    this.#pendingBytes += kept.length;
  }

  /** @param bytes whole lines, without the last line end */
  #readLines(bytes: Buffer): void {
    const text = this.#decode(bytes);
    let from = 0;
    while (from <= text.length) {
      const next = text.indexOf("\n", from);
      const end = next === -1 ? text.length : next;
      this.#readLine(text, from, text.charCodeAt(end - 1) === RETURN ? end - 1 : end);
      from = end + 1;
    }
  }

  #decode(bytes: Buffer): string {
    const hasMark = this.#isStart && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
    this.#isStart = false;
    const content = hasMark ? bytes.subarray(3) : bytes;
    // For ASCII, this is twice as fast as decoding UTF-8.
    return content.toString(isAscii(content) ? "latin1" : "utf8");
  }

  #readLine(text: string, from: number, to: number): void {
    const { parser, counts, maxBytes } = this.#input;
    this.#number++;
    // A character has at most three bytes for each unit of its length.
    if ((to - from) * 3 > maxBytes && Buffer.byteLength(text.slice(from, to)) > maxBytes) {
      this.#countBroken(`is longer than ${maxBytes / 1024} KiB`, text.slice(from, from + KEPT));
      return;
    }
    const content = parser.parse(text, from, to);
    if (typeof content === "object") {
      this.#requests.push(content);
      counts.lines++;
    } else if (content === undefined) {
      counts.ignored++;
      counts.lines++;
    } else {
      const line = text.slice(from, to);
      if (line.trim() !== "") this.#countBroken(content, line);
    }
  }

  #countBroken(reason: string, line: string): void {
    const { file, counts } = this.#input;
    counts.lines++;
    counts.addBroken(file, this.#number, reason, line);
  }
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
   * @throws {CommandFailure} if the file can no longer be read at all
   */
  groups(counts: LogCounts): AsyncGenerator<RequestGroup>;
  /** Closes a file that is not read to its end. */
  close(): void;
}

/** @throws {CommandFailure} if the file cannot be read, or if none of its first lines is in a known format */
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
    throw new CommandFailure(2, `${source.name} cannot be read: ${reasonOf(error)}`);
  }
  if (signal?.aborted && !head.isWhole && !head.bytes.includes("\n")) {
    throw new CommandFailure(
      2,
      `${source.name}: the command was interrupted before the first line.`,
    );
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
    if (!hasStarted)
      throw new CommandFailure(2, `${source.name} cannot be read: ${reasonOf(error)}`);
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

function unknownFormat(name: string): CommandFailure {
  return new CommandFailure(
    2,
    `${name}: none of the first lines has a known format. Allowed: Apache's and nginx's combined and common, Cloudflare Logpush and JSON lines; --format names one.`,
  );
}

function otherFormat(name: string, given: LogFormat, likely: LogFormat): CommandFailure {
  return new CommandFailure(
    2,
    `${name}: none of the first lines is a request in the format ${given}. They look like ${likely}: use --format ${likely}, or leave --format out.`,
  );
}
