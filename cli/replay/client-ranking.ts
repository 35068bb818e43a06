import { compare, FrequentTexts, RequestTexts } from "../logs/frequent-texts.ts";
import { hasSucceeded, type LogRequest, ownText } from "../logs/log-request.ts";

/**
 * The 64-bit hash of a client's name, in two halves of 32 bits. The object is reused for every request, because a
 * log can have ten million of them.
 *
 * Among a million clients, two have the same hash with a probability of 1 in 37 million. The hash is not secret, so
 * a client who chooses its own name, such as an API key, can find two names with the same hash. It would then count
 * as one client.
 */
export class ClientHash {
  /** Never 0: a table uses 0 for a free place. */
  high = 1;
  low = 0;

  /** Computes the hash of a text. */
  set(text: string): this {
    let one = 0x9747b28c | 0;
    let two = 0x2f6a5c13;
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at);
      one = Math.imul(one ^ unit, 0xcc9e2d51);
      one = (one << 15) | (one >>> 17);
      two = Math.imul(two ^ unit, 0x85ebca6b);
      two = (two << 13) | (two >>> 19);
    }
    one = mixed(one ^ text.length);
    two = mixed(two ^ one);
    this.low = one >>> 0;
    this.high = two >>> 0 || 1;
    return this;
  }
}

/** The last step of MurmurHash3, after which each bit depends on all bits. */
function mixed(half: number): number {
  let value = Math.imul(half ^ (half >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return value ^ (value >>> 16);
}

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

/** A client of a ranking, with what is known about its counted requests. */
export interface RankedClient {
  readonly client: string;
  /** The hash of the client. */
  readonly high: number;
  readonly low: number;
  count: number;
  /** By how much `count` may be too high. The other fields may miss as many requests. */
  readonly error: number;
  /** Counted requests whose status is known and below 400. */
  succeeded: number;
  /** The times of the first and of the last counted request. */
  first: number;
  last: number;
  readonly userAgents: FrequentTexts;
  readonly paths: FrequentTexts;
}

/** The maximum length of a client's name, in characters. */
const MAX_CLIENT = 200;
/** The number of cells of the filter. Must be a power of two. */
const CELLS = 4096;

/**
 * The clients with the most counted requests, such as denied ones, with a bounded number of entries.
 *
 * When there are twice as many entries as `size`, the half with the smaller counts is dropped. From then on, a new
 * client may have been dropped before. So all clients without an entry are counted in a filter, by their hash. A
 * client gets an entry when the count of its cell is above the largest dropped count. Other clients may share the
 * cell, so its count is the error of the entry. The error is at most the number of counted requests / `size`. This
 * is the algorithm Filtered Space-Saving (Homem and Carvalho, 2010), with less work for a new client.
 */
export class ClientRanking {
  readonly #size: number;
  readonly #texts: RequestTexts;
  readonly #entries = new Map<string, RankedClient>();
  readonly #filter = new Uint32Array(CELLS);
  #dropped = 0;

  /**
   * @param size how many clients are kept at least
   * @param texts shared by rankings that count the same requests
   */
  constructor(size: number, texts = new RequestTexts()) {
    this.#size = size;
    this.#texts = texts;
  }

  /** Counts a request of a client. @returns whether the client has an entry */
  add(client: string, hash: ClientHash, request: LogRequest): boolean {
    const name = bounded(client, hash);
    const entry = this.#entries.get(name) ?? this.#admit(name, hash, request.at);
    if (entry === undefined) return false;
    const { userAgent, path } = this.#texts.read(request);
    entry.count++;
    if (hasSucceeded(request)) entry.succeeded++;
    if (request.at < entry.first) entry.first = request.at;
    if (request.at > entry.last) entry.last = request.at;
    entry.userAgents.add(userAgent);
    entry.paths.add(path);
    return true;
  }

  /** Returns the clients, the one with the most requests that were certainly counted first. */
  top(count: number): RankedClient[] {
    const certain = (client: RankedClient) => client.count - client.error;
    return this.#sorted()
      .sort((one, other) => certain(other) - certain(one))
      .slice(0, Math.min(count, this.#size));
  }

  /** Returns the entry of a client. */
  get(client: string): RankedClient | undefined {
    return this.#entries.get(client);
  }

  /** All entries, in no particular order. */
  entries(): Iterable<RankedClient> {
    return this.#entries.values();
  }

  /** Returns a new entry, or counts the request in the filter. */
  #admit(client: string, { high, low }: ClientHash, at: number): RankedClient | undefined {
    const cell = low & (CELLS - 1);
    const error = this.#filter[cell] as number;
    if (error < this.#dropped) {
      this.#filter[cell] = error + 1;
      return undefined;
    }
    if (this.#entries.size >= 2 * this.#size) this.#shrink();
    const entry: RankedClient = {
      client: ownText(client),
      high,
      low,
      count: error,
      error,
      succeeded: 0,
      first: at,
      last: at,
      userAgents: new FrequentTexts(),
      paths: new FrequentTexts(),
    };
    this.#entries.set(entry.client, entry);
    return entry;
  }

  #shrink(): void {
    for (const { client, low, count } of this.#sorted().slice(this.#size)) {
      const cell = low & (CELLS - 1);
      this.#filter[cell] = Math.max(this.#filter[cell] as number, count);
      this.#dropped = Math.max(this.#dropped, count);
      this.#entries.delete(client);
    }
  }

  #sorted(): RankedClient[] {
    return [...this.#entries.values()].sort(
      (one, other) => other.count - one.count || compare(one.client, other.client),
    );
  }
}

/** Shortens a long name. The hash keeps apart names with the same start. */
function bounded(client: string, { high, low }: ClientHash): string {
  if (client.length <= MAX_CLIENT) return client;
  return `${client.slice(0, MAX_CLIENT - 20)}… (${high.toString(16)}${low.toString(16)})`;
}
