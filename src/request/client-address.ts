import ipaddr from "ipaddr.js";

/**
 * The address that Cloudflare gives to requests which Workers of other zones make. It stands for
 * all of them, so the zone, which Cloudflare puts into CF-Worker, is counted instead.
 * https://developers.cloudflare.com/fundamentals/reference/http-headers/#cf-connecting-ip
 */
const WORKERS_ADDRESS = "2a06:98c0:3600::103";

/**
 * Who the client is, by CF-Connecting-IP alone: every other header that claims an address can be
 * forged. An IPv4 address in any of its IPv6 disguises is that IPv4 address; any other IPv6
 * address is its network, because one client has a whole one to choose from.
 *
 * @param ipv6Prefix bits of an IPv6 address that tell clients apart
 * @returns `203.0.113.7`, `2001:db8::/64`, `worker:ZONE`, or `unknown`, one client for all, where
 *   the request did not come through Cloudflare
 */
export function clientAddress(headers: Headers, ipv6Prefix: number): string {
  const text = headers.get("cf-connecting-ip")?.trim();
  if (!text) return "unknown";
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return text;
  if (!ipaddr.IPv6.isValid(text)) return "unknown";
  const address = ipaddr.IPv6.parse(text);
  const zone = headers.get("cf-worker");
  if (zone && address.toString() === WORKERS_ADDRESS) return `worker:${zone.toLowerCase()}`;
  const bytes = address.toByteArray();
  const embedded = embeddedIPv4(address, bytes);
  return embedded ? embedded.join(".") : `${network(bytes, ipv6Prefix)}/${ipv6Prefix}`;
}

/** The IPv4 address within a mapped (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056) address. */
function embeddedIPv4(address: ipaddr.IPv6, bytes: number[]): number[] | undefined {
  switch (address.range()) {
    case "ipv4Mapped":
    case "rfc6052":
      return bytes.slice(12);
    case "6to4":
      return bytes.slice(2, 6);
    default:
      return undefined;
  }
}

function network(bytes: number[], prefix: number): string {
  const masked = bytes.map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - index * 8));
    return byte & (0xff << (8 - kept));
  });
  return new ipaddr.IPv6(masked).toString();
}
