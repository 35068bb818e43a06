import type { ClientHash } from "./client-hash.ts";

/** The maximum number of clients whose counts are exact, and the size of the table in memory: 3 MB with one column. */
const MAX_CLIENTS = 131_072;
const FIRST_PLACES = 1024;

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
  readonly #maxClients: number;
  readonly #pinned: () => Iterable<Hash>;
  #highs = new Uint32Array(FIRST_PLACES);
  #lows = new Uint32Array(FIRST_PLACES);
  #columns: Uint32Array<ArrayBuffer>[];
  #size = 0;
  /** The bits of `low` that are 0 in all sampled clients. */
  #bits = 0;

  /**
   * @param columns how many counts each client has
   * @param pinned the clients that must be kept, at most a quarter of `maxClients`
   */
  constructor(columns: number, pinned: () => Iterable<Hash> = () => [], maxClients = MAX_CLIENTS) {
    this.#columns = Array.from({ length: columns }, () => new Uint32Array(FIRST_PLACES));
    this.#pinned = pinned;
    this.#maxClients = maxClients;
  }

  /** Whether numbers of clients are estimates. */
  get isEstimate(): boolean {
    return this.#bits !== 0;
  }

  /** Adds 1 to a count of a client. */
  increment(hash: Hash, column: number): void {
    let place = this.#placeOf(hash);
    if (this.#highs[place] === 0) {
      if (!this.#isSampled(hash.low)) return;
      place = this.#insert(hash, place);
      if (place === -1) return;
    }
    const counts = this.#columns[column] as Uint32Array;
    counts[place] = (counts[place] as number) + 1;
  }

  /** Counts a client from now on, even if it is not part of the sample. `pinned` must contain it. */
  pin(hash: Hash): void {
    const place = this.#placeOf(hash);
    if (this.#highs[place] === 0) this.#insert(hash, place);
  }

  /** Returns a count of a client; 0 if the client is not kept. */
  countOf(hash: Hash, column: number): number {
    const place = this.#placeOf(hash);
    return this.#highs[place] === 0 ? 0 : (this.#columns[column]?.[place] ?? 0);
  }

  /** Returns the number of clients for whose counts a condition holds, or an estimate of it. */
  clients(holds: (...counts: number[]) => boolean = () => true): number {
    let clients = 0;
    for (let place = 0; place < this.#highs.length; place++) {
      if (this.#highs[place] === 0 || !this.#isSampled(this.#lows[place] as number)) continue;
      if (holds(...this.#columns.map((counts) => counts[place] as number))) clients++;
    }
    return clients * (this.#bits + 1);
  }

  #isSampled(low: number): boolean {
    return (low & this.#bits) === 0;
  }

  /** Returns the place of a client, or the free place where it would be. */
  #placeOf({ high, low }: Hash): number {
    const highs = this.#highs;
    const last = highs.length - 1;
    let place = high & last;
    while (highs[place] !== 0 && (highs[place] !== high || this.#lows[place] !== low)) {
      place = (place + 1) & last;
    }
    return place;
  }

  /** @returns the place of the client; -1 if it has become one of those that are not kept */
  #insert(hash: Hash, place: number): number {
    let free = place;
    if (this.#size === this.#maxClients) {
      this.#shrink();
      if (!this.#isSampled(hash.low) && !isIn(this.#pinned(), hash)) return -1;
      free = this.#placeOf(hash);
    } else if (this.#size * 2 >= this.#highs.length) {
      this.#rebuild(this.#highs.length * 2);
      free = this.#placeOf(hash);
    }
    this.#highs[free] = hash.high;
    this.#lows[free] = hash.low;
    this.#size++;
    return free;
  }

  /** Drops clients that are no longer pinned, and if they are few, the half of the sample. */
  #shrink(): void {
    while (this.#sampleSize() > this.#maxClients / 1.5) this.#bits = this.#bits * 2 + 1;
    this.#rebuild(this.#highs.length);
  }

  #sampleSize(): number {
    return this.#highs.reduce(
      (size, high, place) =>
        high !== 0 && this.#isSampled(this.#lows[place] as number) ? size + 1 : size,
      0,
    );
  }

  #rebuild(places: number): void {
    const [highs, lows, columns] = [this.#highs, this.#lows, this.#columns];
    const kept = [...this.#pinned()]
      .map((hash) => ({ hash, place: this.#placeOf(hash) }))
      .filter(({ hash, place }) => highs[place] !== 0 && !this.#isSampled(hash.low));
    this.#highs = new Uint32Array(places);
    this.#lows = new Uint32Array(places);
    this.#columns = columns.map(() => new Uint32Array(places));
    this.#size = 0;
    const move = (high: number, low: number, from: number) => {
      const place = this.#placeOf({ high, low });
      if (this.#highs[place] !== 0) return;
      this.#highs[place] = high;
      this.#lows[place] = low;
      for (const [column, counts] of columns.entries()) {
        (this.#columns[column] as Uint32Array)[place] = counts[from] as number;
      }
      this.#size++;
    };
    for (let from = 0; from < highs.length; from++) {
      const [high = 0, low = 0] = [highs[from], lows[from]];
      if (high !== 0 && this.#isSampled(low)) move(high, low, from);
    }
    for (const { hash, place } of kept) move(hash.high, hash.low, place);
  }
}

function isIn(hashes: Iterable<Hash>, { high, low }: Hash): boolean {
  for (const each of hashes) if (each.high === high && each.low === low) return true;
  return false;
}
