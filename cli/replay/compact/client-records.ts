import type { ClientHash } from "../../tally/client-ranking.ts";

// The cells of a record. Each rule adds a cell for the requests that are not in a tally yet, and each window adds
// two numbers: the last window in which it was charged, and its count.
const HIGH = 0;
const LOW = 1;
const UNDER_RULES = 2;
const IPV4 = 3;
const SEEN = 4;
const CELLS = 5;
const CELLS_OF_WINDOW = 4;

/** How many counters each client has. */
export interface RecordSize {
  readonly rules: number;
  readonly windows: number;
}

/**
 * What is known about numbered clients. All of a client is in one place, because waiting for memory takes most of
 * the time of a decision.
 */
export class ClientRecords {
  /** The number of cells of a record; even, so that the numbers of its windows are aligned. */
  readonly #stride: number;
  readonly #firstWindow: number;
  readonly #cells: Uint32Array;
  /** The same memory. */
  readonly #numbers: Float64Array;

  /** @param capacity the highest number of a client, plus 1 */
  constructor({ rules, windows }: RecordSize, capacity: number) {
    this.#firstWindow = Math.ceil((CELLS + rules) / 2) * 2;
    this.#stride = this.#firstWindow + windows * CELLS_OF_WINDOW;
    this.#cells = new Uint32Array(capacity * this.#stride);
    this.#numbers = new Float64Array(this.#cells.buffer);
  }

  /** Sets a new record. Its counters belong to no window. */
  create(client: number, { high, low }: ClientHash, underRules: number, ipv4: number): void {
    const at = client * this.#stride;
    this.#cells[at + HIGH] = high;
    this.#cells[at + LOW] = low;
    this.#cells[at + UNDER_RULES] = underRules;
    this.#cells[at + IPV4] = ipv4;
    for (let cell = SEEN; cell < this.#firstWindow; cell++) this.#cells[at + cell] = 0;
    this.#numbers.fill(
      Number.NEGATIVE_INFINITY,
      (at + this.#firstWindow) / 2,
      (at + this.#stride) / 2,
    );
  }

  /** Copies a record of other records. */
  copy(client: number, from: ClientRecords, other: number): void {
    const start = other * this.#stride;
    this.#cells.set(from.#cells.subarray(start, start + this.#stride), client * this.#stride);
  }

  readHash(client: number, hash: ClientHash): void {
    const at = client * this.#stride;
    hash.high = this.#cells[at + HIGH] as number;
    hash.low = this.#cells[at + LOW] as number;
  }

  /** The client that rules count. */
  underRules(client: number): number {
    return this.#cells[client * this.#stride + UNDER_RULES] as number;
  }

  setUnderRules(client: number, underRules: number): void {
    this.#cells[client * this.#stride + UNDER_RULES] = underRules;
  }

  ipv4(client: number): number {
    return this.#cells[client * this.#stride + IPV4] as number;
  }

  /** Counts a request of an address. */
  addSeen(client: number): void {
    const at = client * this.#stride + SEEN;
    this.#cells[at] = (this.#cells[at] as number) + 1;
  }

  /** Counts a request of a client under a rule. */
  addSeenUnder(client: number, rule: number): void {
    const at = client * this.#stride + CELLS + rule;
    this.#cells[at] = (this.#cells[at] as number) + 1;
  }

  /** Returns the number of counted requests of an address, and sets it to 0. */
  takeSeen(client: number): number {
    return this.#take(client * this.#stride + SEEN);
  }

  takeSeenUnder(client: number, rule: number): number {
    return this.#take(client * this.#stride + CELLS + rule);
  }

  /** The last window of a counter. */
  window(client: number, index: number): number {
    return this.#numbers[this.#numberOf(client, index)] as number;
  }

  /** Returns the count of a counter in a window. */
  count(client: number, index: number, window: number): number {
    const at = this.#numberOf(client, index);
    return this.#numbers[at] === window ? (this.#numbers[at + 1] as number) : 0;
  }

  setCount(client: number, index: number, window: number, count: number): void {
    const at = this.#numberOf(client, index);
    this.#numbers[at] = window;
    this.#numbers[at + 1] = count;
  }

  #take(at: number): number {
    const value = this.#cells[at] as number;
    this.#cells[at] = 0;
    return value;
  }

  #numberOf(client: number, index: number): number {
    return (client * this.#stride + this.#firstWindow + index * CELLS_OF_WINDOW) / 2;
  }
}
