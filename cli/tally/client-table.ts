import type { ClientHash } from "./client-hash.ts";

/** The maximum number of clients whose counts are exact, and the size of the table in memory: 3 MB with one column. */
const MAX_CLIENTS = 131_072;
const FIRST_PLACES = 1024;
/** The cells of a place that have the hash. A free place has 0 in the first one. */
const HASH_CELLS = 2;

type Hash = Pick<ClientHash, "high" | "low">;

/**
 * Counts of clients, in bounded memory.
 *
 * While there are at most `maxClients` clients, all counts are exact. Then the table keeps only those clients whose
 * hash ends in a zero bit, later in two zero bits, and so on (adaptive sampling: Flajolet, 1990). A kept client has
 * been counted from its first request on, so its counts stay exact, and the number of all clients is estimated as
 * the number of kept clients × 2^bits. At least a third of `maxClients` are kept, so the standard error of an
 * estimate of all clients is below 1 / √(maxClients / 3): 0.5 % for the default.
 *
 * Pinned clients are kept too, without being part of the estimates.
 */
export class ClientTable {
  /** Up to this number of clients, all counts are exact. */
  readonly maxClients: number;
  readonly #pinned: () => Iterable<Hash>;
  /** The number of cells of a place: the two halves of the hash, and the counts. */
  readonly #stride: number;
  /** All places. One array needs fewer accesses to slow memory than one for each column. */
  #cells: Uint32Array<ArrayBuffer>;
  #places = FIRST_PLACES;
  #size = 0;
  /** The bits of `low` that are 0 in all sampled clients. */
  #bits = 0;

  /**
   * @param columns how many counts each client has
   * @param pinned the clients that must be kept, at most a quarter of `maxClients`
   */
  constructor(columns: number, pinned: () => Iterable<Hash> = () => [], maxClients = MAX_CLIENTS) {
    this.#stride = HASH_CELLS + columns;
    this.#cells = new Uint32Array(FIRST_PLACES * this.#stride);
    this.#pinned = pinned;
    this.maxClients = maxClients;
  }

  /** Whether numbers of clients are estimates. */
  get isEstimate(): boolean {
    return this.#bits !== 0;
  }

  /** Adds to a count of a client. */
  increment(hash: Hash, column: number, by = 1): void {
    let place = this.#placeOf(hash.high, hash.low);
    if (this.#cells[place] === 0) {
      if (!this.#isSampled(hash.low)) return;
      place = this.#insert(hash, place);
      if (place === -1) return;
    }
    const cell = place + HASH_CELLS + column;
    this.#cells[cell] = (this.#cells[cell] as number) + by;
  }

  /** Counts a client from now on, even if it is not part of the sample. `pinned` must contain it. */
  pin(hash: Hash): void {
    const place = this.#placeOf(hash.high, hash.low);
    if (this.#cells[place] === 0) this.#insert(hash, place);
  }

  /** Returns a count of a client; 0 if the client is not kept. */
  countOf({ high, low }: Hash, column: number): number {
    return this.#cells[this.#placeOf(high, low) + HASH_CELLS + column] as number;
  }

  /** Returns the number of clients for whose counts a condition holds, or an estimate of it. */
  clients(holds: (...counts: number[]) => boolean = () => true): number {
    let clients = 0;
    for (const place of this.#sample()) {
      const counts = this.#cells.subarray(place + HASH_CELLS, place + this.#stride);
      if (holds(...counts)) clients++;
    }
    return clients * (this.#bits + 1);
  }

  #isSampled(low: number): boolean {
    return (low & this.#bits) === 0;
  }

  /** Yields the places of all sampled clients. */
  *#sample(): Generator<number> {
    for (let place = 0; place < this.#cells.length; place += this.#stride) {
      if (this.#cells[place] !== 0 && this.#isSampled(this.#cells[place + 1] as number)) {
        yield place;
      }
    }
  }

  /** Returns the first cell of a client's place, or of the free place where the client would be. */
  #placeOf(high: number, low: number): number {
    const cells = this.#cells;
    const stride = this.#stride;
    const last = this.#places - 1;
    let index = high & last;
    let place = index * stride;
    while (cells[place] !== 0 && (cells[place] !== high || cells[place + 1] !== low)) {
      index = (index + 1) & last;
      place = index * stride;
    }
    return place;
  }

  /** @returns the place of the client; -1 if it has become one of those that are not kept */
  #insert(hash: Hash, place: number): number {
    let free = place;
    if (this.#size === this.maxClients) {
      this.#shrink();
      if (!this.#isSampled(hash.low) && !isIn(this.#pinned(), hash)) return -1;
      free = this.#placeOf(hash.high, hash.low);
    } else if (this.#size * 2 >= this.#places) {
      this.#rebuild(this.#places * 2);
      free = this.#placeOf(hash.high, hash.low);
    }
    this.#cells[free] = hash.high;
    this.#cells[free + 1] = hash.low;
    this.#size++;
    return free;
  }

  /** Drops clients that are no longer pinned and, if most of the table is sample, half of the sample. */
  #shrink(): void {
    while ([...this.#sample()].length > this.maxClients / 1.5) this.#bits = this.#bits * 2 + 1;
    this.#rebuild(this.#places);
  }

  #rebuild(places: number): void {
    const before = this.#cells;
    const moved = [...this.#sample(), ...this.#pinnedPlaces()];
    this.#places = places;
    this.#cells = new Uint32Array(places * this.#stride);
    this.#size = moved.length;
    for (const from of moved) {
      const place = this.#placeOf(before[from] as number, before[from + 1] as number);
      this.#cells.set(before.subarray(from, from + this.#stride), place);
    }
  }

  /** The places of pinned clients that are not part of the sample. */
  #pinnedPlaces(): Set<number> {
    const places = [...this.#pinned()]
      .filter(({ low }) => !this.#isSampled(low))
      .map(({ high, low }) => this.#placeOf(high, low));
    return new Set(places.filter((place) => this.#cells[place] !== 0));
  }
}

function isIn(hashes: Iterable<Hash>, { high, low }: Hash): boolean {
  for (const each of hashes) if (each.high === high && each.low === low) return true;
  return false;
}
