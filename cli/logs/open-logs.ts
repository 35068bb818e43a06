import { LogError } from "./log-error.ts";
import type { LogFormat } from "./log-format.ts";
import type { LogProgress } from "./log-progress.ts";
import type { LogFacts, LogRequest } from "./log-request.ts";

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
