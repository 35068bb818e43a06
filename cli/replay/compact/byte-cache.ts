/**
 * Numbers that are computed from short texts, which are parts of bytes. Each text has one place, where it replaces
 * the text before it, so the cache is bounded. It makes no string to find a number.
 */
export class ByteCache {
  readonly #mask: number;
  readonly #maxBytes: number;
  readonly #bytes: Uint8Array;
  readonly #lengths: Uint8Array;
  readonly #values: Int32Array;
  #place = 0;

  /**
   * @param places a power of two
   * @param maxBytes the maximum length of a text that is cached, below 256
   */
  constructor(places: number, maxBytes: number) {
    this.#mask = places - 1;
    this.#maxBytes = maxBytes;
    this.#bytes = new Uint8Array(places * maxBytes);
    this.#lengths = new Uint8Array(places);
    this.#values = new Int32Array(places).fill(-1);
  }

  /** Returns the number of a text; -1 if it is unknown. */
  get(bytes: Uint8Array, from: number, to: number): number {
    const length = to - from;
    if (length > this.#maxBytes) return -1;
    let hash = length;
    for (let index = from; index < to; index++) {
      hash = Math.imul(hash ^ (bytes[index] as number), 0x5bd1e995);
      hash ^= hash >>> 15;
    }
    const place = (hash ^ (hash >>> 13)) & this.#mask;
    this.#place = place;
    if (this.#lengths[place] !== length) return -1;
    const known = this.#bytes;
    const start = place * this.#maxBytes - from;
    for (let index = from; index < to; index++) {
      if (known[start + index] !== bytes[index]) return -1;
    }
    return this.#values[place] as number;
  }

  /** Sets the number of the text that `get` was just called with. */
  set(bytes: Uint8Array, from: number, to: number, value: number): void {
    if (to - from > this.#maxBytes) return;
    const place = this.#place;
    this.#bytes.set(bytes.subarray(from, to), place * this.#maxBytes);
    this.#lengths[place] = to - from;
    this.#values[place] = value;
  }

  clear(): void {
    this.#values.fill(-1);
  }
}
