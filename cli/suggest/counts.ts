import type { Window } from "../../src/config/rule.ts";
import { windowAt, windowStart } from "../../src/engine/counter.ts";

const [ZERO, NINE, DOT] = [48, 57, 46];

/** Whether a text is an IPv4 address in its only canonical form, such as `203.0.113.7`. */
export function isPlainIPv4(text: string): boolean {
  let [parts, digits, value] = [1, 0, 0];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === DOT) {
      if (digits === 0 || parts === 4) return false;
      parts++;
      [digits, value] = [0, 0];
    } else {
      const hasLeadingZero = digits > 0 && value === 0;
      if (code < ZERO || code > NINE || hasLeadingZero) return false;
      value = value * 10 + code - ZERO;
      digits++;
      if (value > 255) return false;
    }
  }
  return parts === 4 && digits > 0;
}

/** Numbers up to this one are counted one by one. */
const EXACT = 10_000;
/** Higher numbers are counted in ranges: this many of equal length between a power of 2 and the next one. */
const RANGES_PER_DOUBLING = 128;
const FIRST_EXPONENT = Math.floor(Math.log2(EXACT));
const RANGES = (32 - FIRST_EXPONENT) * RANGES_PER_DOUBLING;

/**
 * Counts how often each number occurs, in bounded memory. Results are exact for numbers up to 10,000. Higher
 * numbers that differ by less than 0.8 % may be counted as their mean.
 */
export class NumberCounts {
  /** How many numbers there are. */
  total = 0;
  /** The highest number; 0 if there is none. Always exact. */
  max = 0;
  readonly #exact = new Float64Array(EXACT + 1);
  readonly #ranges = new Float64Array(RANGES);
  readonly #sums = new Float64Array(RANGES);

  /**
   * @param value a whole number below 2 ** 32
   * @param weight how often it occurs
   */
  add(value: number, weight: number): void {
    this.total += weight;
    if (value > this.max) this.max = value;
    if (value <= EXACT) {
      this.#exact[value] = (this.#exact[value] as number) + weight;
      return;
    }
    const range = rangeOf(value);
    this.#ranges[range] = (this.#ranges[range] as number) + weight;
    this.#sums[range] = (this.#sums[range] as number) + value * weight;
  }

  /**
   * Returns the lowest number that at least this share of all numbers does not exceed; 0 if there is no number.
   *
   * @param share above 0, at most 1
   */
  quantile(share: number): number {
    // Without the rounding, 0.95 of 20 numbers could be a little above 19.
    const wanted = Math.ceil(Number((share * this.total).toPrecision(12)));
    let seen = 0;
    for (const [value, count] of this.#values()) {
      seen += count;
      if (seen >= wanted) return Math.min(Math.round(value), this.max);
    }
    return 0;
  }

  /** Returns the sum of what each number exceeds the limit by. */
  excessOver(limit: number): number {
    let excess = 0;
    for (const [value, count] of this.#values()) {
      if (value > limit) excess += (value - limit) * count;
    }
    return Math.round(excess);
  }

  /** Each number, or the mean of a range, in ascending order, and how often it occurs. */
  *#values(): Generator<readonly [value: number, count: number]> {
    for (let value = 0; value <= EXACT; value++) {
      const count = this.#exact[value] as number;
      if (count > 0) yield [value, count];
    }
    for (let range = 0; range < RANGES; range++) {
      const count = this.#ranges[range] as number;
      if (count > 0) yield [(this.#sums[range] as number) / count, count];
    }
  }
}

function rangeOf(value: number): number {
  const exponent = 31 - Math.clz32(value);
  const fraction = value / 2 ** exponent - 1;
  return (
    (exponent - FIRST_EXPONENT) * RANGES_PER_DOUBLING + Math.floor(fraction * RANGES_PER_DOUBLING)
  );
}

const FIRST_CAPACITY = 1024;
/** All bits of a half of a hash. Higher levels do not exist. */
const MAX_LEVEL = 32;

/**
 * A table of clients with a few counts for each of them, for millions of clients: a hash table in typed arrays.
 *
 * It has at most `maxClients` entries. If more clients come, it keeps every second of them, then every fourth,
 * and so on: those whose hash ends in `level` zero bits. They are a uniform sample, because hashes do not
 * depend on what clients do. Each entry then stands for 2 ** level clients.
 */
export class ClientCounts {
  /** The number of entries. */
  size = 0;
  /** The number of zero bits at the end of each stored hash; 0 if all clients are stored. */
  level = 0;
  /** `width` counts for each entry: those of entry `i` begin at `i * width`. They begin with 0. */
  counts: Uint32Array;
  high: Uint32Array;
  low: Uint32Array;
  readonly width: number;
  readonly #maxClients: number;
  /** The number of an entry plus 1, or 0. Twice as long as there may be entries. */
  #slots: Int32Array;
  /**
   * Random factors determine the slot of a hash. So nobody can choose addresses or keys whose hashes all have
   * the same slot, which would make the table slow.
   */
  readonly #factors = crypto.getRandomValues(new Int32Array(3)).map((factor) => factor | 1);

