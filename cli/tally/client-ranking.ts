import type { LogRequest } from "../logs/log-request.ts";
import type { ClientHash } from "./client-hash.ts";
import { compare, detached, FrequentTexts } from "./frequent-texts.ts";

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

/** The maximum length of a method, in characters. */
const MAX_METHOD = 20;
/** The maximum length of a client's name, in characters. */
const MAX_CLIENT = 200;

/**
 * The clients with the most counted requests, such as denied ones, with a bounded number of entries.
 *
 * When there are twice as many entries as `size`, the half with the smaller counts is dropped. From then on, a new
 * client may have been dropped before, with at most the largest dropped count. So this count is added to its count
 * and to its error, as in the algorithm Space-Saving. The error is at most the number of counted requests / `size`.
 */
export class ClientRanking {
  readonly #size: number;
  readonly #entries = new Map<string, RankedClient>();
  #dropped = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Counts a request of a client. */
  add(client: string, hash: ClientHash, request: LogRequest): void {
    const name = bounded(client, hash);
    const entry = this.#entries.get(name) ?? this.#insert(detached(name), hash, request.at);
    entry.count++;
    if (hasSucceeded(request)) entry.succeeded++;
    if (request.at < entry.first) entry.first = request.at;
    if (request.at > entry.last) entry.last = request.at;
    entry.userAgents.add(request.userAgent ?? "");
    entry.paths.add(`${request.method.slice(0, MAX_METHOD)} ${pathOf(request.target)}`);
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

  #insert(client: string, { high, low }: ClientHash, at: number): RankedClient {
    if (this.#entries.size >= 2 * this.#size) this.#shrink();
    const dropped = this.#dropped;
    const entry: RankedClient = {
      client,
      high,
      low,
      count: dropped,
      error: dropped,
      succeeded: 0,
      first: at,
      last: at,
      userAgents: new FrequentTexts(),
      paths: new FrequentTexts(),
    };
    this.#entries.set(client, entry);
    return entry;
  }

  #shrink(): void {
    const dropped = this.#sorted().slice(this.#size);
    this.#dropped = Math.max(this.#dropped, dropped[0]?.count ?? 0);
    for (const { client } of dropped) this.#entries.delete(client);
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

/** Returns the path of a target without its query, which may contain credentials. */
function pathOf(target: string): string {
  const end = target.search(/[?#;]/);
  return end === -1 ? target : target.slice(0, end);
}
