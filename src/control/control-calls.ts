import type { LiveOverrides } from "../overrides/live-overrides.ts";
import { withTimeout } from "../request/timeout.ts";
import type { Recorder } from "../statistics/recorder.ts";
import { locationOf, objectNameFor } from "./fan-in.ts";
import type { ControlApi, HandOver, HandOverAnswer } from "./protocol.ts";

/**
 * The time in milliseconds after which a call counts as failed. It is shorter than the interval of
 * hand-overs, so that an isolate has at most one of them in progress.
 */
export const CALL_TIMEOUT_MS = 4000;

/**
 * The age that a collector's overrides may have in milliseconds. Older overrides count as old for
 * isolates too.
 */
const COLLECTOR_AGE_MS = 5000;

export interface ControlCallOptions {
  /** Returns the control object with this name. */
  readonly objectNamed: (name: string) => Pick<ControlApi, "handOver">;
  /** Returns the time in milliseconds. @default Date.now */
  readonly clock?: () => number;
  /** Returns a number from 0 to less than 1. @default Math.random */
  readonly random?: () => number;
}

/** Sums that an isolate hands over, and the object that gets them. */
export interface Batch extends Pick<HandOver, "sequence" | "minutes" | "clients"> {
  /** Only this object knows whether it has added the sums, so a failed call is repeated there. */
  readonly objectName: string;
}

/** Calls the control objects for one isolate, and applies the overrides in their answers. */
export class ControlCalls {
  readonly #options: ControlCallOptions;
  readonly #overrides: LiveOverrides;
  readonly #recorder: Recorder;
  /** Created with the first call, because a Worker has no random numbers while it starts. */
  #source: string | undefined;
  #location: string | undefined;
  #collectors: number | undefined;
  #objectName: string | undefined;
  /** When the newest answered call was sent. The overrides are at least as new. */
  #loadedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ControlCallOptions, overrides: LiveOverrides, recorder: Recorder) {
    this.#options = options;
    this.#overrides = overrides;
    this.#recorder = recorder;
  }

  /** The time since when the overrides may be out of date, in milliseconds since the Unix epoch. */
  get loadedAt(): number {
    return this.#loadedAt;
  }

  /** The name of the object that the next new batch goes to. */
  get objectName(): string {
    this.#objectName ??= objectNameFor(
      this.#location ?? locationOf(undefined),
      this.#collectors,
      this.#options.random,
    );
    return this.#objectName;
  }

  /** Sets the location of this isolate from the first request that it handles. */
  locate(request: Request | undefined): void {
    if (this.#location !== undefined || !request) return;
    this.#location = locationOf(request.cf?.continent);
    this.#objectName = undefined;
  }

  /**
   * Hands over a batch, and applies the overrides of the answer.
   *
   * @throws {Error} if the object has not answered in time, or has thrown an error. It may have added
   * the sums
   */
  async handOver(batch: Batch): Promise<void> {
    const { objectName, ...sums } = batch;
    const sentAt = (this.#options.clock ?? Date.now)();
    this.#source ??= crypto.randomUUID();
    const { version: overridesVersion } = this.#overrides;
    const { breakerOpen } = this.#recorder;
    const answer = await inTime(
      this.#call(objectName, {
        ...sums,
        source: this.#source,
        isolates: 1,
        breakerOpen,
        overridesVersion,
      }),
    );
    if (answer.overrides) this.#overrides.update(answer.overrides, overridesVersion);
    const ageMs = Number(answer.overridesAgeMs ?? 0);
    this.#loadedAt = sentAt - Math.max(0, ageMs - COLLECTOR_AGE_MS);
    if (answer.collectors === this.#collectors) return;
    this.#collectors = answer.collectors;
    this.#objectName = undefined;
  }

  /** An object can be missing or have another version of the method, so this may fail at once. */
  async #call(objectName: string, handOver: HandOver): Promise<HandOverAnswer> {
    const answer = await this.#options.objectNamed(objectName).handOver(handOver);
    if (typeof answer?.collectors !== "number") throw new Error("The answer has another form.");
    return answer;
  }
}

function inTime<Result>(call: Promise<Result>): Promise<Result> {
  return withTimeout(call, CALL_TIMEOUT_MS, () => {
    throw new Error("timeout");
  });
}
