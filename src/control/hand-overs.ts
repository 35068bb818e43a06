import type { Recorder } from "../statistics/recorder.ts";
import type { Batch, ControlCalls } from "./control-calls.ts";
import { causeOf } from "./override-loader.ts";
import { HAND_OVER_INTERVAL_MS } from "./protocol.ts";

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

export interface HandOverOptions {
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
export class HandOvers {
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
