import { type ByteSource, openByteSource, reasonOf } from "./byte-source.ts";
import { LineReader, type RequestReader } from "./line-reader.ts";
import { LogError } from "./log-error.ts";
import type { LogFormat } from "./log-format.ts";
import type { LogCounts } from "./log-progress.ts";
import type { LogFacts, LogRequest } from "./log-request.ts";
import { type RecognisedFormat, recogniseFormat } from "./recognise-format.ts";

/** The bytes by which a format is recognised. */
const HEAD_BYTES = 64 * 1024;

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
  readonly facts: LogFacts;
  /** The time of its first request; -∞ if the first lines have none. */
  readonly firstAt: number;
  readonly size: number | undefined;
  /** Reads the requests in the order of the file. A read error ends them, and becomes a note. */
  groups(counts: LogCounts): AsyncGenerator<RequestGroup>;
}

/** @throws {LogError} if the file cannot be read, or if none of its first lines is in a known format */
export async function openLogFile(name: string, host: string | undefined): Promise<LogFile> {
  const source = await openByteSource(name);
  const lines = await firstLines(source);
  const recognised = recogniseFormat(lines, host);
  if (!recognised) {
    throw new LogError(
      `${name}: none of the first lines is in a known format. Known are combined and common of Apache and nginx.`,
    );
  }
  const parser = recognised.parser();
  const requests = lines.map((line) => parser.parse(line));
  const first = requests.find((content) => typeof content === "object");
  return {
    name,
    format: recognised.format,
    facts: parser.facts(),
    firstAt: first?.at ?? Number.NEGATIVE_INFINITY,
    size: source.size,
    groups: (counts) => readGroups(source, recognised, counts),
  };
}

async function firstLines(source: ByteSource): Promise<string[]> {
  try {
    const head = await source.head(HEAD_BYTES);
    const lines = head.toString().split(/\r?\n/);
    // The last line may be cut off. A line that is longer than the head is not recognised.
    if (head.length >= HEAD_BYTES && lines.length > 1) lines.pop();
    return lines;
  } catch (error) {
    throw new LogError(`${source.name} cannot be read: ${reasonOf(error)}`);
  }
}

async function* readGroups(
  source: ByteSource,
  { parser, maxLineBytes }: RecognisedFormat,
  counts: LogCounts,
): AsyncGenerator<RequestGroup> {
  const reader: RequestReader = new LineReader(source.name, parser(), counts, maxLineBytes);
  try {
    const onRead = (bytes: number) => {
      counts.bytesRead += bytes;
    };
    for await (const chunk of source.chunks(onRead)) {
      yield group(reader.push(chunk), chunk.length);
    }
  } catch (error) {
    counts.addNote(`${source.name} was read only up to an error: ${reasonOf(error)}`);
  }
  yield group(reader.end(), 0);
}

function group(requests: readonly LogRequest[], bytes: number): RequestGroup {
  return { requests, meanBytes: bytes / Math.max(1, requests.length) };
}
