import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** An address, and the number of its leading bits that identify the network. */
export type Network = readonly [Address, number];

/**
 * Parses an address. IPv4 must be four decimal numbers, because programs disagree about other notations
 * (`0x7f.1`, `0177.0.0.1`). IPv6 may be in any notation.
 *
 * @returns undefined for anything else. An IPv4 address that is embedded in an IPv6 address is returned as
 *   IPv6: see {@link unwrapIPv4}
 */
export function parseAddress(text: string): Address | undefined {
  // If ipaddr.js tries to read IPv6 as IPv4, it throws and catches an exception. That takes five
  // times as long as all other work of this function, so the function looks for a colon first.
  if (text.includes(":")) return ipaddr.IPv6.isValid(text) ? ipaddr.IPv6.parse(text) : undefined;
  return ipaddr.IPv4.isValidFourPartDecimal(text) ? ipaddr.IPv4.parse(text) : undefined;
}

/**
 * Returns the IPv4 address that is embedded in an IPv6 address. The IPv6 address may be mapped (RFC
 * 4291), translated (RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056) or Teredo (RFC 4380).
 * All other addresses are returned unchanged. In the network of RFC 8215, operators may choose the
 * position of the IPv4 address. This function assumes the usual position, at the end.
 */
export function unwrapIPv4(address: Address): Address {
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
 * @returns undefined for anything else, and for IPv4 that is embedded in IPv6. Weir compares such
 *   clients by their IPv4 address, so the network would contain no client.
 */
export function parseNetwork(text: string): Network | undefined {
  const isIPv6 = text.includes(":");
  const cidr = text.includes("/") ? text : `${text}/${isIPv6 ? 128 : 32}`;
  const isValid = isIPv6
    ? // `%` begins a zone. Zones are refused, because they have a meaning on one machine only.
      ipaddr.IPv6.isValidCIDR(cidr) && !cidr.includes("%")
    : ipaddr.IPv4.isValidCIDRFourPartDecimal(cidr);
  if (!isValid) return undefined;
  const [address, prefix] = ipaddr.parseCIDR(cidr);
  return unwrapIPv4(address) === address ? [address, prefix] : undefined;
}

/** Whether a network contains an address. A network contains only addresses of its own IP version. */
export function contains([network, prefix]: Network, address: Address): boolean {
  return address.kind() === network.kind() && address.match(network, prefix);
}
