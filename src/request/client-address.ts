import ipaddr from "ipaddr.js";
import { type Address, parseAddress, undisguised } from "../config/network.ts";
import { LruCache } from "./lru-cache.ts";
import { withoutFinal } from "./text-folding.ts";

/**
 * The address that Cloudflare gives to requests which Workers of other zones make. It stands for
 * all of them, so the zone, which Cloudflare puts into CF-Worker, is counted instead.
 * https://developers.cloudflare.com/fundamentals/reference/http-headers/#cf-connecting-ip
 */
const WORKERS_ADDRESS = "2a06:98c0:3600::103";

/**
 * Addresses as they are counted, by the text of CF-Connecting-IP and the prefix: parsing one takes
 * longer than everything else about a key. At most 1,024 short texts, less than 200 KB.
 */
const counted = new LruCache<string>(1024);
/** An IPv6 address with an IPv4 address at its end has 45 characters. */
const LONGEST_REMEMBERED = 45;

/** Who sent a request, as far as Cloudflare knows. */
export type Client =
  | { readonly kind: "address"; readonly address: Address }
  /** A Worker of another zone, all of which share one address; `zone` is empty when it is not told. */
  | { readonly kind: "worker"; readonly zone: string }
  /** The request did not come through Cloudflare. */
  | { readonly kind: "unknown" };

/**
 * Who the client is, by CF-Connecting-IP alone: every other header that claims an address can be
 * forged. An IPv4 address in any of its IPv6 disguises is that IPv4 address.
 */
export function clientOf(headers: Headers): Client {
  const written = parseAddress(headers.get("cf-connecting-ip")?.trim() ?? "");
  if (!written) return { kind: "unknown" };
  if (written.toString() === WORKERS_ADDRESS) {
    return { kind: "worker", zone: zoneOf(headers.get("cf-worker")) };
  }
  return { kind: "address", address: undisguised(written) };
}

/**
 * A client as it is counted: an IPv6 address is its network, because one client has a whole one to
 * choose from.
 *
 * @param ipv6Prefix bits of an IPv6 address that tell clients apart
 * @returns `203.0.113.7`, `2001:db8::/64`, `worker:ZONE`, or `unknown`, one client for all
 */
export function clientAddress(headers: Headers, ipv6Prefix: number): string {
  const text = headers.get("cf-connecting-ip") ?? "";
  const known = counted.get(`${ipv6Prefix}/${text}`);
  if (known !== undefined) return known;
  const client = clientOf(headers);
  switch (client.kind) {
    case "unknown":
      return "unknown";
    case "worker":
      return `worker:${client.zone}`;
    case "address": {
      const address = addressOf(client.address, ipv6Prefix);
      // Workers are not remembered: another field says whose they are.
      if (text.length <= LONGEST_REMEMBERED) counted.set(`${ipv6Prefix}/${text}`, address);
      return address;
    }
    default:
      return client satisfies never;
  }
}

function addressOf(address: Address, ipv6Prefix: number): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${network(address.toByteArray(), ipv6Prefix)}/${ipv6Prefix}`;
}

/** Two fields, as a Worker may try that sends one itself, leave open which is Cloudflare's. */
function zoneOf(field: string | null): string {
  const zone = withoutFinal(".", field?.trim().toLowerCase() ?? "");
  return /^[\w.-]*$/.test(zone) ? zone : "";
}

function network(bytes: number[], prefix: number): string {
  const masked = bytes.map((byte, index) => {
    const kept = Math.min(8, Math.max(0, prefix - index * 8));
    return byte & (0xff << (8 - kept));
  });
  return new ipaddr.IPv6(masked).toString();
}