  /** @param maxClients a power of 2 */
  constructor(width: number, maxClients: number) {
    const capacity = Math.min(FIRST_CAPACITY, maxClients);
    this.width = width;
    this.#maxClients = maxClients;
    this.#slots = new Int32Array(capacity * 2);
    this.counts = new Uint32Array(capacity * width);
    this.high = new Uint32Array(capacity);
    this.low = new Uint32Array(capacity);
  }

  /** The number of clients for which one entry stands. */
  get weight(): number {
    return 2 ** this.level;
  }

  /** Returns the entry of a client, and adds one if there is none. Returns -1 for a client outside the sample. */
  entryOf(high: number, low: number): number {
    if (this.level > 0 && !this.#isInSample(low)) return -1;
    let slot = this.#slotOf(high, low);
    for (;;) {
      const entry = (this.#slots[slot] as number) - 1;
      if (entry === -1) return this.#add(high, low, slot);
      if (this.low[entry] === low && this.high[entry] === high) return entry;
      slot = (slot + 1) & (this.#slots.length - 1);
    }
  }

  /** Removes all entries. The level stays. */
  clear(): void {
    // A table that was large once would take long to empty each time, so it shrinks.
    if (this.#slots.length > 8 * Math.max(this.size, FIRST_CAPACITY)) {
      this.#resize(this.high.length / 2, 0);
    } else {
      this.#slots.fill(0);
      this.counts.fill(0, 0, this.size * this.width);
    }
    this.size = 0;
  }

  /** Removes the clients outside the sample of this level. */
  raiseLevel(level: number): void {
    if (level <= this.level) return;
    this.level = level;
    let kept = 0;
    for (let entry = 0; entry < this.size; entry++) {
      if (this.#isInSample(this.low[entry] as number)) this.#move(entry, kept++);
    }
    this.counts.fill(0, kept * this.width, this.size * this.width);
    this.size = kept;
    this.#fillSlots();
  }

  #isInSample(low: number): boolean {
    const mask = this.level >= MAX_LEVEL ? -1 : (1 << this.level) - 1;
    return (low & mask) === 0;
  }

  #slotOf(high: number, low: number): number {
    const [a, b, c] = this.#factors as unknown as [number, number, number];
    // The high bits of a product depend on all bits of its factors. The number of slots is a power of 2.
    return (Math.imul(high ^ c, a) + Math.imul(low, b)) >>> (Math.clz32(this.#slots.length) + 1);
  }

  #add(high: number, low: number, slot: number): number {
    if (this.size === this.high.length) {
      this.#makeRoom();
      // The client may be outside the new sample, and its slot has changed.
      return this.size < this.high.length ? this.entryOf(high, low) : -1;
    }
    const entry = this.size++;
    this.high[entry] = high;
    this.low[entry] = low;
    this.#slots[slot] = entry + 1;
    return entry;
  }

  #makeRoom(): void {
    if (this.size < this.#maxClients) {
      this.#resize(this.high.length * 2, this.size);
      this.#fillSlots();
      return;
    }
    // Half of the clients leave at each level, unless someone has chosen the hashes.
    while (this.size > this.#maxClients / 2 && this.level < MAX_LEVEL) {
      this.raiseLevel(this.level + 1);
    }
  }

  /** @param kept the number of entries to keep */
  #resize(capacity: number, kept: number): void {
    const [high, low, counts] = [this.high, this.low, this.counts];
    this.#slots = new Int32Array(capacity * 2);
    this.high = new Uint32Array(capacity);
    this.low = new Uint32Array(capacity);
    this.counts = new Uint32Array(capacity * this.width);
    this.high.set(high.subarray(0, kept));
    this.low.set(low.subarray(0, kept));
    this.counts.set(counts.subarray(0, kept * this.width));
  }

  #move(from: number, to: number): void {
    this.high[to] = this.high[from] as number;
    this.low[to] = this.low[from] as number;
    this.counts.copyWithin(to * this.width, from * this.width, (from + 1) * this.width);
  }

  #fillSlots(): void {
    this.#slots.fill(0);
    for (let entry = 0; entry < this.size; entry++) {
      let slot = this.#slotOf(this.high[entry] as number, this.low[entry] as number);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1);
      this.#slots[slot] = entry + 1;
    }
  }
}

/** The fields of a window that determine when it begins and ends. */
export type Boundaries = Pick<Window, "windowMs" | "offsetMs" | "calendar">;

/** Receives each client of a window that has ended, with the number of its requests. */
type OnCounted = (high: number, low: number, requests: number, succeeded: number) => void;

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
