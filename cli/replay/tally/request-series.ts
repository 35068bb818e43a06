import type { Series, TimeAxis } from "../../tally/time-axis.ts";
import type { Timeline } from "../report.ts";

/** Allowed and denied requests over time. */
export class RequestSeries {
  readonly #axis: TimeAxis;
  readonly #allowed: Series;
  readonly #denied: Series;

  constructor(axis: TimeAxis) {
    this.#axis = axis;
    this.#allowed = axis.series();
    this.#denied = axis.series();
  }

  /** @param step the step of the request's time */
  add(step: number, isDenied: boolean): void {
    const series = isDenied ? this.#denied : this.#allowed;
    series[step] = (series[step] as number) + 1;
  }

  report(): Timeline {
    const { startMs, stepSeconds, steps } = this.#axis;
    return {
      start: startMs === undefined ? undefined : new Date(startMs).toISOString(),
      stepSeconds,
      allowed: [...this.#allowed.subarray(0, steps)],
      denied: [...this.#denied.subarray(0, steps)],
    };
  }
}
