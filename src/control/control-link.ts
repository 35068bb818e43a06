import type { Decision } from "../limiter/decision.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { withTimeout } from "../request/timeout.ts";
import type { Recorder } from "../statistics/recorder.ts";
import { type Batch, type ControlCallOptions, ControlCalls } from "./control-calls.ts";
import { GLOBAL_OBJECT } from "./fan-in.ts";
import { HAND_OVER_INTERVAL_MS } from "./protocol.ts";

/**
 * A request waits for the overrides if this isolate's copy is older than this, in milliseconds. The
 * hand-overs of a busy isolate load the changes more often, so its requests never wait.
 */
const STALE_MS = 10_000;

/**
 * The maximum time that a request waits for the overrides, in milliseconds. It is also at most a quarter
 * of the deadline, so that enough of it is left to identify the client.
 */
const MAX_WAIT_MS = 250;

/** After a failure, no request loads the overrides for this time, in milliseconds. */
const PAUSE_AFTER_FAILURE_MS = 5000;

/** How often a request checks whether another request has loaded the overrides, in milliseconds. */
const CHECK_EVERY_MS = 5;

interface OverrideLoaderOptions {
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
class OverrideLoader {
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
    await withTimeout(call, this.#waitMs, () => {});
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
function causeOf(error: unknown): string {
  const isTimeout = error instanceof Error && error.message === "timeout";
  if (isTimeout) return "timeout";
  return error instanceof Error ? error.name : typeof error;
}

/** Whether a time is at most this long ago. A time in the future shows that the clock was set back. */
function isWithin(then: number, ms: number, now: number): boolean {
  return then <= now && now - then < ms;
}

/**
 * The minimum time between the first request and its hand-over, in milliseconds, so that requests
 * that belong together are handed over together.
 */
const MIN_DELAY_MS = 1000;

/**
 * If an isolate has handed over nothing for this long, in milliseconds, its next hand-over begins at a
 * random time within the interval. Many isolates may start at once, or get the first requests after a
 * pause, and this spreads their calls. Later hand-overs follow at the exact interval, so they stay spread:
 * a longer one would let a killed isolate lose more, and a shorter one would make more calls. An isolate
 * that was idle for a shorter time does not wait, because its overrides would become too old.
 */
const IDLE_MS = 2 * HAND_OVER_INTERVAL_MS;

/** While hand-overs fail, the interval doubles up to this many times. */
const MAX_DOUBLINGS = 4;

/**
 * A hand-over that has not begun this long after its time never will, in milliseconds: its
 * request has ended.
 */
const OVERDUE_MS = 2000;

interface HandOverOptions {
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
  readonly onFailure: (cause: string) => void;
  /** Called once with each new batch, before it is handed over. */
  readonly onBatch?: ((batch: Batch) => void) | undefined;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
  /** Returns a number from 0 to less than 1. @default Math.random */
  readonly random?: () => number;
}

/**
 * Hands over the sums of an isolate, at most once in five seconds, and none later than that.
 *
 * Between requests, this object keeps only times and sums, and no promise. A batch is repeated until an
 * object has accepted it; until then, the recorder keeps all later sums.
 */
class HandOvers {
  readonly #calls: ControlCalls;
  readonly #recorder: Recorder;
  readonly #options: HandOverOptions;
  readonly #clock: () => number;
  /** When the next hand-over begins; undefined if none is planned. */
  #dueAt: number | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;
  #sequence = 0;
  #failures = 0;
  /** The batch that no object has accepted yet. */
  #pending: Batch | undefined;

  constructor(calls: ControlCalls, recorder: Recorder, options: HandOverOptions) {
    this.#calls = calls;
    this.#recorder = recorder;
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
  }

  /** Plans a hand-over, unless one is planned already. */
  plan(now: number): void {
    const dueAt = this.#dueAt;
    if (dueAt !== undefined && now < dueAt + OVERDUE_MS && dueAt - now <= this.#intervalMs) return;
    // The clock may have gone back, so the delay has a maximum too.
    const restMs = this.#lastAt + this.#intervalMs - now;
    const delayMs = Math.min(Math.max(restMs, this.#minDelayMs(now)), this.#intervalMs);
    this.#dueAt = now + delayMs;
    this.#options.background(this.#handOverAfter(delayMs));
  }

  get #intervalMs(): number {
    return HAND_OVER_INTERVAL_MS * 2 ** Math.min(this.#failures, MAX_DOUBLINGS);
  }

  #minDelayMs(now: number): number {
    if (now - this.#lastAt < IDLE_MS) return MIN_DELAY_MS;
    const random = this.#options.random ?? Math.random;
    return MIN_DELAY_MS + random() * (HAND_OVER_INTERVAL_MS - MIN_DELAY_MS);
  }

  /** Never rejects. */
  async #handOverAfter(delayMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    // Requests that are recorded from now on belong to the next hand-over.
    this.#dueAt = undefined;
    this.#lastAt = this.#clock();
    this.#pending ??= this.#nextBatch();
    const batch = this.#pending;
    if (!batch) return;
    try {
      await this.#calls.handOver(batch);
      this.#failures = 0;
      if (this.#pending === batch) this.#pending = undefined;
    } catch (error) {
      this.#failures += 1;
      this.#options.onFailure(causeOf(error));
    }
    // There may be sums although no further request comes.
    if (this.#pending || !this.#recorder.isEmpty) this.plan(this.#clock());
  }

  #nextBatch(): Batch | undefined {
    if (this.#recorder.isEmpty) return undefined;
    this.#sequence += 1;
    const { objectName } = this.#calls;
    const batch = { ...this.#recorder.take(), objectName, sequence: this.#sequence };
    try {
      this.#options.onBatch?.(batch);
    } catch {
      // The sums are handed over although they could not be written elsewhere.
    }
    return batch;
  }
}

/** What a call to the control object was for. */
export type ControlTask = "hand-over" | "load-overrides";

interface ControlLinkOptions extends ControlCallOptions {
  /** The deadline of decisions, in milliseconds. */
  readonly timeoutMs: number;
  /** Lets a task run to its end although no response waits for it. */
  readonly background: (task: Promise<unknown>) => void;
  /** Called with each call that fails. The cause contains no key and no secret. */
  readonly onFailure: (task: ControlTask, cause: string) => void;
  /** Called once with all sums that are handed over together. */
  readonly onBatch?: ((batch: Batch) => void) | undefined;
}

/**
 * Connects an isolate with the control object: hands over sums, and loads overrides. No method throws,
 * because a request must not fail with the statistics.
 */
export class ControlLink {
  readonly overrides: LiveOverrides;
  readonly recorder: Recorder;
  readonly #options: ControlLinkOptions;
  readonly #calls: ControlCalls;
  readonly #loader: OverrideLoader;
  readonly #handOvers: HandOvers;

  constructor(options: ControlLinkOptions, overrides: LiveOverrides, recorder: Recorder) {
    this.overrides = overrides;
    this.recorder = recorder;
    this.#options = options;
    this.#calls = new ControlCalls(options, overrides, recorder);
    this.#loader = new OverrideLoader(this.#calls, {
      ...options,
      onFailure: (cause) => options.onFailure("load-overrides", cause),
    });
    this.#handOvers = new HandOvers(this.#calls, recorder, {
      ...options,
      onFailure: (cause) => {
        this.#loader.fail();
        options.onFailure("hand-over", cause);
      },
    });
    recorder.onLateSums = (now) => this.handOverLater(now);
  }

  /**
   * Loads the overrides if this isolate has not loaded them in the last ten seconds. Never rejects.
   *
   * @param request undefined for calls of programs
   * @returns a promise if the request must wait for the overrides, else undefined
   */
  loadIfStale(now: number, request?: Request): Promise<void> | undefined {
    this.#calls.locate(request);
    if (!this.overrides.haveEffect) return undefined;
    return this.#loader.loadIfStale(now);
  }

  /**
   * Loads the overrides from the global object, so that a change that it has answered holds in this isolate.
   * A collector may not have the change yet. Never rejects: after a failure, the isolate loads them later.
   */
  async loadNewest(): Promise<void> {
    const batch = { objectName: GLOBAL_OBJECT, sequence: 0, minutes: [], clients: [] };
    try {
      await this.#calls.handOver(batch);
    } catch (error) {
      this.#options.onFailure("load-overrides", causeOf(error));
    }
  }

  /**
   * Counts a decided request, and each rule that applied to it.
   *
   * @param decision undefined if no rule applied
   */
  record(appliedRules: readonly AppliedRule[], decision: Decision | undefined, now: number): void {
    withoutFailing(() => {
      if (decision) this.recorder.record(appliedRules, decision, now);
      else this.recorder.recordUnmatched(now);
      this.#handOvers.plan(now);
    });
  }

  /** Counts a request that got 400 or 414, because its address could not be read. */
  recordRefused(now: number): void {
    withoutFailing(() => {
      this.recorder.recordRefused(now);
      this.#handOvers.plan(now);
    });
  }

  /** Makes sure that the sums are handed over in the background, within the interval. */
  handOverLater(now: number): void {
    withoutFailing(() => this.#handOvers.plan(now));
  }
}

/** Runs a task of the statistics. Its error is dropped, because a request must not fail with it. */
function withoutFailing(task: () => void): void {
  try {
    task();
  } catch {
    // There is nothing to undo, and a log line for each request would cost more than the lost count.
  }
}
