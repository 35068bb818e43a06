import * as v from "valibot";
import { faultText } from "./faults.ts";
import { checkListOf, placeIn } from "./fields.ts";

/** An IPv4 or IPv6 address. */
export class Address {
  /** 4 bytes for IPv4, 16 bytes for IPv6. */
  readonly bytes: readonly number[];
  #text: string | undefined;

  /** @param text the canonical notation, if known */
  constructor(bytes: readonly number[], text?: string) {
    this.bytes = bytes;
    this.#text = text;
  }

  kind(): "ipv4" | "ipv6" {
    return this.bytes.length === 4 ? "ipv4" : "ipv6";
  }

  /** Whether the first bits of both addresses are equal, and both have the same IP version. */
  startsWith(other: Address, bits: number): boolean {
    if (this.bytes.length !== other.bytes.length) return false;
    // A loop, because calling a function for each byte takes long for thousands of addresses.
    for (let index = 0; index * 8 < bits; index++) {
      const difference = (this.bytes[index] ?? 0) ^ (other.bytes[index] ?? 0);
      if (difference >> bitsAfter(index, bits) !== 0) return false;
    }
    return true;
  }

  /** Returns this address with zeros in place of all bits after the first ones. */
  masked(bits: number): Address {
    return new Address(
      this.bytes.map((byte, index) => {
        const zeros = bitsAfter(index, bits);
        return (byte >> zeros) << zeros;
      }),
    );
  }

  /** Returns the canonical notation: four decimal numbers, or the notation of RFC 5952. */
  toString(): string {
    // The URL parser of every runtime writes IPv6 in the notation of RFC 5952.
    this.#text ??=
      this.kind() === "ipv4"
        ? this.bytes.join(".")
        : new URL(`http://[${groupsOf(this.bytes).join(":")}]`).hostname.slice(1, -1);
    return this.#text;
  }

  /** JSON contains the canonical notation. */
  toJSON(): string {
    return this.toString();
  }
}

/** Returns the number of bits in a byte that come after the first bits of an address. */
function bitsAfter(index: number, bits: number): number {
  return Math.min(8, Math.max(0, (index + 1) * 8 - bits));
}

/** Returns the eight groups of an IPv6 address. */
function groupsOf(bytes: readonly number[]): string[] {
  const pairs = bytes.filter((_, index) => index % 2 === 0);
  return pairs.map((high, index) => (high * 256 + (bytes[index * 2 + 1] ?? 0)).toString(16));
}

/**
 * Parses an address. IPv4 must be four decimal numbers, because programs disagree about other notations (`0x7f.1`,
 * `0177.0.0.1`). IPv6 may be in any notation. A zone (`%eth0`) is ignored: it has a meaning on one machine only, and
 * must not give a client a new counter.
 *
 * @returns undefined for any other text
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(":") ? parseIPv6(text) : parseIPv4(text);
}

/** The longest notation without a zone: six groups, and an IPv4 address at the end. */
const MAX_LENGTH = 45;
const ZONE = /^%[\da-z]+$/i;
const GROUP = /^[\da-f]{1,4}$/i;

function parseIPv4(text: string): Address | undefined {
  const bytes = bytesOfIPv4(text);
  return bytes && new Address(bytes, text);
}

// A number with a leading zero is refused, because some programs read it as octal.
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

function bytesOfIPv4(text: string): number[] | undefined {
  return IPV4.test(text) ? text.split(".").map(Number) : undefined;
}

/**
 * Parses an IPv6 address. The URL parser would take several microseconds. A package would add 4 KB to each bundle
 * after gzip.
 */
function parseIPv6(given: string): Address | undefined {
  const zoneAt = given.indexOf("%");
  if (zoneAt !== -1 && !ZONE.test(given.slice(zoneAt))) return undefined;
  const text = zoneAt === -1 ? given : given.slice(0, zoneAt);
  if (text.length > MAX_LENGTH) return undefined;
  const [head = "", tail, third] = text.split("::", 3);
  if (third !== undefined) return undefined;
  const before = bytesOf(head, tail === undefined);
  const after = tail === undefined ? [] : bytesOf(tail, true);
  if (!before || !after) return undefined;
  const missing = 16 - before.length - after.length;
  // `::` stands for at least one group.
  if (tail === undefined ? missing !== 0 : missing < 2) return undefined;
  return new Address([...before, ...new Array<number>(missing).fill(0), ...after]);
}

