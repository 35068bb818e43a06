import { printable } from "../doctor/finding.ts";
import { lineSample } from "./line-sample.ts";

/** A line that could not be read. */
export interface BrokenLine {
  readonly file: string;
  /** The number of the line, or of the entry in a HAR file; the first is 1. */
  readonly line: number;
  /** What is wrong, and what is expected. Contains no control characters. */
  readonly reason: string;
  /** The parts of the line that are no secrets, printable. */
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
  /** Whether a file could not be read to its end. */
  readonly isIncomplete?: boolean;
  /** What a reader must know about the files, such as that one ends within a compressed block. */
  readonly notes: readonly string[];
}

/** The maximum number of broken lines in a report. */
const MAX_BROKEN_LINES = 10;
/** The maximum number of notes. Each file can add one or two. */
const MAX_NOTES = 50;

/** Counts what is read from logs. */
export class LogCounts implements LogProgress {
  bytesRead = 0;
  bytesTotal: number | undefined = 0;
  lines = 0;
  requests = 0;
  broken = 0;
  readonly brokenLines: BrokenLine[] = [];
  late = 0;
  outside = 0;
  ignored = 0;
  isIncomplete = false;
  readonly notes: string[] = [];

  /** Counts a broken line. */
  addBroken(file: string, line: number, reason: string, text: string): void {
    this.broken++;
    if (this.brokenLines.length >= MAX_BROKEN_LINES) return;
    this.brokenLines.push({ file, line, reason, text: printable(lineSample(text)) });
  }

  /** Adds a note about a file that could not be read to its end. */
  addIncomplete(note: string): void {
    this.isIncomplete = true;
    this.addNote(note);
  }

  /** Adds a note, unless it is known. */
  addNote(note: string): void {
    if (this.notes.length < MAX_NOTES && !this.notes.includes(note)) this.notes.push(note);
  }
}
