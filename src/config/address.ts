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
    if (this.bytes.length !== other.bytes.length) return false;
    // This is a loop, because calling a function for each group takes long for thousands of
    // addresses.
    for (let index = 0; index * 8 < bits; index++) {
      const difference = (this.bytes[index] ?? 0) ^ (other.bytes[index] ?? 0);
      if (difference >> bitsAfter(index, bits) !== 0) return false;
    }
    return true;
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
const GROUP = /^[\da-f]{1,4}$/i;

function parseIPv4(text: string): Address | undefined {
  const bytes = bytesOfIPv4(text);
  return bytes && new Address(bytes, text);
}

/**
 * Parses an IPv4 address. The function reads one digit at a time, which is fast, because a
 * configuration may contain thousands of addresses.
 */
function bytesOfIPv4(text: string): number[] | undefined {
  const bytes: number[] = [];
  let byte = -1;
  for (let index = 0; index <= text.length; index++) {
    const digit = text.charCodeAt(index) - 0x30;
    if (digit >= 0 && digit <= 9) {
      // A number with a leading zero is refused, because some programs read it as octal.
      if (byte === 0) return undefined;
      byte = Math.max(byte, 0) * 10 + digit;
      if (byte > 255) return undefined;
    } else {
      if (byte === -1 || bytes.length === 4) return undefined;
      if (index < text.length && text[index] !== ".") return undefined;
      bytes.push(byte);
      byte = -1;
    }
  }
  return bytes.length === 4 ? bytes : undefined;
}

/**
 * Parses an IPv6 address. The URL parser would take several microseconds for an address, and a
 * package would add 4 KB to each bundle after gzip.
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
 * @param isEnd whether the part is the end of the address, which may be an IPv4 address
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

/**
 * Returns the notation of RFC 5952. The URL parser of every runtime reads all notations of IPv6 and
 * writes this one.
 */
function canonicalIPv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}
