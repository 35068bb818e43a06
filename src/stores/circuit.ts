/** Failures in a row after which a store is no longer called. */
export const FAILURES_TO_OPEN = 5;

/** How long it is left alone then, and between probes, in milliseconds. */
export const REST_MS = 1000;

/** A call's ticket: the number of the probe that it is, or 0 for any other call. */
export type Ticket = number;

/**
 * A circuit breaker's state: whether something that has failed a few times in a row is called.
 *
 * While it is open, one call at a time goes through as a probe. A probe that never reports back is
 * taken for lost after `timeoutMs`, so that none can keep the circuit open. Plain values only:
 * requests share them, and none waits for another's probe.
 */
export class Circuit {
  readonly #timeoutMs: number;
  #failures = 0;
  #last = "";
  #isOpen = false;
  /** While open: when the next probe may go. A clock that steps back only makes it later. */
  #probeAt = 0;
  #probes = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get failures(): number {
    return this.#failures;
  }

  /** For operators: why nothing is called. */
  get reason(): string {
    return `not asked, after ${this.#failures} failures in a row, the last one: ${this.#last}`;
  }

  /** Whether a call would have to fail at once. */
  isResting(now: number): boolean {
    const restMs = this.#probeAt - now;
    return this.#isOpen && restMs > 0 && restMs <= this.#timeoutMs + REST_MS;
  }

  /** Lets a call through; while open it is the one probe. */
  enter(now: number): Ticket {
    if (!this.#isOpen) return 0;
    this.#probeAt = now + this.#timeoutMs;
    this.#probes += 1;
    return this.#probes;
  }

  /** @returns whether this has closed it */
  succeed(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#failures = 0;
    return wasOpen;
  }

  /**
   * @param mayOpen whether enough is known to open it, if there are failures enough
   * @returns whether this has opened it
   */
  fail(ticket: Ticket, now: number, failure: string, mayOpen: boolean): boolean {
    this.#failures += 1;
    this.#last = failure;
    const opens = !this.#isOpen && mayOpen && this.#failures >= FAILURES_TO_OPEN;
    // Calls that were under way when it opened, and lost probes, tell nothing about the current one.
    const isProbe = this.#isOpen && ticket > 0 && ticket === this.#probes;
    if (opens || isProbe) this.#probeAt = now + REST_MS;
    if (opens) this.#isOpen = true;
    return opens;
  }
}
