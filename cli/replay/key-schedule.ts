import { ExpiryQueue } from "../../src/stores/expiry-queue.ts";

const SECOND_MS = 1000;

/** Keys by the second in which they expire. Many keys expire in the same second: at the end of a window. */
export class KeySchedule {
  readonly #keysBySecond = new Map<number, string[]>();
  readonly #seconds = new ExpiryQueue();

  /** @param expiresAt milliseconds since the Unix epoch */
  add(key: string, expiresAt: number): void {
    const second = Math.ceil(expiresAt / SECOND_MS);
    const keys = this.#keysBySecond.get(second);
    if (keys) {
      keys.push(key);
      return;
    }
    this.#keysBySecond.set(second, [key]);
    this.#seconds.add(`${second}`, second * SECOND_MS);
  }

  /** Removes and returns the keys of the earliest second that is over; undefined if there is none. */
  takeExpired(now: number): readonly string[] | undefined {
    const next = this.#seconds.takeExpired(now);
    if (next === undefined) return undefined;
    const second = Number(next);
    const keys = this.#keysBySecond.get(second);
    this.#keysBySecond.delete(second);
    return keys;
  }
}
