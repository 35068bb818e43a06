import { formatCount } from "../../src/admin/format.ts";
import type { LogFormat } from "./log-request.ts";

/** A line that could not be read. Its text is left out, because any part may be a secret. */
interface BrokenLine {
  readonly file: string;
  /** The number of the line; the first is 1. */
  readonly line: number;
  /** The mistake, and the expected form. Contains no control characters. */
  readonly reason: string;
}

/** The maximum number of broken lines in a report. */
const MAX_BROKEN_LINES = 10;
/** The maximum number of notes, because each file can add one or two. */
const MAX_NOTES = 50;

/** Counts of the lines and requests that have been read, and notes about the files. */
export class LogCounts {
  /** Non-empty lines. lines = requests + broken + outside + ignored. */
  lines = 0;
  /** Requests handed out in batches. */
  requests = 0;
  broken = 0;
  /** The first broken lines, at most 10. */
  readonly brokenLines: BrokenLine[] = [];
  /** Requests before `--from` or not before `--to`. */
  outside = 0;
  /** Lines without a request, such as comments and messages of the server. */
  ignored = 0;
  /** Whether a file could not be read to its end. */
  isIncomplete = false;
  /** Notes about the files, such as one about a compressed block that is cut off. */
  readonly notes: string[] = [];
  /** The times of the first request and of the last one, in milliseconds since the Unix epoch. */
  firstAt: number | undefined;
  lastAt: number | undefined;

  addBroken(line: BrokenLine): void {
    this.broken++;
    if (this.brokenLines.length < MAX_BROKEN_LINES) this.brokenLines.push(line);
  }

  /** Adds a note about a file that could not be read to its end. */
  addIncomplete(note: string): void {
    this.isIncomplete = true;
    this.addNote(note);
  }

  addNote(note: string): void {
    if (this.notes.length < MAX_NOTES && !this.notes.includes(note)) this.notes.push(note);
  }
}

/** A line on a terminal that shows how far logs have been read. */
interface ProgressLine {
  /** Shows the current progress. Redraws at most five times a second, so it may be called often. */
  update(): void;
  /** Removes the line. Call it before anything else is printed, also after an error. */
  stop(): void;
}

const REDRAW_MS = 200;
/** Moves to the start of the line, and clears it. */
const CLEAR = "\r\u001b[K";

/** Starts a line with the number of lines that have been read, on the standard error. */
export function startProgressLine(
  progress: LogCounts,
  quiet = false,
  stream: NodeJS.WritableStream & { readonly isTTY?: boolean } = process.stderr,
): ProgressLine {
  const isShown = !quiet && stream.isTTY && process.env.TERM !== "dumb";
  let shownAt = performance.now();
  return {
    update() {
      const now = performance.now();
      if (!isShown || now - shownAt < REDRAW_MS) return;
      shownAt = now;
      stream.write(`${CLEAR}${formatCount(progress.lines, "line")}`);
    },
    stop() {
      if (isShown) stream.write(CLEAR);
    },
  };
}

/** The summary of the logs in a report. Times are in ISO 8601, UTC. */
export interface LogSummary
  extends Readonly<
    Pick<LogCounts, "lines" | "requests" | "broken" | "brokenLines" | "outside" | "ignored">
  > {
  /** The files as the user has written them. */
  readonly files: readonly string[];
  readonly formats: readonly LogFormat[];
  /** Present if a file could not be read to its end, such as a download that was cut off. */
  readonly isIncomplete?: true | undefined;
  /** The time of the first request and of the last one; undefined without a request. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/**
 * Returns the summary of the logs that have been read.
 *
 * @param files the files as the user has written them
 */
export function summariseLogs(
  files: readonly string[],
  { formats, progress }: { readonly formats: readonly LogFormat[]; readonly progress: LogCounts },
): LogSummary {
  const { lines, requests, broken, brokenLines, outside, ignored } = progress;
  const timeOf = (at: number | undefined) => (at === undefined ? at : new Date(at).toISOString());
  return {
    ...{ files, formats, lines, requests, broken, brokenLines, outside, ignored },
    isIncomplete: progress.isIncomplete || undefined,
    from: timeOf(progress.firstAt),
    to: timeOf(progress.lastAt),
  };
}
