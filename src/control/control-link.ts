import type { Decision } from "../limiter/decision.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { withTimeout } from "../request/timeout.ts";
import type { Recorder } from "../statistics/recorder.ts";
import {
  type ControlApi,
  MAX_UPLOAD_INTERVAL_MS,
  type StatisticsUpload,
  UPLOAD_INTERVAL_MS,
} from "./protocol.ts";

/** The purpose of a call to the control object. */
export type ControlTask = "upload" | "load-overrides";

/** Sums that an isolate uploads. */
type Batch = Pick<StatisticsUpload, "sequence" | "minutes" | "clients" | "denials">;

/** The batch of a call that only loads the overrides. */
const NO_SUMS: Batch = { sequence: 0, minutes: [], clients: [] };

interface ControlLinkOptions {
  /** Calls the control object. */
  readonly upload: ControlApi["upload"];
  /** The deadline of decisions, in milliseconds. */
  readonly timeoutMs: number;
  /** Keeps the Worker alive until a task has ended. */
  readonly background: (task: Promise<unknown>) => void;
  /** Called with each failed call. The cause contains no key and no secret. */
  readonly onFailure: (task: ControlTask, cause: string) => void;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
  /** Returns a number from 0 to less than 1. @default Math.random */
  readonly random?: () => number;
}

/**
 * The time in milliseconds after which a call counts as failed. It is shorter than the interval of uploads, so that
 * an isolate has at most one upload in progress.
 */
export const CALL_TIMEOUT_MS = 4000;

/**
 * A request waits for the overrides if this isolate's copy is older than both `STALE_MS` and the isolate's interval
 * plus `SLOW_CALL_MS`. In milliseconds. The uploads of a busy isolate load changes more often, so its requests never
 * wait.
 */
const STALE_MS = 10_000;
const SLOW_CALL_MS = 500;

/**
 * The maximum time that a request waits for the overrides, in milliseconds. The wait is also at most a quarter of the
 * deadline, so that enough time is left to identify the client.
 */
const MAX_WAIT_MS = 250;

/** The time after a failure, in milliseconds, in which no request loads the overrides. */
const PAUSE_AFTER_FAILURE_MS = 5000;

/** The interval in milliseconds at which a request checks whether another request has loaded the overrides. */
const CHECK_EVERY_MS = 5;

/**
 * The minimum time between the first request and its upload, in milliseconds, so that a few requests share an upload.
 */
const MIN_DELAY_MS = 1000;

/**
 * If an isolate has uploaded nothing for this number of intervals, its next upload begins at a random time within the
 * interval. This spreads the calls of isolates that start at the same time, or that get requests after the same
 * pause. Later uploads follow at the exact interval, so they stay spread. With a longer interval, a killed isolate
 * would lose more sums. With a shorter one, isolates would make more calls. After a pause of fewer intervals,
 * an upload has no random delay, because the overrides would become too old.
 */
const IDLE_INTERVALS = 2;

/** The maximum number of times that the interval doubles while uploads fail. */
const MAX_DOUBLINGS = 4;

/**
 * The time in milliseconds after which a planned upload that has not begun counts as lost, because its request has
 * ended.
 */
const OVERDUE_MS = 2000;

/**
 * Connects an isolate with the control object: uploads sums, and loads overrides. No method throws, because a failure
 * of the statistics must not fail a request.
 *
 * Between requests, this object keeps only times and sums, and no promise.
 */
export class ControlLink {
  readonly overrides: LiveOverrides;
  readonly recorder: Recorder;
  readonly #options: ControlLinkOptions;
  readonly #clock: () => number;
  /** Created with the first call, because a Worker has no random numbers while it starts. */
  #source: string | undefined;
  /** The time after the newest answered call at which this isolate calls again, in milliseconds. */
  #answeredIntervalMs = UPLOAD_INTERVAL_MS;
  /**
   * When the newest answered call was sent, in milliseconds since the Unix epoch. The overrides are at least that
   * new.
   */
  #loadedAt = Number.NEGATIVE_INFINITY;
  /** When a request last began to load the overrides. */
  #loadStartedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Whether a call has failed since the last answered call. */
  #hasFailed = false;
  /** When the next upload begins; undefined if no upload is planned. */
  #dueAt: number | undefined;
  #uploadedAt = Number.NEGATIVE_INFINITY;
  #isUploading = false;
  /** The number of the newest plan, which makes earlier plans void. */
  #plan = 0;
  #sequence = 0;
  /** The number of failed uploads in a row. */
  #failures = 0;
  /** The batch that the object has not accepted yet, which is uploaded again. The recorder keeps all later sums. */
  #pending: Batch | undefined;

