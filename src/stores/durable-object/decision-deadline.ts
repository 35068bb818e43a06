/** The deadline of a decision, from its creation on. */
export class DecisionDeadline {
  readonly #startedAt = Date.now();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Milliseconds left; 0 or less after the deadline. A clock that steps back does not extend it. */
  get timeLeftMs(): number {
    return Math.min(this.#timeoutMs, this.#timeoutMs - (Date.now() - this.#startedAt));
  }

  /**
   * How long a call may wait in one object, in milliseconds: for holds that may release quota, or for
   * counts that only complete a denial. A quarter of the time left, so that a denial arrives well
   * within the deadline.
   */
  get maxWaitMs(): number {
    return Math.max(0, Math.floor(this.timeLeftMs / 4));
  }
}
