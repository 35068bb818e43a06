import type { Window } from "../../src/config/rule.ts";
import { windowAt, windowStart } from "../../src/engine/counter.ts";
import { ClientCounts } from "./client-counts.ts";
import { NumberCounts } from "./number-counts.ts";

/** The fields of a window that determine when it begins and ends. */
export type Boundaries = Pick<Window, "windowMs" | "offsetMs" | "calendar">;

/** Receives each client of a window that has ended, with the number of its requests. */
export type OnCounted = (high: number, low: number, requests: number, succeeded: number) => void;

const REQUESTS = 0;
const SUCCEEDED = 1;

/**
 * Counts the requests of each client in windows of one length. Only the current window is in memory. The
 * windows begin and end at the times at which those of Weir do.
 */
export class WindowCounter {
  /** How many requests the pairs of a client and a window had. */
  readonly counts = new NumberCounts();
  /** When the current window began, in milliseconds since the Unix epoch. */
  startsAt = 0;
  #endsAt = Number.NEGATIVE_INFINITY;
  readonly #window: Boundaries;
  readonly #current: ClientCounts;
  readonly #onCounted: OnCounted;

  /** @param maxClients how many clients of one window are counted exactly; a power of 2 */
  constructor(window: Boundaries, maxClients: number, onCounted: OnCounted = () => {}) {
    this.#window = window;
    this.#current = new ClientCounts(2, maxClients);
    this.#onCounted = onCounted;
  }

  /** The level of the sample: see {@link ClientCounts}. */
  get level(): number {
    return this.#current.level;
  }

  /**
   * Counts a request. The requests come in the order of their times.
   *
   * @returns the number of the client's requests in the current window; 0 for a client outside the sample
   */
  add(high: number, low: number, at: number, hasSucceeded = false): number {
    if (at >= this.#endsAt) this.#begin(at);
    const current = this.#current;
    const entry = current.entryOf(high, low);
    if (entry < 0) return 0;
    const { counts } = current;
    const index = entry * current.width;
    if (hasSucceeded) counts[index + SUCCEEDED] = (counts[index + SUCCEEDED] as number) + 1;
    const count = (counts[index + REQUESTS] as number) + 1;
    counts[index + REQUESTS] = count;
    return count;
  }

  /** Ends the current window. Call it after the last request. */
  end(): void {
    const { counts, high, low, width, weight, size } = this.#current;
    for (let entry = 0; entry < size; entry++) {
      const requests = counts[entry * width + REQUESTS] as number;
      this.counts.add(requests, weight);
      this.#onCounted(
        high[entry] as number,
        low[entry] as number,
        requests,
        counts[entry * width + SUCCEEDED] as number,
      );
    }
    this.#current.clear();
  }

  #begin(at: number): void {
    this.end();
    const { index, endsAt } = windowAt(at, this.#window);
    this.startsAt = windowStart(this.#window, index);
    this.#endsAt = endsAt;
  }
}
