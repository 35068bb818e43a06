import type { ByteSource, Head } from "./byte-source.ts";
import type { FieldMap } from "./field-map.ts";
import { HarReader } from "./har-reader.ts";
import { LineReader } from "./line-reader.ts";
import { LogError } from "./log-error.ts";
import type { LogFormat } from "./log-format.ts";
import { LogCounts } from "./log-progress.ts";
import type { LogFacts, LogRequest } from "./log-request.ts";
import { openByteSource, reasonOf } from "./open-byte-source.ts";
import { plausibleTime } from "./plausible-time.ts";
import { createParser, recogniseFormat } from "./recognise-format.ts";
import { checkStart, type RecordStart } from "./record-start.ts";
import type { RequestForm, RequestReader } from "./request-form.ts";
import { untilAborted } from "./until-aborted.ts";

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
  /** Ends the waiting for the first lines. */
  readonly signal: AbortSignal | undefined;
}

/** Requests that were read at once. */
export interface RequestGroup<Request> {
  readonly requests: readonly Request[];
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
   *
   * @param signal ends them after the lines that have been read
   * @throws {LogError} if the file can no longer be read at all
   */
  groups<Request>(
    counts: LogCounts,
    form: RequestForm<Request>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<RequestGroup<Request>>;
  /** Closes a file that is not read. */
  close(): Promise<void>;
}

/** @throws {LogError} if the file cannot be read, or if none of its first lines is in a known format */
export async function openLogFile(name: string, options: FileOptions): Promise<LogFile> {
  const source = await openByteSource(name, options.signal);
  try {
    return await readStart(source, options);
  } catch (error) {
    await source.close();
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
  const createReader = <Request>(counts: LogCounts, form: RequestForm<Request>) =>
    readerOf(source.name, format, lines, options, counts, form);
  // The first requests are read twice: here, and with all others.
  const { reader, facts } = createReader(new LogCounts(), OBJECTS);
  const first = isEmpty ? [] : reader.push(head.bytes);
  if (head.isWhole && !isEmpty) first.push(...reader.end());
  if (options.format !== undefined && first.length === 0) {
    const likely = recogniseFormat(lines);
    if (likely !== undefined && likely !== format) throw otherFormat(source.name, format, likely);
  }
  // A user who names the format may know that the requests come later.
  const isUnread = first.length === 0 && (options.format === undefined || format === "logpush");
  const start =
    isEmpty || (format !== "json" && format !== "logpush")
      ? undefined
      : checkStart(source.name, format, lines, options.fields, isUnread);
  return {
    name: source.name,
    format,
    start,
    close: () => source.close(),
    facts: isEmpty ? undefined : facts(),
    firstAt:
      first.length === 0 ? Number.NEGATIVE_INFINITY : plausibleTime(first, 0, ({ at }) => at),
    size: source.size,
    groups: (counts, form, signal) =>
      readGroups(source, createReader(counts, form).reader, counts, { isEmpty, signal }),
  };
}

/** Requests as objects. */
export const OBJECTS: RequestForm<LogRequest> = {
  timeOf: ({ at }) => at,
  createReader: (input) => new LineReader(input),
  fromObject: (request) => request,
};

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

function readerOf<Request>(
  name: string,
  format: LogFormat,
  lines: readonly string[],
  { fields, host }: FileOptions,
  counts: LogCounts,
  form: RequestForm<Request>,
): { reader: RequestReader<Request>; facts: () => LogFacts } {
  if (format === "har") {
    const har = new HarReader(name, counts, host);
    const reader = {
      push: (chunk: Buffer) => har.push(chunk).map(form.fromObject),
      end: () => har.end().map(form.fromObject),
    };
    return { reader, facts: () => har.facts() };
  }
  const parser = createParser(format, lines, fields, host);
  const maxBytes = format === "combined" ? MAX_LINE_BYTES : MAX_RECORD_BYTES;
  const reader = form.createReader({ file: name, parser, host, counts, maxBytes });
  return { reader, facts: () => parser.facts() };
}

async function* readGroups<Request>(
  source: ByteSource,
  reader: RequestReader<Request>,
  counts: LogCounts,
  { isEmpty, signal }: { isEmpty: boolean; signal: AbortSignal | undefined },
): AsyncGenerator<RequestGroup<Request>> {
  let hasStarted = false;
  try {
    const onRead = (bytes: number) => {
      counts.bytesRead += bytes;
    };
    const chunks = source.chunks(onRead);
    for await (const chunk of signal ? untilAborted(chunks, signal) : chunks) {
      hasStarted ||= chunk.length > 0;
      yield groupOf(reader.push(chunk), chunk.length);
    }
  } catch (error) {
    // Since it was opened first, the file was removed or replaced: a report without it would mislead.
    if (!hasStarted) throw new LogError(`${source.name} cannot be read: ${reasonOf(error)}`);
    counts.addIncomplete(`${source.name} was read only up to an error: ${reasonOf(error)}`);
  }
  if (!hasStarted && !isEmpty && !signal?.aborted) {
    counts.addIncomplete(`${source.name} became empty before it was read.`);
  }
  // After an interruption, the last line may be incomplete.
  if (!signal?.aborted) yield groupOf(reader.end(), 0);
}

function groupOf<Request>(requests: readonly Request[], bytes: number): RequestGroup<Request> {
  return { requests, meanBytes: bytes / Math.max(1, requests.length) };
}

function unknownFormat(name: string): LogError {
  return new LogError(
    `${name}: none of the first lines has a known format. Allowed: Apache's and nginx's combined and common, Cloudflare Logpush, JSON lines and HAR; --format names one.`,
  );
}

function otherFormat(name: string, given: LogFormat, likely: LogFormat): LogError {
  return new LogError(
    `${name}: none of the first lines is a request in the format ${given}. They look like ${likely}: use --format ${likely}, or leave --format out.`,
  );
}
