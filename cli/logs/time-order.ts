import { CommandFailure } from "../command-failure.ts";
import type { LogFile } from "./log-file.ts";
import type { LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

/** How far a line may be out of order, in milliseconds. Servers write a line when the response ends. */
export const MAX_DISORDER_MS = 60_000;
/** The maximum number of requests that wait for earlier ones. With lines of 300 characters, they need 75 MB. */
const MAX_WAITING = 250_000;
/** A batch has about this many requests. */
const BATCH = 1024;

/** Inserts an element after all elements of the same time or earlier ones. */
export function insertByTime<Each extends { readonly at: number }>(list: Each[], each: Each): void {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((list[middle] as Each).at <= each.at) from = middle + 1;
    else to = middle;
  }
  list.splice(from, 0, each);
}

/** The requests of the last minute of a log, which a later line may precede. */
export class TimeOrder {
  readonly #waiting: LogRequest[] = [];
  readonly #maxWaiting: number;
  /** The number of requests that still waited after the last call of `take`. */
  #left = 0;
  /** The time of the last request that was handed out. */
  #takenAt = Number.NEGATIVE_INFINITY;

  constructor(maxWaiting = MAX_WAITING) {
    this.#maxWaiting = maxWaiting;
  }

  /** @returns false if a later request was handed out already, so that this one cannot be decided any more */
  add(request: LogRequest): boolean {
    if (request.at < this.#takenAt) return false;
    insertByTime(this.#waiting, request);
    return true;
  }

  /** Whether enough requests have come for a batch. */
  get isFull(): boolean {
    return this.#waiting.length >= this.#left + BATCH;
  }

  /** Hands out the requests that are more than a minute earlier than the latest one; with `isEnd`, all. */
  take(isEnd = false): LogRequest[] {
    const waiting = this.#waiting;
    const until = (waiting.at(-1)?.at ?? 0) - MAX_DISORDER_MS;
    const stays = isEnd ? -1 : waiting.findIndex(({ at }) => at >= until);
    const count = stays === -1 ? waiting.length : stays;
    const taken = waiting.splice(0, Math.max(count, waiting.length - this.#maxWaiting));
    this.#takenAt = taken.at(-1)?.at ?? this.#takenAt;
    this.#left = waiting.length;
    return taken;
  }

  /** The time of the last request that was handed out. */
  get takenAt(): number {
    return this.#takenAt;
  }
}

/** A file that is being read, or that waits for its turn. */
interface Reading {
  readonly file: LogFile;
  readonly groups: AsyncGenerator<readonly LogRequest[]>;
  requests: readonly LogRequest[];
  index: number;
  /** The time of its next request; until the next group is read, the time of the last known request. */
  nextAt: number;
}

/**
 * Reads several files at once, always from the file with the earliest next request. So rotated files may be given in
 * any order, and no request is more out of order than within its file. A file is opened at the time of its first
 * request, so rotated files are open one at a time.
 *
 * Yields after each group of requests that was read, so that the caller can hand out requests.
 */
async function* mergeFiles(
  files: readonly LogFile[],
  counts: LogCounts,
  onRequest: (request: LogRequest, file: LogFile) => void,
): AsyncGenerator<void> {
  const readings = files.map(
    (file): Reading => ({
      ...{ file, groups: file.groups(counts) },
      ...{ requests: [], index: 0, nextAt: file.firstAt },
    }),
  );
  try {
    for (;;) {
      const reading = earliest(readings);
      if (!reading) return;
      const request = reading.requests[reading.index];
      if (request) {
        reading.index++;
        reading.nextAt = reading.requests[reading.index]?.at ?? request.at;
        onRequest(request, reading.file);
        continue;
      }
      const { value, done } = await reading.groups.next();
      if (done) readings.splice(readings.indexOf(reading), 1);
      else {
        reading.requests = value;
        reading.index = 0;
        reading.nextAt = value[0]?.at ?? reading.nextAt;
      }
      yield;
    }
  } finally {
    for (const { groups } of readings) await groups.return(undefined);
    // A generator that has not begun does not close its file.
    for (const file of files) file.close();
  }
}

function earliest(readings: readonly Reading[]): Reading | undefined {
  let first = readings[0];
  for (const reading of readings) {
    if (first && reading.nextAt < first.nextAt) first = reading;
  }
  return first;
}

/** The requests to hand out: those from `from` on, and before `to`; in milliseconds since the Unix epoch. */
export interface Period {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/**
 * Reads the requests of all files, in the order of their times.
 *
 * @throws {CommandFailure} if a file is out of order by more than {@link MAX_DISORDER_MS}
 */
export async function* readBatches(
  files: readonly LogFile[],
  counts: LogCounts,
  { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY }: Period,
): AsyncGenerator<readonly LogRequest[]> {
  const order = new TimeOrder();
  const onRequest = (request: LogRequest, file: LogFile) => {
    if (request.at < from || request.at >= to) counts.outside++;
    else if (!order.add(request)) throw outOfOrder(request, order.takenAt, file);
  };
  for await (const _ of mergeFiles(files, counts, onRequest)) {
    if (order.isFull) yield* batchesOf(order.take(), counts);
  }
  yield* batchesOf(order.take(true), counts);
}

function* batchesOf(
  requests: readonly LogRequest[],
  counts: LogCounts,
): Generator<readonly LogRequest[]> {
  for (let from = 0; from < requests.length; from += BATCH) {
    const batch = requests.slice(from, from + BATCH);
    counts.firstAt ??= batch[0]?.at;
    counts.lastAt = batch.at(-1)?.at;
    counts.requests += batch.length;
    yield batch;
  }
}

function outOfOrder({ at }: LogRequest, takenAt: number, file: LogFile): CommandFailure {
  const [late, before] = [at, takenAt].map((each) => new Date(each).toISOString());
  return new CommandFailure(
    2,
    `${file.name}: the log is out of order: a request of ${late} comes more than a minute too late, after one of ${before} was decided. Sort it: ${file.sortCommand} (or suggest, with your options). If a single line has a wrong time, leave it out with --from or --to.`,
  );
}
