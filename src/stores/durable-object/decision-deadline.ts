/** The deadline of a decision. The time runs from the moment when this instance is created. */
export class DecisionDeadline {
  readonly #startedAt = Date.now();
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Milliseconds left; 0 or less after the deadline. If the clock steps back, the time left is at
   * most the whole deadline.
   */
  get timeLeftMs(): number {
    return Math.min(this.#timeoutMs, this.#timeoutMs - (Date.now() - this.#startedAt));
  }

  /**
   * The maximum time in milliseconds that a call waits in one object for holds to release quota. A
   * denied decision also waits at most this time for the releases of its own holds. This maximum is
   * a quarter of the time left, so that a denial arrives well within the deadline.
   */
  get maxWaitMs(): number {
    return Math.max(0, Math.floor(this.timeLeftMs / 4));
  }
}
