import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { Recorder } from "../statistics/recorder.ts";
import type { ControlApi } from "./protocol.ts";

/** Connects an isolate with the control object: hands over sums, and loads overrides. */
export class ControlLink {
  readonly overrides: LiveOverrides;
  readonly recorder: Recorder;

  constructor(_control: ControlApi, overrides: LiveOverrides, recorder: Recorder) {
    this.overrides = overrides;
    this.recorder = recorder;
  }

  /**
   * Loads the overrides if this isolate has not loaded them recently. Never rejects.
   *
   * @returns a promise if the request must wait for the overrides, else undefined
   */
  loadIfStale(_now: number): Promise<void> | undefined {
    return undefined;
  }

  /** Makes sure that the sums are handed over in the background, within the interval. */
  handOverLater(_now: number): void {}
}
