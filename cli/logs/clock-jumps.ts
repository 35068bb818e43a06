import type { LogCounts } from "./log-progress.ts";
import type { TimeOrder } from "./time-order.ts";

/** A line whose time is further after those before it is set aside, in milliseconds. */
const JUMP_MS = 3_600_000;

/** How many lines have to be set aside before a jump of the clock is believed. */
const LINES = 100;

const JUMPS =
  "Some lines have times more than an hour after those of the lines around them, as if a clock had been wrong. They are taken as the last requests of the log.";

/**
 * Keeps single lines with a wrong time from moving the time of the whole log: after one line of the year 2099, all
 * others would be late. A line that is far after all lines before it is set aside. When a hundred lines are set
 * aside, as after a quiet night, the earlier half of them goes on, in the order of the log.
 *
 * @typeParam Request a request, or the number of its row in a table
 */
export class ClockJumps<Request> {
  readonly #order: TimeOrder<Request>;
  readonly #counts: LogCounts;
  readonly #timeOf: (request: Request) => number;
  readonly #jumpMs: number;
  #aside: { readonly request: Request; readonly bytes: number }[] = [];
  /** The earliest time of the lines that are set aside. */
  #firstAside = Number.POSITIVE_INFINITY;
  /** The number of lines since the last one that was set aside. */
  #since = 0;

  constructor(
    order: TimeOrder<Request>,
    counts: LogCounts,
    timeOf: (request: Request) => number,
    maxDelayMs: number,
  ) {
    this.#order = order;
    this.#counts = counts;
    this.#timeOf = timeOf;
    this.#jumpMs = Math.max(JUMP_MS, maxDelayMs);
  }

  /** @param bytes the length of the request's line */
  add(request: Request, bytes: number): void {
    const at = this.#timeOf(request);
    if (at <= this.#order.newestAt + this.#jumpMs) {
      if (at >= this.#firstAside) this.#rejoin(at);
      this.#since++;
      this.#order.add(request, bytes);
      return;
    }
    this.#since = 0;
    this.#aside.push({ request, bytes });
    this.#firstAside = Math.min(this.#firstAside, at);
    if (this.#aside.length === LINES) this.#goOn();
  }

  /** The number of requests that `take` would return. */
  get readyCount(): number {
    return this.#order.readyCount;
  }

  /** Returns the requests that no longer wait, in order. */
  take(): Request[] {
    return this.#order.take();
  }

  /** Returns all other requests, in order. */
  finish(): Request[] {
    if (this.#aside.length > 0 && this.#since >= LINES) this.#counts.addNote(JUMPS);
    while (this.#aside.length > 0) this.#goOn();
    return this.#order.finish();
  }

  /**
   * Takes back the lines whose time has come: in a log with a few requests every hour, each hour may begin with a
   * line that is far after the lines before it. So none of them is late.
   */
  #rejoin(at: number): void {
    const due = this.#split((time) => time <= at);
    due.sort((a, b) => this.#timeOf(a.request) - this.#timeOf(b.request));
    for (const { request, bytes } of due) this.#order.add(request, bytes);
  }

  /** Goes on with the lines that are not far after the median of those set aside. */
  #goOn(): void {
    const times = this.#aside.map(({ request }) => this.#timeOf(request)).sort((a, b) => a - b);
    const until = (times[(times.length - 1) >> 1] as number) + this.#jumpMs;
    for (const { request, bytes } of this.#split((time) => time <= until)) {
      this.#order.add(request, bytes);
    }
  }

  /** Removes the lines that pass a test from those set aside, and returns them in the order of the log. */
  #split(
    isTaken: (at: number) => boolean,
  ): { readonly request: Request; readonly bytes: number }[] {
    const taken = this.#aside.filter(({ request }) => isTaken(this.#timeOf(request)));
    this.#aside = this.#aside.filter(({ request }) => !isTaken(this.#timeOf(request)));
    this.#firstAside = Math.min(
      Number.POSITIVE_INFINITY,
      ...this.#aside.map(({ request }) => this.#timeOf(request)),
    );
    return taken;
  }
}
