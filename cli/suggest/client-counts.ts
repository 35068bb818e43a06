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
