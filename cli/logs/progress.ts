import cliProgress from "cli-progress";
import { formatCount, formatDuration } from "../../src/admin/format.ts";
import { printable } from "../print/text.ts";
import { clientIp, hostName, type LogFormat } from "./log-request.ts";

/** How much of a line is looked at, in characters. */
const EXAMINED = 1000;
/** The maximum length of a sample, in characters. */
const MAX_LENGTH = 200;

/** The fields before the request of an access log: one or two addresses, two names, and a time in brackets. */
const FIELD = /^\S{1,100}$/;
/** Digits first, so that no other text in brackets is taken for a time. */
const TIME = /^\d{1,4}[/-][\w/:+,. -]{4,35}$/;
const REQUEST = /^"[A-Z]{3,17} (?:\/[\w/.~-]*)?/;

/** A name in an object. Names of other forms may be values, such as those of a query. */
const NAME = /^[A-Za-z@_][\w.@-]{0,49}$/;
const NAMES = /[{,]\s{0,8}"([A-Za-z@_][\w.@-]{0,49})"\s{0,8}:/g;

/**
 * Returns the parts of a broken line that are no secrets: the address, the time, the method, and the path up to its
 * first unusual character; of JSON, the names of the fields. Removing secrets from a line would not do, because in a
 * broken line, they can be anywhere and in any form.
 */
export function lineSample(line: string): string {
  const text = line.slice(0, EXAMINED).trimStart();
  const sample = sampleOf(line, text);
  return sample.length > MAX_LENGTH ? `${sample.slice(0, MAX_LENGTH - 1)}…` : sample;
}

function sampleOf(line: string, text: string): string {
  if (text.startsWith("{") || text.startsWith("[")) return fieldNames(line);
  return accessFields(text);
}

function accessFields(text: string): string {
  const bracket = text.indexOf("[");
  const fields = text.slice(0, Math.max(0, bracket - 1)).split(" ");
  const [first = "", second = ""] = fields;
  if (!fields.every((field) => FIELD.test(field))) return "…";
  const hasHost = clientIp(second) !== undefined && hostName(first) !== undefined;
  if (!hasHost && clientIp(first) === undefined) return "…";
  const addresses = fields.slice(0, hasHost ? 2 : 1);
  const names = fields.slice(addresses.length).map((field) => (field === "-" ? "-" : "…"));
  const close = text.indexOf("]", bracket);
  const time = text.slice(bracket + 1, close);
  const start = [...addresses, ...names].join(" ");
  if (!TIME.test(time)) return `${start} […`;
  const [request = ""] = REQUEST.exec(text.slice(close + 2)) ?? [];
  return `${start} [${time}] ${request}…`;
}

function fieldNames(line: string): string {
  const names =
    topNames(line) ?? [...line.slice(0, EXAMINED).matchAll(NAMES)].map(([, name]) => name);
  return `{${names.map((name) => `"${name}": …`).join(", ")}`;
}

/** @returns undefined if the line is no object */
function topNames(line: string): string[] | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return Object.keys(value).map((name) => (NAME.test(name) ? name : "…"));
  } catch {
    return undefined;
  }
}

