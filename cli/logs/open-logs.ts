import type { LogFacts, LogRequest } from "./log-request.ts";

/** The formats of logs. `combined` includes `common`, and lines with a host name before them. */
export const LOG_FORMATS = ["combined", "logpush", "json", "har"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LogOptions {
  /** Paths of files; `-` is the standard input. */
  readonly files: readonly string[];
  /** @default recognised by each file's content */
  readonly format?: LogFormat | undefined;
  /** For JSON lines: the path of the field of each fact, such as `ip` → `client.address`. */
  readonly map?: ReadonlyMap<string, string> | undefined;
  /** The host of all requests, for logs that do not state it. */
  readonly host?: string | undefined;
  /** How far lines may be out of order, in milliseconds. Later lines are counted in `late`. */
  readonly maxDelayMs: number;
  /** Only requests from this time, and before that time, in milliseconds since the Unix epoch. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** A line that could not be read. */
export interface BrokenLine {
  readonly file: string;
  /** The number of the line, or of the entry in a HAR file; the first is 1. */
  readonly line: number;
  /** What is wrong, and what is expected. Contains no control characters. */
  readonly reason: string;
  /** The start of the line, printable, without its query. */
  readonly text: string;
}

/** How far the logs have been read. Its fields change while `batches` is iterated. */
export interface LogProgress {
  /** Bytes of the files, as stored, that have been read. */
  readonly bytesRead: number;
  /** The size of all files; undefined if it is unknown, as for the standard input. */
  readonly bytesTotal: number | undefined;
  /** Non-empty lines, or entries of HAR files. lines = requests + broken + late + outside + ignored. */
  readonly lines: number;
  /** Requests handed out in batches. */
  readonly requests: number;
  readonly broken: number;
  /** The first broken lines, at most 10. */
  readonly brokenLines: readonly BrokenLine[];
  /** Lines that were out of order by more than `maxDelayMs`. They are not replayed. */
  readonly late: number;
  /** Requests before `from` or not before `to`. */
  readonly outside: number;
  /** Lines that are no requests, such as comments and blank entries of a format. */
  readonly ignored: number;
  /** What a reader must know about the files, such as that one ends within a compressed block. */
  readonly notes: readonly string[];
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
 * @throws {LogError} if a file cannot be read, or if none of its first lines is in a known format
 */
export async function openLogs(_options: LogOptions): Promise<Logs> {
  throw new LogError("Reading logs is not built yet.");
}

/** A log that cannot be read. The message names the file, the reason, and what is allowed. */
export class LogError extends Error {
  override readonly name = "LogError";
}
