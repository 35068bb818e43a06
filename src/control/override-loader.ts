import type { ControlCalls } from "./control-calls.ts";

/**
 * A request waits for the overrides if this isolate's copy is older than this, in milliseconds. The
 * hand-overs of a busy isolate load the changes more often, so its requests never wait.
 */
export const STALE_MS = 10_000;

/**
 * The maximum time that a request waits for the overrides, in milliseconds. It is also at most a quarter
 * of the deadline, so that enough of it is left to identify the client.
 */
export const MAX_WAIT_MS = 250;

/** After a failure, no request loads the overrides for this time, in milliseconds. */
export const PAUSE_AFTER_FAILURE_MS = 5000;

/** How often a request checks whether another request has loaded the overrides, in milliseconds. */
const CHECK_EVERY_MS = 5;

export interface OverrideLoaderOptions {
  /** The deadline of decisions, in milliseconds. No request waits for the overrides longer than a quarter. */
  readonly timeoutMs: number;
  readonly background: (task: Promise<unknown>) => void;
  readonly onFailure: (cause: string) => void;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
}

/**
 * Loads the overrides for requests of an isolate whose copy is too old. One request at a time calls the
 * control object. The others do not wait for its promise, because its client may hang up: they look at
 * the time of the last load.
 */
export class OverrideLoader {
  readonly #calls: ControlCalls;
  readonly #options: OverrideLoaderOptions;
  readonly #waitMs: number;
  readonly #clock: () => number;
  #startedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(calls: ControlCalls, options: OverrideLoaderOptions) {
    this.#calls = calls;
    this.#options = options;
    this.#waitMs = Math.min(MAX_WAIT_MS, options.timeoutMs / 4);
    this.#clock = options.clock ?? Date.now;
  }

  /** @returns a promise if the request must wait. It never rejects */
  loadIfStale(now: number): Promise<void> | undefined {
    if (!this.#isStale(now) || isWithin(this.#failedAt, PAUSE_AFTER_FAILURE_MS, now)) {
      return undefined;
    }
    if (!isWithin(this.#startedAt, this.#waitMs, now)) return this.#load(now);
    // After a failure, only the request that tries again waits.
    return this.#hasFailed ? undefined : this.#waitForOther();
  }

  /** Notes that a call to the control object has failed. */
  fail(): void {
    this.#failedAt = this.#clock();
  }

  get #hasFailed(): boolean {
    return this.#failedAt > this.#calls.loadedAt;
  }

  #isStale(now: number): boolean {
    return !isWithin(this.#calls.loadedAt, STALE_MS, now);
  }

  #load(now: number): Promise<void> {
    this.#startedAt = now;
    const { background, onFailure } = this.#options;
    // The sequence 0 hands over nothing.
    const { objectName } = this.#calls;
    const batch = { objectName, sequence: 0, minutes: [], clients: [] };
    let isNoted = false;
    // A call that took too long is one failure, even if it fails later.
    const noteFailure = (cause: string) => {
      if (isNoted || !this.#isStale(this.#clock())) return;
      isNoted = true;
      this.fail();
      onFailure(cause);
    };
    const call = this.#calls.handOver(batch).then(
      () => noteFailure("outdated"),
      (error) => noteFailure(causeOf(error)),
    );
    // The call continues if the client hangs up, or if it takes longer than the request may wait.
    background(call);
    const waited = this.#waitFor(call).then(() => noteFailure("timeout"));
    background(waited);
    return waited;
  }

  async #waitFor(call: Promise<void>): Promise<void> {
    const { promise: deadline, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, this.#waitMs);
    await Promise.race([call, deadline]);
    clearTimeout(timer);
  }

  /** The number of checks is bounded, because a clock may stand still or go back. */
  async #waitForOther(): Promise<void> {
    for (let waitedMs = 0; waitedMs < this.#waitMs; waitedMs += CHECK_EVERY_MS) {
      if (!this.#isStale(this.#clock()) || this.#hasFailed) return;
      await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS));
    }
  }
}

/** Describes a failure for operators. An unexpected message could contain a secret. */
export function causeOf(error: unknown): string {
  const isTimeout = error instanceof Error && error.message === "timeout";
  if (isTimeout) return "timeout";
  return error instanceof Error ? error.name : typeof error;
}

/** Whether a time is at most this long ago. A time in the future shows that the clock was set back. */
function isWithin(then: number, ms: number, now: number): boolean {
  return then <= now && now - then < ms;
}