/** A line that could not be read. */
interface BrokenLine {
  readonly file: string;
  /** The number of the line; the first is 1. */
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
  /** Non-empty lines. lines = requests + broken + late + outside + ignored. */
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

/** A bar on a terminal that shows how far logs have been read. */
interface ProgressBar {
  /** Shows the current progress. Redraws at most five times a second, so it may be called often. */
  update(): void;
  /** Removes the bar. Call it before anything else is printed, also after an error. */
  stop(): void;
}

interface ProgressBarOptions {
  /** Show nothing. */
  readonly quiet?: boolean | undefined;
  /** @default standard error, so that standard output has only the report */
  readonly stream?: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** The kind of terminal; on "dumb" ones, the bar shows nothing. @default the variable TERM */
  readonly term?: string | undefined;
  /** Returns the time in milliseconds. */
  readonly now?: () => number;
}

const NONE: ProgressBar = { update() {}, stop() {} };

/** Starts a bar with the rate and the time left. On a stream that is no terminal, it shows nothing. */
export function startProgressBar(
  progress: LogProgress,
  {
    quiet,
    stream = process.stderr,
    term = process.env.TERM,
    now = performance.now.bind(performance),
  }: ProgressBarOptions = {},
): ProgressBar {
  if (quiet || !stream.isTTY || term === "dumb") return NONE;
  const begin = now();
  const { bytesTotal } = progress;
  const text = () => ({ text: progressText(progress, now() - begin) });
  const bar = new cliProgress.SingleBar({
    stream,
    format: bytesTotal ? "[{bar}] {percentage}% · {text}" : "{text}",
    barsize: 24,
    fps: 5,
    clearOnComplete: true,
    // Without it, the bar would switch the terminal's line wrapping off, and a signal would leave it off.
    linewrap: true,
  });
  // Without a known size, the total only keeps the bar from being complete.
  bar.start(bytesTotal || Number.MAX_SAFE_INTEGER, 0, text());
  return {
    update: () => bar.update(progress.bytesRead, text()),
    stop: () => bar.stop(),
  };
}

/** Returns such as `1,234,567 lines · 182,000 per second · 12s left`. */
export function progressText(
  { bytesRead, bytesTotal, lines }: Pick<LogProgress, "bytesRead" | "bytesTotal" | "lines">,
  elapsedMs: number,
): string {
  const parts = [formatCount(lines, "line")];
  // The first moments say nothing about the rest.
  if (elapsedMs < 500 || bytesRead === 0) return parts.join("");
  parts.push(`${formatCount(Math.round((lines / elapsedMs) * 1000))} per second`);
  if (bytesTotal && bytesRead < bytesTotal) {
    parts.push(`${formatDuration(elapsedMs * ((bytesTotal - bytesRead) / bytesRead))} left`);
  }
  return parts.join(" · ");
}

/** What was read from logs, for reports. Times are in ISO 8601, UTC. */
export interface LogSummary {
  /** The files as the user has written them. */
  readonly files: readonly string[];
  readonly formats: readonly LogFormat[];
  /** Non-empty lines: requests + broken + late + outside + ignored. */
  readonly lines: number;
  readonly requests: number;
  readonly broken: number;
  readonly brokenLines: readonly BrokenLine[];
  readonly late: number;
  readonly outside: number;
  readonly ignored: number;
  /** Present if a file could not be read to its end, such as a download that was cut off. */
  readonly isIncomplete?: true | undefined;
  /** The time of the first request and of the last one; undefined without a request. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** The times of the first request and of the last one, in milliseconds since the Unix epoch. */
export class LogPeriod {
  from: number | undefined;
  to: number | undefined;

  /** Adds requests that are sorted by time, given the times of the first and the last. */
  add(firstAt: number, lastAt: number): void {
    this.from ??= firstAt;
    this.to = lastAt;
  }

  get lengthMs(): number {
    return (this.to ?? 0) - (this.from ?? 0);
  }
}

/**
 * Returns what has been read from logs.
 *
 * @param files the files as the user has written them
 */
export function summariseLogs(
  files: readonly string[],
  { formats, progress }: { readonly formats: readonly LogFormat[]; readonly progress: LogProgress },
  { from, to }: LogPeriod,
): LogSummary {
  const { lines, requests, broken, brokenLines, late, outside, ignored, isIncomplete } = progress;
  return {
    files,
    formats,
    lines,
    requests,
    broken,
    brokenLines,
    late,
    outside,
    ignored,
    isIncomplete: isIncomplete || undefined,
    from: from === undefined ? undefined : new Date(from).toISOString(),
    to: to === undefined ? undefined : new Date(to).toISOString(),
  };
}
