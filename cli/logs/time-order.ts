import { duration } from "../admin/text.ts";
import type { LogCounts } from "./log-progress.ts";
import type { RequestForm } from "./request-form.ts";

const SECOND_MS = 1000;

/** The default bounds: requests with a length of 300 bytes need 75 MB. */
const MAX_WAITING = 250_000;
const MAX_WAITING_BYTES = 128 * 1024 * 1024;

const EARLY =
  "Too many requests were logged within the time by which lines may be out of order. Some were taken as in order before that time had passed, so more lines may count as late. A shorter --max-delay prevents this.";

/** The requests of one second that wait for later lines. */
interface Second<Request> {
  readonly requests: Request[];
  bytes: number;
  lastAt: number;
  isSorted: boolean;
}

type OrderedForm<Request> = Pick<RequestForm<Request>, "timeOf" | "discard">;

/** Bounds of the requests that wait. */
export interface WaitingBounds {
  readonly requests: number;
  readonly bytes: number;
}

/**
 * Orders requests by their times. Servers write a line when the response ends, so lines are out of order by
 * the longest response. Requests wait in a list for each second, because most logs have whole seconds: then
 * nothing needs to be sorted, and requests of one second stay in the order of the log.
 *
 * @typeParam Request a request, or the number of its row in a table
 */
export class TimeOrder<Request> {
  readonly #maxDelayMs: number;
  readonly #counts: LogCounts;
  readonly #form: OrderedForm<Request>;
  readonly #bounds: WaitingBounds;
  readonly #seconds = new Map<number, Second<Request>>();
  #ready: Request[] = [];
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
    form: OrderedForm<Request>,
    bounds: WaitingBounds = { requests: MAX_WAITING, bytes: MAX_WAITING_BYTES },
  ) {
    this.#maxDelayMs = maxDelayMs;
    this.#counts = counts;
    this.#form = form;
    this.#bounds = bounds;
  }

  /** The time of the latest request, in milliseconds since the Unix epoch; -Infinity without one. */
  get newestAt(): number {
    return this.#newestAt;
  }

  /** @param bytes the length of the request's line */
  add(request: Request, bytes: number): void {
    const at = this.#form.timeOf(request);
    if (at < this.#newestAt - this.#maxDelayMs || at < this.#releasedAt) {
      this.#counts.late++;
      this.#maxLateMs = Math.max(this.#maxLateMs, this.#newestAt - at);
      this.#form.discard?.(request);
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
  take(): Request[] {
    const ready = this.#ready;
    this.#ready = [];
    return ready;
  }

  /** Returns all other requests, in order. */
  finish(): Request[] {
    if (this.#maxLateMs > 0) {
      this.#counts.addNote(
        `Some lines were out of order by up to ${duration(this.#maxLateMs)}; those by more than ${duration(this.#maxDelayMs)} are late. If the log was put together from several files, name each file instead.`,
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
    if (!isSorted) requests.sort((a, b) => this.#form.timeOf(a) - this.#form.timeOf(b));
    for (const request of requests) this.#ready.push(request);
    this.#releasedAt = this.#form.timeOf(requests.at(-1) as Request);
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
