import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address and how many of its leading bits count. */
export type Network = readonly [Address, number];

/**
 * Reads an address in the notations that a proxy may write it in: IPv4 as four decimal numbers,
 * since other ways to write one (`0x7f.1`, `0177.0.0.1`) are read differently by different
 * programs; IPv6 in any.
 *
 * @returns undefined for anything else. An IPv4 address in an IPv6 disguise is returned as
 *   written: see {@link undisguised}
 */
export function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

/**
 * The IPv4 address within a mapped (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052, RFC 8215),
 * 6to4 (RFC 3056) or Teredo (RFC 4380) address. RFC 8215's network is each user's own to divide, so
 * it is taken as in its most usual use, with the IPv4 address at the end.
 */
export function undisguised(address: Address): Address {
  const bytes = address.toByteArray();
  switch (address.range()) {
    case "ipv4Mapped":
    case "rfc6145":
    case "rfc6052":
      return new ipaddr.IPv4(bytes.slice(12));
    case "6to4":
      return new ipaddr.IPv4(bytes.slice(2, 6));
    case "teredo":
      // Written with every bit turned, so that no careless router translates it.
      return new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff));
    default:
      return address;
  }
}

/**
 * Reads `"198.51.100.0/24"`, `"2001:db8::/32"`, or a single address.
 *
 * @returns undefined for anything else, and for IPv4 written as IPv6: clients are compared by
 *   their IPv4 address, which such a network would never hold
 */
export function parseNetwork(text: string): Network | undefined {
  const [, written = "", bits] = /^([^/%\s]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(written);
  if (!address || undisguised(address) !== address) return undefined;
  const length = address.kind() === "ipv4" ? 32 : 128;
  const prefix = bits === undefined ? length : Number(bits);
  return prefix <= length ? [address, prefix] : undefined;
}

/** Whether a network holds an address. An IPv4 network holds no IPv6 address, nor the reverse. */
export function holds([network, prefix]: Network, address: Address): boolean {
  if (network instanceof ipaddr.IPv4) {
    return address instanceof ipaddr.IPv4 && address.match(network, prefix);
  }
  return address instanceof ipaddr.IPv6 && address.match(network, prefix);
}