/**
 * Returns the bytes of a part of an address, such as `2001:db8`.
 *
 * @param isEnd whether the part is the end of the address, so that it may be an IPv4 address
 */
function bytesOf(part: string, isEnd: boolean): number[] | undefined {
  const bytes: number[] = [];
  if (part === "") return bytes;
  const groups = part.split(":");
  const last = isEnd ? bytesOfIPv4(groups.at(-1) ?? "") : undefined;
  if (last) groups.pop();
  for (const group of groups) {
    if (!GROUP.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    bytes.push(value >> 8, value & 0xff);
  }
  if (last) bytes.push(...last);
  return bytes;
}

/** An address, and the number of its leading bits that identify the network. */
export type Network = readonly [Address, number];

/** The networks whose IPv6 addresses contain an IPv4 address, and the position of its first byte. */
const EMBEDDING: readonly { readonly network: Network; readonly at: number }[] = [
  // Mapped: RFC 4291
  { network: networkOf("::ffff:0:0", 96), at: 12 },
  // Translated: RFC 2765
  { network: networkOf("::ffff:0:0:0", 96), at: 12 },
  // NAT64: RFC 6052
  { network: networkOf("64:ff9b::", 96), at: 12 },
  // NAT64: RFC 8215. Operators may choose the position in this network. This position is the usual one.
  { network: networkOf("64:ff9b:1::", 48), at: 12 },
  // 6to4: RFC 3056
  { network: networkOf("2002::", 16), at: 2 },
];

/** IPv4-compatible: RFC 4291. An address whose IPv4 address begins with 0 is none, such as `::` and `::1`. */
const COMPATIBLE = networkOf("::", 96);

/** Teredo: RFC 4380. It inverts every bit of the IPv4 address, so that routers do not translate the address. */
const TEREDO = networkOf("2001::", 32);

function networkOf(address: string, prefix: number): Network {
  return [parseAddress(address) as Address, prefix];
}

/**
 * Returns the IPv4 address inside an IPv6 address: mapped, compatible, translated, NAT64, 6to4 or Teredo. Returns any
 * other address unchanged.
 */
export function unwrapIPv4(address: Address): Address {
  if (address.kind() === "ipv4") return address;
  if (contains(TEREDO, address)) {
    return new Address(address.bytes.slice(12).map((byte) => byte ^ 0xff));
  }
  if (contains(COMPATIBLE, address) && address.bytes[12] !== 0) {
    return new Address(address.bytes.slice(12));
  }
  const embedding = EMBEDDING.find(({ network }) => contains(network, address));
  return embedding ? new Address(address.bytes.slice(embedding.at, embedding.at + 4)) : address;
}

/**
 * Parses a network such as `"198.51.100.0/24"` or `"2001:db8::/32"`, or a single address.
 *
 * @returns undefined for any other text, and for an address with a zone (`%eth0`). Also undefined for IPv4 inside
 * IPv6: Weir compares such clients by their IPv4 address, so the network would contain no client
 */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf("/");
  const address = text.includes("%")
    ? undefined
    : parseAddress(text.slice(0, slash < 0 ? undefined : slash));
  if (!address) return undefined;
  const bits = address.bytes.length * 8;
  const digits = text.slice(slash + 1);
  if (slash !== -1 && !/^(0|[1-9]\d{0,2})$/.test(digits)) return undefined;
  const prefix = slash === -1 ? bits : Number(digits);
  return prefix <= bits && unwrapIPv4(address) === address ? [address, prefix] : undefined;
}

/** Whether a network contains an address. A network contains only addresses of its own IP version. */
export function contains([network, prefix]: Network, address: Address): boolean {
  return address.startsWith(network, prefix);
}

