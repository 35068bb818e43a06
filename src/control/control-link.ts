import type { Decision } from "../limiter/decision.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { Recorder } from "../statistics/recorder.ts";
import { type Batch, type ControlCallOptions, ControlCalls } from "./control-calls.ts";
import { GLOBAL_OBJECT } from "./fan-in.ts";
import { HandOvers } from "./hand-overs.ts";
import { causeOf, OverrideLoader } from "./override-loader.ts";

/** What a call to the control object was for. */
export type ControlTask = "hand-over" | "load-overrides";

export interface ControlLinkOptions extends ControlCallOptions {
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
