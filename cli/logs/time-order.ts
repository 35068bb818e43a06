import { formatDuration } from "../../src/admin/format.ts";
import type { LogFile } from "./log-file.ts";
import type { LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

/** The default bounds: 250,000 requests with lines of 300 characters need 75 MB. */
const BOUNDS: WaitingBounds = { requests: 250_000, length: 128 * 1024 * 1024 };

const EARLY =
  "Too many requests were logged within the time by which lines may be out of order. Some were taken as in order before that time had passed, so more lines may count as late. A shorter --max-delay prevents this.";

/** A batch is handed out at about this many requests. A larger one would partly survive garbage collections. */
const BATCH = 1024;

/** Bounds of the requests that wait. */
interface WaitingBounds {
  readonly requests: number;
  /** The length of their lines, in characters. */
  readonly length: number;
}

/** The requests of one second, in the order of the log. */
interface Second {
  readonly second: number;
  readonly requests: LogRequest[];
}

/**
 * Orders requests by their times. Servers write a line when the response ends, so lines are out of order by
 * the longest response. Requests of the same time stay in the order of the log.
 */
export class TimeOrder {
  readonly #maxDelayMs: number;
  readonly #counts: LogCounts;
  readonly #bounds: WaitingBounds;
  /**
   * The requests that wait, the earliest second first. Most logs have whole seconds, so hardly any request is sorted. A
   * Map would keep requests alive: V8 links a map's old tables to newer ones.
   */
  readonly #seconds: Second[] = [];
  #requests = 0;
  #length = 0;
  /** Requests that were released before their time, because too many waited. */
  #early: LogRequest[] = [];
  /** The number of requests that still waited after the last call of `take`. */
  #left = 0;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** The time of the last request that was released. */
  #releasedAt = Number.NEGATIVE_INFINITY;
  /** How far lines were out of order, at most. */
  #maxLateMs = 0;

  constructor(maxDelayMs: number, counts: LogCounts, bounds = BOUNDS) {
    this.#maxDelayMs = maxDelayMs;
    this.#counts = counts;
    this.#bounds = bounds;
  }

  add(request: LogRequest): void {
    const { at, length = 0 } = request;
    if (at < this.#newestAt - this.#maxDelayMs || at < this.#releasedAt) {
      this.#counts.late++;
      this.#maxLateMs = Math.max(this.#maxLateMs, this.#newestAt - at);
      return;
    }
    if (at > this.#newestAt) this.#newestAt = at;
    this.#requestsOf(Math.floor(at / 1000)).push(request);
    this.#requests++;
    this.#length += length;
    const { requests, length: maxLength } = this.#bounds;
    if (this.#requests <= requests && this.#length <= maxLength) return;
    this.#counts.addNote(EARLY);
    // Releasing a quarter at once keeps the cost small.
    this.#release(
      () => this.#requests <= requests * 0.75 && this.#length <= maxLength * 0.75,
      this.#early,
    );
  }

  /** Whether enough requests have come for a batch. */
  get isFull(): boolean {
    return this.#requests >= BATCH + this.#left || this.#early.length >= BATCH;
  }

  /** Releases the requests that no later line can precede, in the order of their times. */
  take(): LogRequest[] {
    const ready = this.#early;
    this.#early = [];
    const end = this.#newestAt - this.#maxDelayMs;
    this.#release(({ second }) => (second + 1) * 1000 > end, ready);
    this.#left = this.#requests;
    return ready;
  }

  /** Releases all remaining requests, in the order of their times. */
  finish(): LogRequest[] {
    if (this.#maxLateMs > 0) {
      this.#counts.addNote(
        `Some lines were out of order by up to ${formatDuration(this.#maxLateMs)}; those by more than ${formatDuration(this.#maxDelayMs)} are late. If the log was put together from several files, name each file instead. If a single line has a wrong time, leave it out with --to.`,
      );
    }
    const ready = this.#early;
    this.#release(() => false, ready);
    return ready;
  }

  /** Returns the requests of a second, which may be a new one. */
  #requestsOf(second: number): LogRequest[] {
    const seconds = this.#seconds;
    let [from, to] = [0, seconds.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((seconds[middle] as Second).second < second) from = middle + 1;
      else to = middle;
    }
    const found = seconds[from];
    if (found?.second === second) return found.requests;
    const requests: LogRequest[] = [];
    seconds.splice(from, 0, { second, requests });
    return requests;
  }

  /**
   * Moves the requests of the earliest seconds to a list.
   *
   * @param isEnd whether the requests of a second stay, with all later ones
   */
  #release(isEnd: (second: Second) => boolean, ready: LogRequest[]): void {
    let released = 0;
    for (const each of this.#seconds) {
      if (isEnd(each)) break;
      released++;
      this.#requests -= each.requests.length;
      // Sorting is stable, so requests of the same time stay in the order of the log.
      for (const request of each.requests.sort((one, other) => one.at - other.at)) {
        ready.push(request);
        this.#releasedAt = request.at;
        this.#length -= request.length ?? 0;
      }
    }
    this.#seconds.splice(0, released);
  }
}

/** A file that is being read, or that waits for its turn. */
interface Reading {
  readonly groups: AsyncGenerator<readonly LogRequest[]>;
  requests: readonly LogRequest[];
  index: number;
  /** The time of its next request; until the next group is read, the time of the last known request. */
  nextAt: number;
}

/**
 * Reads several files at once, always from the file with the earliest next request. So rotated files may be given in
 * any order, and no request is more out of order than within its file. A file is opened at the time of its first
 * request, so rotated files are open one at a time. Reading whole files in the order of their first requests would
 * fail for logs of several servers, which overlap.
 *
 * Yields after each group of requests that was read, so that the caller can hand out requests.
 */
async function* mergeFiles(
  files: readonly LogFile[],
  counts: LogCounts,
  onRequest: (request: LogRequest) => void,
): AsyncGenerator<void> {
  const readings = files.map(
    (file): Reading => ({
      groups: file.groups(counts),
      requests: [],
      index: 0,
      nextAt: file.firstAt,
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
        onRequest(request);
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

/**
 * Reads the requests of all files, in the order of their times. Leaves out requests before `from`, and requests from
 * `to` on.
 */
export async function* readBatches(
  files: readonly LogFile[],
  counts: LogCounts,
  {
    maxDelay,
    from = Number.NEGATIVE_INFINITY,
    to = Number.POSITIVE_INFINITY,
  }: {
    readonly maxDelay: number;
    readonly from?: number | undefined;
    readonly to?: number | undefined;
  },
): AsyncGenerator<readonly LogRequest[]> {
  const order = new TimeOrder(maxDelay, counts);
  const onRequest = (request: LogRequest) => {
    if (request.at >= from && request.at < to) order.add(request);
    else counts.outside++;
  };
  for await (const _ of mergeFiles(files, counts, onRequest)) {
    if (order.isFull) yield* batchesOf(order.take(), counts);
  }
  yield* batchesOf(order.finish(), counts);
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
