/** The maximum number of steps. */
const MAX_STEPS = 240;
const DAY_S = 86_400;
/** The lengths of a step, in seconds. Each is a multiple of the one before it. */
const STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, DAY_S];

/** How often something happened in each step of a {@link TimeAxis}. */
export type Series = Uint32Array<ArrayBuffer>;

/**
 * Divides the time of a log into at most 240 steps of equal length. When a time is after the last step, the steps
 * become longer, and the numbers of all series are added up.
 */
export class TimeAxis {
  readonly #series: Series[] = [];
  #stepMs = 1000;
  #startMs = Number.NaN;
  #steps = 0;

  /** @returns a series for this axis, with 0 in each step */
  series(): Series {
    const series = new Uint32Array(MAX_STEPS);
    this.#series.push(series);
    return series;
  }

  /** The number of steps up to the latest time. */
  get steps(): number {
    return this.#steps;
  }

  /** The start of the first step, in milliseconds since the Unix epoch; undefined if there are no steps. */
  get startMs(): number | undefined {
    return this.#steps === 0 ? undefined : this.#startMs;
  }

  get stepSeconds(): number {
    return this.#stepMs / 1000;
  }

  /**
   * Returns the step of a time. The first call must pass the earliest time: an earlier one belongs to the first
   * step.
   */
  stepOf(at: number): number {
    if (this.#steps === 0) this.#startMs = Math.floor(at / this.#stepMs) * this.#stepMs;
    let step = Math.floor((at - this.#startMs) / this.#stepMs);
    while (step >= MAX_STEPS) {
      this.#lengthen();
      step = Math.floor((at - this.#startMs) / this.#stepMs);
    }
    if (step < 0) step = 0;
    if (step >= this.#steps) this.#steps = step + 1;
    return step;
  }

  #lengthen(): void {
    const seconds = this.#stepMs / 1000;
    const longer = (STEPS.find((step) => step > seconds) ?? seconds * 2) * 1000;
    const start = Math.floor(this.#startMs / longer) * longer;
    const factor = longer / this.#stepMs;
    const offset = (this.#startMs - start) / this.#stepMs;
    const target = (step: number) => Math.floor((step + offset) / factor);
    for (const series of this.#series) {
      for (const [step, value] of series.entries()) {
        series[step] = 0;
        series[target(step)] = (series[target(step)] as number) + value;
      }
    }
    this.#steps = target(this.#steps - 1) + 1;
    [this.#stepMs, this.#startMs] = [longer, start];
  }
}
