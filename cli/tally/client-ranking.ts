import type { LogRequest } from "../logs/log-request.ts";
import { ownText } from "../logs/text-cache.ts";
import type { ClientHash } from "./client-hash.ts";
import { compare, FrequentTexts } from "./frequent-texts.ts";
import { RequestTexts } from "./request-texts.ts";

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

/** Whether a request got a response with a status below 400. An unknown status does not count. */
export function hasSucceeded({ status }: LogRequest): boolean {
  return status !== undefined && status >= 100 && status < 400;
}

/** Shortens a long name. The hash keeps apart names with the same start. */
function bounded(client: string, { high, low }: ClientHash): string {
  if (client.length <= MAX_CLIENT) return client;
  return `${client.slice(0, MAX_CLIENT - 20)}… (${high.toString(16)}${low.toString(16)})`;
}
