import { clientAddress } from "../../../src/request/client-address.ts";
import { clientIp } from "../../logs/client-ip.ts";
import { ClientHash } from "../../tally/client-hash.ts";
import { clientText } from "../client-text.ts";
import { ByteCache } from "./byte-cache.ts";
import { ClientCounters, type IsLive } from "./client-counters.ts";
import { IPv4Table, ipv4Bits, ipv4Text } from "./ipv4-table.ts";

/** The number of clients from which those without live counters are removed. A power of two. */
const FIRST_CAPACITY = 65_536;
/** The number of cached texts of addresses that are not IPv4, and their maximum length. They take 2 MB. */
const CACHED_ADDRESSES = 32_768;
const MAX_CACHED_LENGTH = 48;
/** The cells of a client: the two halves of the hash of its text, its number under rules, and its IPv4 address. */
const CELLS = 4;
const [HIGH, LOW, UNDER_RULES, IPV4] = [0, 1, 2, 3];

export interface ClientOptions {
  /** How many counters each client has. */
  readonly counters: number;
  readonly isLive: IsLive;
  /** The number of leading bits of an IPv6 address that distinguish clients. */
  readonly ipv6Prefix: number;
  /** A power of two. */
  readonly firstCapacity?: number | undefined;
}

/**
 * The clients of a replay, by numbers from 1. A client is an address, or the network of an IPv6 address: reports list
 * addresses, and rules count networks. A client has no object, and a text only if it is not IPv4 or was denied,
 * because a million clients must fit into memory.
 */
export class CompactClients {
  readonly counters: ClientCounters;
  readonly #ipv6Prefix: number;
  readonly #firstCapacity: number;
  #capacity: number;
  /** The number of the next client. */
  #next = 1;
  #cells: Uint32Array;
  #texts: (string | undefined)[];
  #ipv4: IPv4Table;
  readonly #byText = new Map<string, number>();
  readonly #byBytes = new ByteCache(CACHED_ADDRESSES, MAX_CACHED_LENGTH);
  readonly #hash = new ClientHash();

  constructor({ counters, isLive, ipv6Prefix, firstCapacity = FIRST_CAPACITY }: ClientOptions) {
    this.#ipv6Prefix = ipv6Prefix;
    this.#firstCapacity = firstCapacity;
    this.#capacity = firstCapacity;
    this.counters = new ClientCounters(counters, firstCapacity, isLive);
    this.#cells = new Uint32Array(firstCapacity * CELLS);
    this.#texts = new Array(firstCapacity).fill(undefined);
    this.#ipv4 = new IPv4Table(firstCapacity);
  }

  /** The number of clients in memory. */
  get size(): number {
    return this.#next - 1;
  }

  /** Whether there may be no space for one more address. An address may add a network too. */
  get isFull(): boolean {
    return this.#next + 2 > this.#capacity;
  }

  /** Returns the number of an IPv4 address, for which there must be space. */
  ofIPv4(address: number): number {
    const known = this.#ipv4.find(address);
    if (known !== 0) return known;
    const client = this.#add(ipv4Text(address), address);
    this.#ipv4.add(address, client);
    return client;
  }

  /** Returns the number of an address in its canonical notation, for which there must be space. */
  ofAddress(text: string): number {
    const known = this.#find(text);
    if (known !== undefined) return known;
    const client = this.#addText(text);
    const headers = new Map([["cf-connecting-ip", text]]);
    const get = (name: string) => headers.get(name) ?? null;
    const fields = { get, has: (name: string) => headers.has(name), keys: () => headers.keys() };
    const network = clientText({ kind: "ip" }, clientAddress(fields, this.#ipv6Prefix));
    const underRules = this.#find(network) ?? this.#addText(network);
    this.#cells[client * CELLS + UNDER_RULES] = underRules;
    return client;
  }

  /**
   * Returns the number of an address in any notation, for which there must be space; 0 if it is no address.
   *
   * @param bytes the bytes of which the address is a part
   */
  ofBytes(bytes: Buffer, from: number, to: number): number {
    const known = this.#byBytes.get(bytes, from, to);
    if (known !== -1) return known;
    const text = clientIp(bytes.toString("latin1", from, to));
    const client = text === undefined ? 0 : this.ofAddress(text);
    this.#byBytes.set(bytes, from, to, client);
    return client;
  }

  /** Returns the client that rules count for an address. */
  underRules(address: number): number {
    return this.#cells[address * CELLS + UNDER_RULES] as number;
  }

  /** Sets a hash to that of a client's text. */
  readHash(client: number, hash: ClientHash): void {
    hash.high = this.#cells[client * CELLS + HIGH] as number;
    hash.low = this.#cells[client * CELLS + LOW] as number;
  }

  text(client: number): string {
    const known = this.#texts[client];
    if (known !== undefined) return known;
    const text = ipv4Text(this.#cells[client * CELLS + IPV4] as number);
    this.#texts[client] = text;
    return text;
  }

  /**
   * Removes the clients without live counters. If few are removed, takes more memory.
   *
   * @param needed addresses that stay, because rows refer to them
   * @returns the new number of each client; 0 if it is removed
   */
  makeSpace(needed: Iterable<number>): Uint32Array {
    const renumbered = new Uint32Array(this.#next);
    for (let client = 1; client < this.#next; client++) {
      if (this.counters.hasLive(client)) renumbered[client] = 1;
    }
    for (const address of needed) {
      renumbered[address] = 1;
      renumbered[this.underRules(address)] = 1;
    }
    let next = 1;
    for (let client = 1; client < this.#next; client++) {
      if (renumbered[client] === 1) renumbered[client] = next++;
    }
    while (next * 2 > this.#capacity) this.#capacity *= 2;
    while (next * 8 < this.#capacity && this.#capacity > this.#firstCapacity) this.#capacity /= 2;
    this.#renumber(renumbered, next);
    return renumbered;
  }

  #renumber(renumbered: Uint32Array, next: number): void {
    const [cells, texts, before] = [this.#cells, this.#texts, this.#next];
    this.counters.renumber(renumbered, this.#capacity);
    this.#cells = new Uint32Array(this.#capacity * CELLS);
    this.#texts = new Array(this.#capacity).fill(undefined);
    this.#ipv4 = new IPv4Table(this.#capacity);
    this.#byText.clear();
    this.#byBytes.clear();
    this.#next = next;
    for (let client = 1; client < before; client++) {
      const moved = renumbered[client] as number;
      if (moved === 0) continue;
      this.#cells.set(cells.subarray(client * CELLS, (client + 1) * CELLS), moved * CELLS);
      const underRules = cells[client * CELLS + UNDER_RULES] as number;
      this.#cells[moved * CELLS + UNDER_RULES] = renumbered[underRules] as number;
      const text = texts[client];
      this.#texts[moved] = text;
      const ipv4 = cells[client * CELLS + IPV4] as number;
      if (text === undefined || ipv4Bits(text) !== undefined) this.#ipv4.add(ipv4, moved);
      else this.#byText.set(text, moved);
    }
  }

  #find(text: string): number | undefined {
    const address = ipv4Bits(text);
    return address === undefined ? this.#byText.get(text) : this.ofIPv4(address);
  }

  #addText(text: string): number {
    const client = this.#add(text, 0);
    this.#texts[client] = text;
    this.#byText.set(text, client);
    return client;
  }

  #add(text: string, ipv4: number): number {
    const client = this.#next++;
    const { high, low } = this.#hash.set(text);
    this.#cells.set([high, low, client, ipv4], client * CELLS);
    return client;
  }
}
