/** The number of failures in a row after which a store is no longer called. */
export const FAILURES_TO_OPEN = 5;

/** How long an open circuit waits before the next probe, in milliseconds. */
export const PAUSE_MS = 1000;

/** The number of a probe; 0 for a call that is not a probe. */
export type Ticket = number;

/**
 * The state of a circuit breaker: closed while calls go through, open after some failures in a row.
 *
 * While the circuit is open, one call at a time goes through as a probe. A probe that never ends
 * counts as lost after `timeoutMs`, so it cannot keep the circuit open. Several requests share this
 * state. The state contains no promises, so each request waits only for its own call.
 */
export class Circuit {
  readonly #timeoutMs: number;
  #failures = 0;
  #lastFailure = "";
  #isOpen = false;
  /**
   * The time at which an open circuit sends its next probe. If the clock steps back, the probe is
   * only delayed.
   */
  #probeAt = 0;
  #probes = 0;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The number of failures since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** The reason why no calls are made, in words for operators. */
  get reason(): string {
    return `not called after ${this.#failures} failures in a row; the last failure was: ${this.#lastFailure}`;
  }

  /** Whether a call must fail at once. */
  isPaused(now: number): boolean {
    const waitMs = this.#probeAt - now;
    return this.#isOpen && waitMs > 0 && waitMs <= this.#timeoutMs + PAUSE_MS;
  }

  /** Lets a call through. While the circuit is open, this call is the probe. */
  enter(now: number): Ticket {
    if (!this.#isOpen) return 0;
    this.#probeAt = now + this.#timeoutMs;
    this.#probes += 1;
    return this.#probes;
  }

  /** Records a call that succeeded. @returns whether it closed the circuit */
  succeed(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#failures = 0;
    return wasOpen;
  }

  /**
   * Records a call that failed.
   *
   * @param mayOpen whether the circuit may open if there have been enough failures
   * @returns whether this failure opened the circuit
   */
  fail(ticket: Ticket, now: number, failure: string, mayOpen: boolean): boolean {
    this.#failures += 1;
    this.#lastFailure = failure;
    const opens = !this.#isOpen && mayOpen && this.#failures >= FAILURES_TO_OPEN;
    // Lost probes, and calls that began before the circuit opened, do not delay the current probe.
    const isProbe = this.#isOpen && ticket > 0 && ticket === this.#probes;
    if (opens || isProbe) this.#probeAt = now + PAUSE_MS;
    if (opens) this.#isOpen = true;
    return opens;
  }
}
