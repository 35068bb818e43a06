/** The maximum number of calls that wait until their deadline for a store that does not answer. */
export const MAX_STALLED = 16;

/** A call that has not ended yet. */
export interface WaitingCall {
  /** The identities of the objects called. */
  readonly identities: readonly string[];
  /** When the call was sent, or later by the time in which the isolate was busy. */
  sentAt: number;
  /** The number of calls that had succeeded when this call was sent. */
  readonly successes: number;
}

/**
 * Records the waiting calls of an isolate, to see whether a store has stopped answering or is only
 * busy.
 *
 * A breaker counts failures, and a call that hangs fails only at its deadline. So if a store is
 * dead, all requests of a burst would wait until their deadlines. The store therefore counts as
 * *stalled* when {@link MAX_STALLED} calls have waited for most of the deadline and no call has
 * succeeded since the last of these calls was sent. Then further calls fail at once. A burst of
 * calls to a healthy store does not make it stalled, because the first answer is a success.
 */
export class WaitingCalls {
  readonly #timeoutMs: number;
  readonly #clients: number;
  /** The waiting calls, in the order in which they were sent. */
  readonly #calls = new Set<WaitingCall>();
  #successes = 0;
  /**
   * How long the slowest recent answer took, in milliseconds. Each faster answer lowers this value
   * by at most a tenth.
   */
  #slowestMs: number | undefined;

  /**
   * @param clients the number of clients whose calls must be stalled before the whole store counts
   * as stalled
   */
  constructor(timeoutMs: number, clients: number) {
    this.#timeoutMs = timeoutMs;
    this.#clients = clients;
  }

  enter(identities: readonly string[], now: number): WaitingCall {
    const call = { identities, sentAt: now, successes: this.#successes };
    this.#calls.add(call);
    return call;
  }

  succeed(call: WaitingCall, now: number): void {
    this.leave(call);
    this.#successes += 1;
    const tookMs = Math.max(0, now - call.sentAt);
    this.#slowestMs = Math.max(tookMs, (this.#slowestMs ?? 0) * 0.9);
  }

  leave(call: WaitingCall): void {
    this.#calls.delete(call);
  }

  /** Leaves out a time in which the isolate was too busy to read answers. */
  postpone(ms: number, now: number): void {
    for (const call of this.#calls) call.sentAt = Math.min(now, call.sentAt + ms);
  }

  /**
   * Whether a call should fail at once instead of waiting.
   *
   * @param waitingCall the call, if it is waiting already. The {@link MAX_STALLED} calls that have
   * waited longest may continue to wait
   */
  isStalled(identities: readonly string[], now: number, waitingCall?: WaitingCall): boolean {
    if (this.#calls.size < MAX_STALLED) return false;
    const stalled = new Set<string>();
    let remaining = MAX_STALLED;
    for (const call of this.#calls) {
      const ageMs = now - call.sentAt;
      if (ageMs < 0 || ageMs > 2 * this.#timeoutMs) {
        // The call's request was cancelled, or the clock has jumped. The call is removed, because
        // otherwise it might be counted for ever.
        this.#calls.delete(call);
        continue;
      }
      if (call === waitingCall) return false;
      for (const identity of call.identities) stalled.add(identity);
      remaining -= 1;
      if (remaining > 0) continue;
      // This call was sent last of the counted calls, so the rest of them have waited at least as
      // long.
      if (call.successes !== this.#successes || ageMs < this.#maxWaitMs()) return false;
      if (this.#clients === 1 || stalled.size >= this.#clients) return true;
      return identities.some((identity) => stalled.has(identity));
    }
    return false;
  }

  /**
   * Returns how long calls may wait before the store counts as stalled, in milliseconds. This time
   * is half of the deadline, or up to three quarters of it if answers are slow. If no answer has
   * arrived yet, it is three quarters.
   */
  #maxWaitMs(): number {
    const longestMs = this.#timeoutMs * 0.75;
    if (this.#slowestMs === undefined) return longestMs;
    return Math.min(longestMs, Math.max(this.#timeoutMs / 2, 4 * this.#slowestMs));
  }
}