const NETWORK = faultText(
  'an address or a network, such as "198.51.100.0/24" or "2001:db8::/32"; IPv4 in its own notation, not as IPv6',
);
const NETWORKS = faultText(() => `a list of one or more: ${NETWORK}`);

/**
 * The maximum number of networks in one list. The Worker reads the list while it starts, for which Cloudflare allows
 * one second of CPU time.
 */
export const MAX_NETWORKS = 50_000;

/**
 * A set of networks. Stores each network as a text, and looks an address up once for each prefix length in the set.
 */
export class NetworkSet {
  readonly #texts: readonly string[];
  readonly #keys: ReadonlySet<string>;
  /** The distinct lengths of prefixes, by the number of bytes of an address: 4 or 16. */
  readonly #lengths: ReadonlyMap<number, readonly number[]>;

  /** @param texts the networks as the user wrote them, for messages */
  constructor(texts: readonly string[], networks: readonly Network[]) {
    this.#texts = texts;
    this.#keys = new Set(networks.map(([address, bits]) => keyOf(address, bits)));
    const lengthsOf = (size: number) =>
      networks.flatMap(([{ bytes }, bits]) => (bytes.length === size ? [bits] : []));
    this.#lengths = new Map([4, 16].map((size) => [size, [...new Set(lengthsOf(size))]]));
  }

  /** The number of networks that the user wrote. */
  get size(): number {
    return this.#texts.length;
  }

  contains(address: Address): boolean {
    const lengths = this.#lengths.get(address.bytes.length) as readonly number[];
    return lengths.some((bits) => this.#keys.has(keyOf(address, bits)));
  }

  /** Yields the networks in the user's order. */
  *[Symbol.iterator](): Generator<Network> {
    for (const text of this.#texts) yield parseNetwork(text) as Network;
  }

  /** JSON contains the networks in the user's order. */
  toJSON(): Network[] {
    return [...this];
  }
}

/** Returns a text for the network of an address: its IP version, its first bits, and their number. */
function keyOf(address: Address, bits: number): string {
  const { bytes } = address.masked(bits);
  return String.fromCharCode(bytes.length, ...bytes, bits);
}

/**
 * Returns the schema of a list of networks. Reads all elements in one pass, because Valibot's schema of a list takes
 * several times as long, and a list may have thousands of elements.
 */
export function networks() {
  return v.pipe(
    v.custom<readonly string[]>((value) => Array.isArray(value) && value.length > 0, NETWORKS),
    checkListOf((list, refuse) => {
      if (list.length > MAX_NETWORKS) {
        refuse(
          "too-many",
          faultText(() => `at most ${MAX_NETWORKS} items`),
        );
      }
    }),
    v.rawTransform<readonly string[], NetworkSet>(({ dataset, addIssue, NEVER }) => {
      const texts = dataset.value as string[];
      const parsed: Network[] = [];
      for (const [index, text] of texts.entries()) {
        const network = typeof text === "string" ? parseNetwork(text) : undefined;
        if (network) parsed.push(network);
        else addIssue({ ...placeIn(texts, [index]), message: NETWORK });
      }
      return parsed.length === texts.length ? new NetworkSet([...texts], parsed) : NEVER;
    }),
  );
}

/**
 * Returns a function that finds the value for a canonical host: the value of the host itself, or of the longest `*.`
 * name that matches the host.
 *
 * @param byHost the values by hosts in the form of `parseHost`
 */
export function hostLookup<T>(byHost: ReadonlyMap<string, T>): (host: string) => T | undefined {
  // A client can send a host with many dots. So an ending of the host is looked up only if it has at most as many
  // dots as a configured host.
  const maxDots = Math.max(0, ...[...byHost.keys()].map((host) => host.split(".").length - 1));
  return (host) => {
    let found = byHost.get(host);
    if (found !== undefined) return found;
    let dot = host.length;
    for (let dots = 1; dots <= maxDots && dot > 0; dots++) {
      dot = host.lastIndexOf(".", dot - 1);
      if (dot === -1) break;
      found = byHost.get(`*${host.slice(dot)}`) ?? found;
    }
    return found;
  };
}
