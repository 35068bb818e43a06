import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and how many of its leading bits identify the network. */
export type Network = readonly [Address, number];

/**
 * Parses an address. IPv4 must be four decimal numbers, because programs disagree about other notations
 * (`0x7f.1`, `0177.0.0.1`). IPv6 may be in any notation.
 *
 * @returns undefined for anything else. An IPv4 address that is embedded in an IPv6 address is returned as
 *   IPv6: see {@link undisguised}
 */
export function parseAddress(text: string): Address | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
}

/**
 * The IPv4 address that is embedded in a mapped (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052,
 * RFC 8215), 6to4 (RFC 3056) or Teredo (RFC 4380) address; any other address unchanged. Operators may
 * divide the network of RFC 8215 as they like; this assumes the usual form, with the IPv4 address at the end.
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
      // Teredo inverts every bit of the address, so that routers do not translate it.
      return new ipaddr.IPv4(bytes.slice(12).map((byte) => byte ^ 0xff));
    default:
      return address;
  }
}

/**
 * Parses a network such as `"198.51.100.0/24"` or `"2001:db8::/32"`, or a single address.
 *
 * @returns undefined for anything else, and for IPv4 that is embedded in IPv6: clients are compared by
 *   their IPv4 address, so such a network would contain none
 */
export function parseNetwork(text: string): Network | undefined {
  const [, written = "", bits] = /^([^/%\s]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const address = parseAddress(written);
  if (!address || undisguised(address) !== address) return undefined;
  const length = address.kind() === "ipv4" ? 32 : 128;
  const prefix = bits === undefined ? length : Number(bits);
  return prefix <= length ? [address, prefix] : undefined;
}

/** Whether a network contains an address. A network contains only addresses of its own IP version. */
export function holds([network, prefix]: Network, address: Address): boolean {
  if (network instanceof ipaddr.IPv4) {
    return address instanceof ipaddr.IPv4 && address.match(network, prefix);
  }
  return address instanceof ipaddr.IPv6 && address.match(network, prefix);
}
