import { clientAddress } from "../../../src/request/client-address.ts";
import { clientIp } from "../../logs/log-request.ts";
import { ClientHash } from "../../tally/client-ranking.ts";
import { clientText } from "../clients.ts";
import { ByteCache } from "./byte-cache.ts";
import { ClientRecords, type RecordSize } from "./client-records.ts";

/** Finds numbers of clients by their IPv4 addresses. */
class IPv4Table {
  /** Pairs of an address and its client, at a place that its hash determines. A free place has 0 as client. */
  readonly #pairs: Uint32Array;
  #place = 0;

  /** @param capacity the maximum number of addresses, a power of two */
  constructor(capacity: number) {
    this.#pairs = new Uint32Array(4 * capacity);
  }

  /** Returns the client of an address; 0 if it is unknown. */
  find(address: number): number {
    const pairs = this.#pairs;
    const last = pairs.length - 1;
    let place = hashOf(address) & last & ~1;
    let client = pairs[place + 1] as number;
    while (client !== 0 && pairs[place] !== address) {
      place = (place + 2) & last;
      client = pairs[place + 1] as number;
    }
    this.#place = place;
    return client;
  }

  /** Adds an address that is unknown. */
  add(address: number, client: number): void {
    this.find(address);
    this.#pairs[this.#place] = address;
    this.#pairs[this.#place + 1] = client;
  }
}

function hashOf(address: number): number {
  const mixed = Math.imul(address ^ (address >>> 15), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}

export function ipv4Text(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}

const IPV4 = /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/;

/** Returns the 32 bits of an IPv4 address in its canonical notation; undefined for any other text. */
function ipv4Bits(text: string): number | undefined {
  if (!IPV4.test(text)) return undefined;
  return text.split(".").reduce((bits, part) => bits * 256 + Number(part), 0);
}

/** The number of clients from which those without live counters are removed. A power of two. */
const FIRST_CAPACITY = 65_536;
/** The number of cached texts of addresses that are not IPv4, and their maximum length. They take 2 MB. */
const CACHED_ADDRESSES = 32_768;
const MAX_CACHED_LENGTH = 48;
interface ClientOptions {
  readonly size: RecordSize;
  /** Whether a counter in a window may still be needed. `index` is that among a client's counters. */
  readonly isLive: (index: number, window: number) => boolean;
  /** Called before a client is removed. */
  readonly onRemoval: (client: number) => void;
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
  /** How often a client was added, also one that was removed before. */
  added = 0;
  records: ClientRecords;
  readonly #options: ClientOptions;
  readonly #firstCapacity: number;
  #capacity: number;
  /** The number of the next client. */
  #next = 1;
  #texts: (string | undefined)[];
  #ipv4: IPv4Table;
  readonly #byText = new Map<string, number>();
  readonly #byBytes = new ByteCache(CACHED_ADDRESSES, MAX_CACHED_LENGTH);
  readonly #hash = new ClientHash();

  constructor(options: ClientOptions) {
    const { size, firstCapacity = FIRST_CAPACITY } = options;
    this.#options = options;
    this.#firstCapacity = firstCapacity;
    this.#capacity = firstCapacity;
    this.records = new ClientRecords(size, firstCapacity);
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
    const network = clientText({ kind: "ip" }, clientAddress(fields, this.#options.ipv6Prefix));
    const underRules = this.#find(network) ?? this.#addText(network);
    this.records.setUnderRules(client, underRules);
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

  text(client: number): string {
    const known = this.#texts[client];
    if (known !== undefined) return known;
    const text = ipv4Text(this.records.ipv4(client));
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
      if (this.#hasLiveCounter(client)) renumbered[client] = 1;
    }
    for (const address of needed) {
      renumbered[address] = 1;
      renumbered[this.records.underRules(address)] = 1;
    }
    let next = 1;
    for (let client = 1; client < this.#next; client++) {
      if (renumbered[client] === 1) renumbered[client] = next++;
      else this.#options.onRemoval(client);
    }
    while (next * 2 > this.#capacity) this.#capacity *= 2;
    while (next * 8 < this.#capacity && this.#capacity > this.#firstCapacity) this.#capacity /= 2;
    this.#renumber(renumbered, next);
    return renumbered;
  }

  #hasLiveCounter(client: number): boolean {
    const { size, isLive } = this.#options;
    for (let index = 0; index < size.windows; index++) {
      if (isLive(index, this.records.window(client, index))) return true;
    }
    return false;
  }

  #renumber(renumbered: Uint32Array, next: number): void {
    const [records, texts, before] = [this.records, this.#texts, this.#next];
    this.records = new ClientRecords(this.#options.size, this.#capacity);
    this.#texts = new Array(this.#capacity).fill(undefined);
    this.#ipv4 = new IPv4Table(this.#capacity);
    this.#byText.clear();
    this.#byBytes.clear();
    this.#next = next;
    for (let client = 1; client < before; client++) {
      const moved = renumbered[client] as number;
      if (moved === 0) continue;
      this.records.copy(moved, records, client);
      this.records.setUnderRules(moved, renumbered[records.underRules(client)] as number);
      const text = texts[client];
      this.#texts[moved] = text;
      if (text !== undefined && ipv4Bits(text) === undefined) this.#byText.set(text, moved);
      else this.#ipv4.add(records.ipv4(client), moved);
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
    this.added++;
    this.records.create(client, this.#hash.set(text), client, ipv4);
    return client;
  }
}
