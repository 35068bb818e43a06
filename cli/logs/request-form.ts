import type { LineParser, LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

/** Reads requests from the bytes of one file. */
export interface RequestReader<Request = LogRequest> {
  /** Returns the requests that these bytes complete, in the order of the file. */
  push(chunk: Buffer): Request[];
  /** Returns the requests that the end of the file completes. */
  end(): Request[];
}

/** Lines of one file, and how to read them. */
export interface LineInput {
  /** The name of the file, for the report. */
  readonly file: string;
  readonly parser: LineParser;
  readonly counts: LogCounts;
  /** The host of requests whose lines state none. */
  readonly host: string | undefined;
  /** The maximum length of a line, in bytes. */
  readonly maxBytes: number;
}

/**
 * The form in which the requests of a log are kept until they are replayed: as objects, or as the numbers of
 * rows in a table, which need less memory and time.
 */
export interface RequestForm<Request> {
  /** The time of a request, in milliseconds since the Unix epoch. */
  readonly timeOf: (request: Request) => number;
  /** Called for each request that is read and not handed out. */
  readonly discard?: (request: Request) => void;
  /** Creates a reader of lines. */
  readonly createReader: (input: LineInput) => RequestReader<Request>;
  /** Returns a request that was read as an object. */
  readonly fromObject: (request: LogRequest) => Request;
}
