import { Address, parseAddress } from "./address.ts";

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
  // NAT64: RFC 8215. Operators may choose the position in this network. This is the usual one.
  { network: networkOf("64:ff9b:1::", 48), at: 12 },
  // 6to4: RFC 3056
  { network: networkOf("2002::", 16), at: 2 },
];

/**
 * Teredo: RFC 4380. Teredo inverts every bit of the IPv4 address, so that routers do not translate
 * the address.
 */
const TEREDO = networkOf("2001::", 32);

function networkOf(address: string, prefix: number): Network {
  return [parseAddress(address) as Address, prefix];
}

/**
 * Returns the IPv4 address that is embedded in an IPv6 address: mapped, translated, NAT64, 6to4 or
 * Teredo. All other addresses are returned unchanged.
 */
export function unwrapIPv4(address: Address): Address {
  if (address.kind() === "ipv4") return address;
  if (contains(TEREDO, address)) {
    return new Address(address.bytes.slice(12).map((byte) => byte ^ 0xff));
  }
  const embedding = EMBEDDING.find(({ network }) => contains(network, address));
  return embedding ? new Address(address.bytes.slice(embedding.at, embedding.at + 4)) : address;
}

/**
 * Parses a network such as `"198.51.100.0/24"` or `"2001:db8::/32"`, or a single address.
 *
 * @returns undefined for anything else, for an address with a zone (`%eth0`), and for IPv4 that is
 *   embedded in IPv6. Weir compares such clients by their IPv4 address, so the network would contain
 *   no client.
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
