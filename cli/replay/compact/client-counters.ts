/** The cells of a counter: the number of its window, and its count. */
const CELLS = 2;

/** Returns whether a counter in a window may still be needed. `counter` is the index among a client's counters. */
export type IsLive = (counter: number, window: number) => boolean;

/** The counters of numbered clients, each with the number of the last window in which it was charged. */
export class ClientCounters {
  readonly #isLive: IsLive;
  readonly #stride: number;
  #cells: Float64Array;

  /**
   * @param counters how many counters each client has
   * @param capacity the highest number of a client, plus 1
   */
  constructor(counters: number, capacity: number, isLive: IsLive) {
    this.#stride = counters * CELLS;
    this.#isLive = isLive;
    this.#cells = this.#create(capacity);
  }

  /** Returns the count of a counter in a window. */
  count(client: number, counter: number, window: number): number {
    const at = client * this.#stride + counter * CELLS;
    return this.#cells[at] === window ? (this.#cells[at + 1] as number) : 0;
  }

  set(client: number, counter: number, window: number, count: number): void {
    const at = client * this.#stride + counter * CELLS;
    this.#cells[at] = window;
    this.#cells[at + 1] = count;
  }

  hasLive(client: number): boolean {
    const start = client * this.#stride;
    for (let index = 0; index < this.#stride; index += CELLS) {
      if (this.#isLive(index / CELLS, this.#cells[start + index] as number)) return true;
    }
    return false;
  }

  /** Gives clients new numbers. Removes those whose new number is 0. */
  renumber(renumbered: Uint32Array, capacity: number): void {
    const before = this.#cells;
    const stride = this.#stride;
    this.#cells = this.#create(capacity);
    for (let client = 1; client < renumbered.length; client++) {
      const next = renumbered[client] as number;
      if (next === 0) continue;
      this.#cells.set(before.subarray(client * stride, (client + 1) * stride), next * stride);
    }
  }

  /** Creates counters that belong to no window. */
  #create(capacity: number): Float64Array {
    return new Float64Array(capacity * this.#stride).fill(Number.NEGATIVE_INFINITY);
  }
}