  constructor(options: ControlLinkOptions, overrides: LiveOverrides, recorder: Recorder) {
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    this.overrides = overrides;
    this.recorder = recorder;
    recorder.onLateSums = (now) => this.uploadLater(now);
  }

  /**
   * Counts a decided request, and each rule that applied to it.
   *
   * @param decision undefined if no rule applied
   * @param colo the data centre that received the request; undefined for a call of a program
   */
  record(
    appliedRules: readonly AppliedRule[],
    decision: Decision | undefined,
    now: number,
    colo?: string,
  ): void {
    withoutFailing(() => {
      if (decision) this.recorder.record(appliedRules, decision, now, colo);
      else this.recorder.recordUnmatched(now);
      this.#planUpload(now);
    });
  }

  /** Counts a request that got 400 or 414, because its URL could not be read. */
  recordRefused(now: number): void {
    withoutFailing(() => {
      this.recorder.recordRefused(now);
      this.#planUpload(now);
    });
  }

  /** Makes sure that the sums are uploaded in the background, within the interval. */
  uploadLater(now: number): void {
    withoutFailing(() => this.#planUpload(now));
  }

  /**
   * Loads the overrides if this isolate's copy is too old. One request at a time calls the control object. Other
   * requests do not wait for the promise of this call, because the client of this request may hang up. Instead, they
   * check the time of the last load.
   *
   * @returns a promise that never rejects if the request must wait for the overrides; undefined otherwise
   */
  loadIfStale(now: number): Promise<void> | undefined {
    const mustWait = this.overrides.haveEffect && this.#isStale(now);
    if (!mustWait || isWithin(this.#failedAt, PAUSE_AFTER_FAILURE_MS, now)) return undefined;
    if (!isWithin(this.#loadStartedAt, this.#waitMs, now)) return this.#load(now);
    // After a failure, only the request that tries again waits.
    return this.#hasFailed ? undefined : this.#waitForOther();
  }

  /**
   * Loads the overrides, so that a change that the object has accepted holds in this isolate. Never rejects: after a
   * failure, the isolate loads the overrides later.
   */
  async loadNewest(): Promise<void> {
    try {
      await this.#call(NO_SUMS);
    } catch (error) {
      this.#options.onFailure("load-overrides", causeOf(error));
    }
  }

  /**
   * Uploads a batch, and applies the overrides of the answer.
   *
   * @throws {Error} if the object has not answered in time, or has thrown an error. It may still have added the sums
   */
  async #call(batch: Batch): Promise<void> {
    const sentAt = this.#clock();
    this.#source ??= crypto.randomUUID();
    const { version: overridesVersion } = this.overrides;
    const { breakerOpen } = this.recorder;
    const upload = { ...batch, source: this.#source, breakerOpen, overridesVersion };
    // The call throws at once if the object is missing. An async function turns this into a rejection.
    const call = (async () => this.#options.upload(upload))();
    const answer = await withTimeout(call, CALL_TIMEOUT_MS, () => {
      throw new Error("timeout");
    });
    const { overrides, callAgainMs } = answer;
    if (overrides) this.overrides.update(overrides, overridesVersion);
    this.#loadedAt = sentAt;
    this.#hasFailed = false;
    // During a deploy, the object may have another version.
    this.#answeredIntervalMs = Number.isFinite(callAgainMs)
      ? Math.min(Math.max(callAgainMs, UPLOAD_INTERVAL_MS), MAX_UPLOAD_INTERVAL_MS)
      : UPLOAD_INTERVAL_MS;
  }

  #fail(task: ControlTask, cause: string): void {
    this.#failedAt = this.#clock();
    this.#hasFailed = true;
    this.#options.onFailure(task, cause);
  }

  /** The maximum time that a request waits for the overrides, in milliseconds. */
  get #waitMs(): number {
    return Math.min(MAX_WAIT_MS, this.#options.timeoutMs / 4);
  }

  #isStale(now: number): boolean {
    const maxAgeMs = Math.max(STALE_MS, this.#answeredIntervalMs + SLOW_CALL_MS);
    return !isWithin(this.#loadedAt, maxAgeMs, now);
  }

  #load(now: number): Promise<void> {
    this.#loadStartedAt = now;
    const { background } = this.#options;
    let isNoted = false;
    // A call that took too long counts as one failure, even if it fails later.
    const noteFailure = (cause: string) => {
      if (isNoted || !this.#isStale(this.#clock())) return;
      isNoted = true;
      this.#fail("load-overrides", cause);
    };
    const call = this.#call(NO_SUMS).catch((error) => noteFailure(causeOf(error)));
    // The call continues if the client hangs up, or if the request stops waiting.
    background(call);
    const waited = withTimeout(call, this.#waitMs, () => noteFailure("timeout"));
    background(waited);
    return waited;
  }

  /** Limits the number of checks, because a clock may stand still or go back. */
  async #waitForOther(): Promise<void> {
    for (let waitedMs = 0; waitedMs < this.#waitMs; waitedMs += CHECK_EVERY_MS) {
      if (!this.#isStale(this.#clock()) || this.#hasFailed) return;
      await new Promise((resolve) => setTimeout(resolve, CHECK_EVERY_MS));
    }
  }

  /** Plans an upload, unless an upload is already planned. Uploads begin at most once in an interval. */
  #planUpload(now: number): void {
    // The answer to an upload in progress determines the next upload. The runtime may have ended an old upload.
    if (this.#isUploading && isWithin(this.#uploadedAt, CALL_TIMEOUT_MS, now)) return;
    const dueAt = this.#dueAt;
    if (dueAt !== undefined && now < dueAt + OVERDUE_MS && dueAt - now <= this.#intervalMs) return;
    // The delay has a maximum, because the clock may have gone back.
    const calledAt = Math.max(this.#uploadedAt, this.#loadedAt);
    const restMs = calledAt + this.#intervalMs - now;
    const delayMs = Math.min(Math.max(restMs, this.#minDelayMs(now)), this.#intervalMs);
    this.#dueAt = now + delayMs;
    this.#plan += 1;
    this.#options.background(this.#uploadAfter(delayMs, this.#plan));
  }

  get #intervalMs(): number {
    return this.#answeredIntervalMs * 2 ** Math.min(this.#failures, MAX_DOUBLINGS);
  }

  #minDelayMs(now: number): number {
    const intervalMs = this.#answeredIntervalMs;
    if (now - this.#loadedAt < IDLE_INTERVALS * intervalMs) return MIN_DELAY_MS;
    const random = this.#options.random ?? Math.random;
    return MIN_DELAY_MS + random() * (intervalMs - MIN_DELAY_MS);
  }

  /** Never rejects. */
  async #uploadAfter(delayMs: number, plan: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    if (plan !== this.#plan) return;
    // Requests that are recorded from now on belong to the next upload.
    this.#dueAt = undefined;
    this.#uploadedAt = this.#clock();
    this.#pending ??= this.#nextBatch();
    const batch = this.#pending;
    if (!batch) return;
    this.#isUploading = true;
    try {
      await this.#call(batch);
      this.#failures = 0;
      if (this.#pending === batch) this.#pending = undefined;
    } catch (error) {
      this.#failures += 1;
      this.#fail("upload", causeOf(error));
    }
    this.#isUploading = false;
    // There may be new sums, but no further request that plans an upload.
    if (this.#pending || !this.recorder.isEmpty) this.#planUpload(this.#clock());
  }

  #nextBatch(): Batch | undefined {
    if (this.recorder.isEmpty) return undefined;
    this.#sequence += 1;
    return { ...this.recorder.take(), sequence: this.#sequence };
  }
}

/** Describes a failure for operators. Omits an unexpected message, because it could contain a secret. */
function causeOf(error: unknown): string {
  const isTimeout = error instanceof Error && error.message === "timeout";
  if (isTimeout) return "timeout";
  return error instanceof Error ? error.name : typeof error;
}

/** Whether a time is at most this long ago. A time in the future is not, because the clock was then set back. */
function isWithin(then: number, ms: number, now: number): boolean {
  return then <= now && now - then < ms;
}

/** Runs a task of the statistics. Drops its error, because a failure of the statistics must not fail a request. */
function withoutFailing(task: () => void): void {
  try {
    task();
  } catch {
    // A log line for each request would cost more than the lost count.
  }
}
