import { isAscii } from "node:buffer";
import { CommandFailure } from "../command-failure.ts";
import { type ByteSource, type Head, openByteSource, reasonOf } from "./bytes.ts";
import {
  type AbsentField,
  absentFields,
  describeRecords,
  type FieldMap,
  statusNote,
} from "./json-fields.ts";
import { createParser, recogniseFormat } from "./log-format.ts";
import type { LineParser, LogFacts, LogFormat, LogRequest } from "./log-request.ts";
import { conversionOf, firstFault, pipeOf } from "./other-formats.ts";
import { LogCounts } from "./progress.ts";

const NEWLINE = 10;
const RETURN = 13;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The parser and the bounds for the lines of one file. */
interface LineInput {
  /** The name of the file, for the report. */
  readonly file: string;
  readonly parser: LineParser;
  readonly counts: LogCounts;
  /** The maximum length of a line, in bytes. The rest of a longer line is not kept in memory. */
  readonly maxBytes: number;
}

/** Reads requests from the lines of one file, and counts all other lines. Bytes that are no UTF-8 become U+FFFD. */
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

  /** Returns the request of a last line without a line end. */
  end(): LogRequest[] {
    if (this.#pendingBytes > 0) this.#readLines(Buffer.concat(this.#pending));
    return this.#take();
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  /** Keeps the start of a line, with two bytes more than allowed: one for the line end, one that shows the excess. */
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
      this.#readLine(text.slice(from, text.charCodeAt(end - 1) === RETURN ? end - 1 : end));
      from = end + 1;
    }
  }

  #decode(bytes: Buffer): string {
    const hasMark = this.#isStart && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
    this.#isStart = false;
    const content = hasMark ? bytes.subarray(3) : bytes;
    // For ASCII, decoding Latin-1 is twice as fast as decoding UTF-8.
    return content.toString(isAscii(content) ? "latin1" : "utf8");
  }

  #readLine(line: string): void {
    const { file, parser, counts, maxBytes } = this.#input;
    this.#number++;
    // In UTF-8, a text has at most three bytes for each unit of its length.
    const isLong = line.length * 3 > maxBytes && Buffer.byteLength(line) > maxBytes;
    const content = isLong ? `is longer than ${maxBytes / 1024} KiB` : parser.parse(line);
    if (typeof content === "object") this.#requests.push(content);
    else if (content === undefined) counts.ignored++;
    else if (line.trim() === "") return;
    else counts.addBroken({ file, line: this.#number, reason: content });
    counts.lines++;
  }
}

/** The number of bytes that are read to recognise a format. A log may begin with thousands of garbage requests. */
const HEAD_BYTES = 1024 * 1024;

const MAX_LINE_BYTES = 64 * 1024;
/** JSON records may be longer than access lines, because they may have many fields that no rule reads. */
const MAX_RECORD_BYTES = 1024 * 1024;

/** The options for opening a log. */
export interface FileOptions {
  /** @default recognised by each file's content */
  readonly format: LogFormat | undefined;
  readonly fields: FieldMap;
  readonly host: string | undefined;
  readonly withDurations: boolean | undefined;
  /** Ends the reading, even during a wait for bytes. */
  readonly signal: AbortSignal | undefined;
}

/** A log whose first lines have been read. */
export interface LogFile {
  readonly name: string;
  readonly format: LogFormat;
  /** The facts that every request of its first lines states; undefined for an empty file. */
  readonly facts: LogFacts | undefined;
  /** The time of its first request; -∞ if the first lines have none. */
  readonly firstAt: number;
  /** Fields of `--map` that none of its first records has; undefined for a file that is not JSON. */
  readonly absent: readonly AbsentField[] | undefined;
  /** A remark on what its first lines lack. */
  readonly note: string | undefined;
  /** A command for a shell that replays its lines in the order of their times. */
  readonly sortCommand: string;
  /**
   * Reads the requests in the order of the file. A read error after the first bytes becomes a note, and ends the
   * requests. An interruption ends the requests after the lines that have been read.
   *
   * @throws {CommandFailure} if the file can no longer be read at all
   */
  groups(counts: LogCounts): AsyncGenerator<readonly LogRequest[]>;
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
  const { name } = source;
  const { fields, host, withDurations, signal } = options;
  const head = await headOf(source, signal);
  const lines = linesOf(head);
  const isEmpty = lines.every((line) => line.trim() === "");
  const recognised = isEmpty ? "combined" : recogniseFormat(lines);
  const format = options.format ?? recognised;
  if (format === undefined) throw unreadable(name, lines, "a known format");
  const createReader = (counts: LogCounts) => {
    const parser = createParser(format, lines, fields, host, withDurations);
    const maxBytes = format === "combined" ? MAX_LINE_BYTES : MAX_RECORD_BYTES;
    return { parser, reader: new LineReader({ file: name, parser, counts, maxBytes }) };
  };
  // The first requests are read twice: here, and with all others.
  const { reader, parser } = createReader(new LogCounts());
  const first = reader.push(head.bytes);
  if (head.isWhole) first.push(...reader.end());
  const isJson = format === "json" && !isEmpty;
  const absent = isJson ? absentFields(name, lines, fields) : undefined;
  if (first.length === 0 && !isEmpty) {
    if (recognised !== format) throw unreadable(name, lines, `the format ${format}`);
    // With a named format, the requests may begin later in the file.
    if (isJson && options.format === undefined) {
      throw fault(name, conversionOf(name, lines) ?? describeRecords(lines));
    }
  }
  const facts = isEmpty ? undefined : parser.facts();
  return {
    ...{ name, format, absent, facts },
    note: isJson && facts ? statusNote(name, lines, fields, facts) : undefined,
    sortCommand: pipeOf(parser.sortCommand, name),
    firstAt: first[0]?.at ?? Number.NEGATIVE_INFINITY,
    close: () => source.close(),
    groups: (counts) => readGroups(source, createReader(counts).reader, counts, isEmpty, signal),
  };
}

function fault(name: string, text: string): CommandFailure {
  return new CommandFailure(2, `${name}: ${text}`);
}

function unreadable(name: string, lines: readonly string[], format: string): CommandFailure {
  const text = `none of the first lines has ${format}. ${firstFault(lines)}. Allowed: Apache's and nginx's combined and common, and JSON lines such as Cloudflare Logpush, plain or compressed with gzip or zstd; --format names one.`;
  return fault(name, conversionOf(name, lines) ?? text);
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

/** Returns the lines of a file's start, without a last line that is cut off. */
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
  isEmpty: boolean,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly LogRequest[]> {
  let hasStarted = false;
  try {
    for await (const chunk of source.chunks()) {
      hasStarted ||= chunk.length > 0;
      yield reader.push(chunk);
    }
  } catch (error) {
    // After an interruption, the last line may be incomplete.
    if (signal?.aborted) return;
    // The file was removed or replaced after its first lines were read. A report without the file would mislead.
    if (!hasStarted)
      throw new CommandFailure(2, `${source.name} cannot be read: ${reasonOf(error)}`);
    counts.addIncomplete(`${source.name} was read only up to an error: ${reasonOf(error)}`);
  }
  if (!hasStarted && !isEmpty) {
    counts.addIncomplete(`${source.name} became empty before it was read.`);
  }
  yield reader.end();
}
