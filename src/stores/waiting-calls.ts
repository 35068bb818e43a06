/** This many calls may wait for their whole deadline at a store that has stopped answering. */
export const MAX_STALLED = 16;

/** A call that is under way. */
export interface WaitingCall {
  /** The objects that it calls. */
  readonly places: readonly string[];
  readonly sentAt: number;
  /** How many calls had succeeded by then. */
  readonly successes: number;
}

/**
 * The calls of an isolate that are under way, to tell a store that has stopped answering from one that
 * is busy.
 *
 * A breaker counts failures, and calls that hang fail only at their deadline: a burst into a dead store
 * would wait as a whole. So when {@link MAX_STALLED} calls have waited for most of the deadline and no
 * call sent meanwhile has succeeded, the store is *stalled*, and no more than these wait for it.
 * A burst into a store that is well never comes there: its first answer ends the suspicion.
 */
export class WaitingCalls {
  readonly #timeoutMs: number;
  readonly #clients: number;
  /** In the order in which they were sent. */
  readonly #calls = new Set<WaitingCall>();
  #successes = 0;
  /** The slowest answer, forgotten by a tenth with each quicker one, in milliseconds. */
  #slowestMs: number | undefined;

  /** @param clients how many clients' objects must be stalled, for the others to be taken for it too */
  constructor(timeoutMs: number, clients: number) {
    this.#timeoutMs = timeoutMs;
    this.#clients = clients;
  }

  enter(places: readonly string[], now: number): WaitingCall {
    const call = { places, sentAt: now, successes: this.#successes };
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

  /**
   * Whether a call should not wait: one that is not sent yet, or one that is under way, unless it is
   * among those that have waited longest.
   */
  isStalled(places: readonly string[], now: number, own?: WaitingCall): boolean {
    if (this.#calls.size < MAX_STALLED) return false;
    const stalled = new Set<string>();
    let left = MAX_STALLED;
    for (const call of this.#calls) {
      const ageMs = now - call.sentAt;
      if (ageMs < 0 || ageMs > 2 * this.#timeoutMs) {
        // Its request ended without a word, or the clock has stepped: it must not count for ever.
        this.#calls.delete(call);
        continue;
      }
      if (call === own) return false;
      for (const place of call.places) stalled.add(place);
      left -= 1;
      if (left > 0) continue;
      // The last of them was sent latest: all have waited for as long at least.
      if (call.successes !== this.#successes || ageMs < this.#maxWaitMs()) return false;
      if (this.#clients === 1 || stalled.size >= this.#clients) return true;
      return places.some((place) => stalled.has(place));
    }
    return false;
  }

  /** Half of the deadline; up to three quarters where answers are slow, or none has come yet. */
  #maxWaitMs(): number {
    const most = this.#timeoutMs * 0.75;
    if (this.#slowestMs === undefined) return most;
    return Math.min(most, Math.max(this.#timeoutMs / 2, 4 * this.#slowestMs));
  }
}
