import { formatDuration } from "../../src/admin/format.ts";
import { CommandFailure } from "../command-failure.ts";
import type { LogFile, RequestGroup } from "./log-file.ts";
import type { LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

const SECOND_MS = 1000;

/** The default bounds: requests with a length of 300 bytes need 75 MB. */
const MAX_WAITING = 250_000;
const MAX_WAITING_BYTES = 128 * 1024 * 1024;

const EARLY =
  "Too many requests were logged within the time by which lines may be out of order. Some were taken as in order before that time had passed, so more lines may count as late. A shorter --max-delay prevents this.";

/** The requests of one second that wait for later lines. */
interface Second {
  readonly requests: LogRequest[];
  bytes: number;
  lastAt: number;
  isSorted: boolean;
}

/** Bounds of the requests that wait. */
interface WaitingBounds {
  readonly requests: number;
  readonly bytes: number;
}

/**
 * Orders requests by their times. Servers write a line when the response ends, so lines are out of order by
 * the longest response. Requests wait in a list for each second, because most logs have whole seconds: then
 * nothing needs to be sorted, and requests of one second stay in the order of the log.
 */
export class TimeOrder {
  readonly #maxDelayMs: number;
  readonly #counts: LogCounts;
  readonly #bounds: WaitingBounds;
  readonly #seconds = new Map<number, Second>();
  #ready: LogRequest[] = [];
  /** The first second that may wait. */
  #oldest = Number.NEGATIVE_INFINITY;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** The time of the last request that no longer waits. */
  #releasedAt = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #waitingBytes = 0;
  /** How far the latest line was out of order. */
  #maxLateMs = 0;

  constructor(
    maxDelayMs: number,
    counts: LogCounts,
    bounds: WaitingBounds = { requests: MAX_WAITING, bytes: MAX_WAITING_BYTES },
  ) {
    this.#maxDelayMs = maxDelayMs;
    this.#counts = counts;
    this.#bounds = bounds;
  }

  /** @param bytes the length of the request's line */
  add(request: LogRequest, bytes: number): void {
    const at = request.at;
    if (at < this.#newestAt - this.#maxDelayMs || at < this.#releasedAt) {
      this.#counts.late++;
      this.#maxLateMs = Math.max(this.#maxLateMs, this.#newestAt - at);
      return;
    }
    const number = Math.floor(at / SECOND_MS);
    const second = this.#seconds.get(number);
    if (second) {
      if (at < second.lastAt) second.isSorted = false;
      second.lastAt = at;
      second.requests.push(request);
      second.bytes += bytes;
    } else {
      this.#seconds.set(number, { requests: [request], bytes, lastAt: at, isSorted: true });
      this.#oldest = this.#seconds.size === 1 ? number : Math.min(this.#oldest, number);
    }
    this.#waiting++;
    this.#waitingBytes += bytes;
    if (at > this.#newestAt) {
      this.#newestAt = at;
      this.#releaseBefore(Math.floor((at - this.#maxDelayMs) / SECOND_MS));
    }
    if (this.#waiting > this.#bounds.requests || this.#waitingBytes > this.#bounds.bytes) {
      this.#releaseEarly();
    }
  }

  /** The number of requests that `take` would return. */
  get readyCount(): number {
    return this.#ready.length;
  }

  /** Returns the requests that no longer wait, in order. */
  take(): LogRequest[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  /** Returns all other requests, in order. */
  finish(): LogRequest[] {
    if (this.#maxLateMs > 0) {
      this.#counts.addNote(
        `Some lines were out of order by up to ${formatDuration(this.#maxLateMs)}; those by more than ${formatDuration(this.#maxDelayMs)} are late. If the log was put together from several files, name each file instead. If a single line has a wrong time, leave it out with --to.`,
      );
    }
    this.#releaseBefore(Number.POSITIVE_INFINITY);
    return this.take();
  }

  /** Releases all seconds before the given one. */
  #releaseBefore(end: number): void {
    if (end <= this.#oldest) return;
    // After a gap in the log, sorting the seconds that wait is faster than trying each second.
    if (end - this.#oldest > 4 * this.#seconds.size) {
      const ended = [...this.#seconds.keys()].filter((number) => number < end);
      for (const number of ended.sort((a, b) => a - b)) this.#release(number);
    } else {
      for (let number = this.#oldest; number < end; number++) this.#release(number);
    }
    this.#oldest = Math.max(this.#oldest, Math.min(end, Math.floor(this.#newestAt / SECOND_MS)));
  }

  #release(number: number): void {
    const second = this.#seconds.get(number);
    if (!second) return;
    const { requests, bytes, isSorted } = second;
    // Sorting is stable, so requests of the same time stay in the order of the log.
    if (!isSorted) requests.sort((a, b) => a.at - b.at);
    for (const request of requests) this.#ready.push(request);
    this.#releasedAt = (requests.at(-1) as LogRequest).at;
    this.#waiting -= requests.length;
    this.#waitingBytes -= bytes;
    this.#seconds.delete(number);
    // A Map that has grown keeps its former entries in memory until V8 collects the whole heap.
    requests.length = 0;
  }

  #releaseEarly(): void {
    this.#counts.addNote(EARLY);
    // Releasing a quarter at once keeps the cost of sorting small.
    const { requests, bytes } = this.#bounds;
    for (const number of [...this.#seconds.keys()].sort((a, b) => a - b)) {
      if (this.#waiting <= requests * 0.75 && this.#waitingBytes <= bytes * 0.75) return;
      this.#release(number);
    }
  }
}

/** Receives a request and the length of its line in bytes. */
type OnRequest = (request: LogRequest, bytes: number) => void;

/** A file that is being read, or that waits for its turn. */
interface Reading {
  readonly groups: AsyncGenerator<RequestGroup>;
  group: RequestGroup;
  index: number;
  /** The time of its next request. Before the next group is read, that of its last known request. */
  nextAt: number;
  isOpen: boolean;
}

/** Each open file needs about a megabyte. Systems allow at least 256 open files. */
const MAX_OPEN = 200;

const NO_REQUESTS: RequestGroup = { requests: [], meanBytes: 0 };

/**
 * Reads files side by side, always the one whose next request is the earliest. So rotated files may be given in
 * any order, and requests are out of order by no more than within one file. A file is opened when the
 * time of its first request comes, so files that follow each other are not open at the same time. Sorting all
 * files by their first times would not do: the logs of several servers have the same times.
 *
 * Yields after each group of requests that was read, so that the caller can hand out requests.
 */
export async function* mergeFiles(
  files: readonly LogFile[],
  counts: LogCounts,
  onRequest: OnRequest,
): AsyncGenerator<void> {
  const readings = files.map(
    (file): Reading => ({
      groups: file.groups(counts),
      group: NO_REQUESTS,
      index: 0,
      nextAt: file.firstAt,
      isOpen: false,
    }),
  );
  try {
    for (;;) {
      const [earliest, next] = twoEarliest(readings);
      if (!earliest) return;
      if (earliest.index === earliest.group.requests.length) {
        await readGroup(earliest, readings);
        yield;
      } else drain(earliest, next?.nextAt ?? Number.POSITIVE_INFINITY, onRequest);
    }
  } finally {
    for (const { groups } of readings) await groups.return(undefined);
    // A generator that has not begun does not close its file.
    for (const file of files) file.close();
  }
}

function twoEarliest<Reading extends { readonly nextAt: number }>(
  readings: readonly Reading[],
): [Reading | undefined, Reading | undefined] {
  let [first, second]: (Reading | undefined)[] = [];
  for (const reading of readings) {
    if (!first || reading.nextAt < first.nextAt) [first, second] = [reading, first];
    else if (!second || reading.nextAt < second.nextAt) second = reading;
  }
  return [first, second];
}

/** Reads the next group of a file. Removes the file from the list if there is none. */
async function readGroup(reading: Reading, readings: Reading[]): Promise<void> {
  if (!reading.isOpen && readings.filter(({ isOpen }) => isOpen).length >= MAX_OPEN) {
    throw new CommandFailure(
      2,
      `More than ${MAX_OPEN} files have requests of the same time. Replay fewer files at once.`,
    );
  }
  reading.isOpen = true;
  const { value, done } = await reading.groups.next();
  if (done) {
    readings.splice(readings.indexOf(reading), 1);
    return;
  }
  reading.group = value;
  reading.index = 0;
  reading.nextAt = value.requests[0]?.at ?? reading.nextAt;
}

/** Hands out the requests of a file up to the time of the next request of another file. */
function drain(reading: Reading, until: number, onRequest: OnRequest): void {
  const { requests, meanBytes } = reading.group;
  while (reading.index < requests.length) {
    const request = requests[reading.index] as LogRequest;
    reading.nextAt = request.at;
    if (reading.nextAt > until) return;
    onRequest(request, meanBytes);
    reading.index++;
  }
}
