import { ClockJumps } from "./clock-jumps.ts";
import { commonFacts } from "./common-facts.ts";
import { fieldMap } from "./field-map.ts";
import type { AbsentField } from "./given-fields.ts";
import { hostName } from "./host-name.ts";
import { LogError } from "./log-error.ts";
import { type FileOptions, type LogFile, OBJECTS, openLogFile } from "./log-file.ts";
import type { LogFormat } from "./log-format.ts";
import { LogCounts, type LogProgress } from "./log-progress.ts";
import type { LogFacts, LogRequest } from "./log-request.ts";
import { mergeFiles } from "./merge-files.ts";
import type { RequestForm } from "./request-form.ts";
import { TimeOrder } from "./time-order.ts";

export interface LogOptions {
  /** Paths of files; `-` is the standard input. */
  readonly files: readonly string[];
  /** @default recognised by each file's content */
  readonly format?: LogFormat | undefined;
  /** For JSON lines: the path of the field of each fact, such as `ip` → `client.address`. */
  readonly map?: ReadonlyMap<string, string> | undefined;
  /** Whether a field of `map` may be missing in all first records, if requests can lack its fact. */
  readonly missingAsAbsent?: boolean | undefined;
  /** The host of all requests, for logs that do not state it. */
  readonly host?: string | undefined;
  /** How far lines may be out of order, in milliseconds. Later lines are counted in `late`. */
  readonly maxDelayMs: number;
  /** Only requests from this time, and before that time, in milliseconds since the Unix epoch. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Ends the waiting for the first lines, such as of a standard input that pauses. */
  readonly signal?: AbortSignal | undefined;
}

/** Logs whose first lines have been read. */
export interface Logs {
  /** The format of each file, in the order of the files. */
  readonly formats: readonly LogFormat[];
  /** What all files can state. */
  readonly facts: LogFacts;
  readonly progress: LogProgress;
  /**
   * The requests of all files, in the order of their times. Call it once.
   *
   * @param signal ends the reading, even while the next lines do not come. The batches then end with the requests of
   * all lines that have been read
   */
  batches(signal?: AbortSignal): AsyncIterable<readonly LogRequest[]>;
}

/** Logs that can be read in other forms than objects. */
export interface OpenLogs extends Logs {
  /** Returns the same as `batches` in another form. Call only one of the two. */
  batchesIn<Request>(
    form: RequestForm<Request>,
    signal?: AbortSignal,
  ): AsyncIterable<readonly Request[]>;
}

/**
 * Opens logs and recognises their formats.
 *
 * @throws {LogError} if a file cannot be read, or if none of its first lines is in a known format, or if no file
 * has a field of `map`, or if the signal is aborted before the first line
 */
export async function openLogs(options: LogOptions): Promise<OpenLogs> {
  const { format, host, signal } = options;
  const fields = fieldMap(options.map ?? []);
  const files = await openFiles(options, {
    format,
    fields,
    host: host && hostName(host),
    signal,
  });
  const counts = new LogCounts();
  for (const { name, format, facts, start } of files) {
    if (!facts) counts.addNote(`${name} is empty.`);
    else if (fields.size > 0 && (format === "combined" || format === "har")) {
      counts.addNote(
        `${name} is in the format ${format}: --map is for JSON lines, and has no effect on it.`,
      );
    }
    for (const note of start?.notes ?? []) counts.addNote(note);
  }
  for (const { reason } of absentInAll(files)) {
    counts.addNote(`${reason} Requests without it count as ones that lack it.`);
  }
  const sizes = files.map(({ size }) => size);
  counts.bytesTotal = sizes.reduce(
    (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
    0,
  );
  return {
    formats: files.map(({ format }) => format),
    facts: commonFacts(files.map(({ facts }) => facts).filter((facts) => facts !== undefined)),
    progress: counts,
    batches: (signal) => readBatches(files, options, counts, OBJECTS, signal),
    batchesIn: (form, signal) => readBatches(files, options, counts, form, signal),
  };
}

async function openFiles(
  { files: names, missingAsAbsent }: LogOptions,
  options: FileOptions,
): Promise<LogFile[]> {
  const files: LogFile[] = [];
  try {
    for (const name of names) files.push(await openLogFile(name, options));
    const [absent] = absentInAll(files);
    if (!absent || missingAsAbsent) return files;
    throw new LogError(`${absent.reason} If only few requests have it, add --missing-as-absent.`);
  } catch (error) {
    // An open standard input would keep the program running.
    for (const file of files) await file.close();
    throw error;
  }
}

/** Returns the fields of `--map` that none of the first records of any file has. */
function absentInAll(files: readonly LogFile[]): readonly AbsentField[] {
  const starts = files.map(({ start }) => start).filter((start) => start !== undefined);
  const [first = [], ...others] = starts.map(({ absent }) => absent);
  return first.filter(({ fact }) =>
    others.every((each) => each.some((other) => other.fact === fact)),
  );
}

/** The number of requests from which a batch is handed out. */
const BATCH = 4096;

async function* readBatches<Request>(
  files: readonly LogFile[],
  { maxDelayMs, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY }: LogOptions,
  counts: LogCounts,
  form: RequestForm<Request>,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly Request[]> {
  const inTime = new TimeOrder(maxDelayMs, counts, form);
  const order = new ClockJumps(inTime, counts, form.timeOf, maxDelayMs);
  const onRequest = (request: Request, bytes: number) => {
    const at = form.timeOf(request);
    if (at >= from && at < to) order.add(request, bytes);
    else {
      counts.outside++;
      form.discard?.(request);
    }
  };
  for await (const _ of mergeFiles(files, counts, form, onRequest, signal)) {
    if (order.readyCount >= BATCH) yield* batchesOf(order.take(), counts);
  }
  yield* batchesOf(order.finish(), counts);
}

function* batchesOf<Request>(
  requests: readonly Request[],
  counts: LogCounts,
): Generator<readonly Request[]> {
  for (let from = 0; from < requests.length; from += BATCH) {
    const batch = requests.slice(from, from + BATCH);
    counts.requests += batch.length;
    yield batch;
  }
}
