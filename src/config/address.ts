/** An IPv4 or IPv6 address. */
export class Address {
  /** 4 bytes for IPv4, 16 bytes for IPv6. */
  readonly bytes: readonly number[];
  #text: string | undefined;

  /** @param text the canonical notation, if it is known */
  constructor(bytes: readonly number[], text?: string) {
    this.bytes = bytes;
    this.#text = text;
  }

  kind(): "ipv4" | "ipv6" {
    return this.bytes.length === 4 ? "ipv4" : "ipv6";
  }

  /** Whether the first bits of both addresses are equal, and both have the same IP version. */
  startsWith(other: Address, bits: number): boolean {
    return (
      this.bytes.length === other.bytes.length &&
      this.bytes.every(
        (byte, index) => (byte ^ (other.bytes[index] ?? 0)) >> bitsAfter(index, bits) === 0,
      )
    );
  }

  /** Returns this address with zeros after its first bits. */
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
    this.#text ??=
      this.kind() === "ipv4" ? this.bytes.join(".") : canonicalIPv6(groupsOf(this.bytes).join(":"));
    return this.#text;
  }

  /** JSON contains the canonical notation. */
  toJSON(): string {
    return this.toString();
  }
}

/** Returns the number of bits of a byte that are not among the first bits of an address. */
function bitsAfter(index: number, bits: number): number {
  return Math.min(8, Math.max(0, (index + 1) * 8 - bits));
}

/** Returns the eight groups of an IPv6 address. */
function groupsOf(bytes: readonly number[]): string[] {
  const pairs = bytes.filter((_, index) => index % 2 === 0);
  return pairs.map((high, index) => (high * 256 + (bytes[index * 2 + 1] ?? 0)).toString(16));
}

/**
 * Parses an address. IPv4 must be four decimal numbers, because programs disagree about other
 * notations (`0x7f.1`, `0177.0.0.1`). IPv6 may be in any notation. A zone (`%eth0`) is ignored, because
 * it has a meaning on one machine only, and a client must not get a new counter by a zone.
 *
 * @returns undefined for anything else
 */
export function parseAddress(text: string): Address | undefined {
  return text.includes(":") ? parseIPv6(text) : parseIPv4(text);
}

/** The longest notation without a zone: six groups, and an IPv4 address at the end. */
const MAX_LENGTH = 45;
const ZONE = /^%[\da-z]+$/i;

function parseIPv4(text: string): Address | undefined {
  if (!/^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(text)) return undefined;
  const bytes = text.split(".").map(Number);
  const isValid = bytes.every((byte) => byte <= 255) && bytes.join(".") === text;
  return isValid ? new Address(bytes, text) : undefined;
}

function parseIPv6(given: string): Address | undefined {
  const zoneAt = given.indexOf("%");
  if (zoneAt !== -1 && !ZONE.test(given.slice(zoneAt))) return undefined;
  const text = zoneAt === -1 ? given : given.slice(0, zoneAt);
  // The URL parser ignores some characters, such as tabs, which no address contains.
  if (text.length > MAX_LENGTH || !/^[\da-f:.]+$/i.test(text)) return undefined;
  // The URL constructor would throw an error, which takes longer than all other work of this function.
  if (!URL.canParse(`http://[${text}]`)) return undefined;
  const canonical = canonicalIPv6(text);
  const [head = "", tail = ""] = canonical.split("::");
  const before = bytesOf(head);
  const after = bytesOf(tail);
  const zeros = new Array<number>(16 - before.length - after.length).fill(0);
  return new Address([...before, ...zeros, ...after], canonical);
}

/**
 * Returns the notation of RFC 5952. The URL parser of every runtime reads all notations of IPv6 and
 * writes this one. A package with a parser of its own would add 4 KB to each bundle after gzip.
 */
function canonicalIPv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}

/** Returns the bytes of a part of an address, such as `2001:db8`. */
function bytesOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
