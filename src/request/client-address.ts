import ipaddr from "ipaddr.js";
import { type Address, parseAddress, unwrapIPv4 } from "../config/network.ts";
import { LruCache } from "./lru-cache.ts";
import { removeTrailing } from "./text-folding.ts";

/**
 * The address that Cloudflare gives to the requests of Workers of other zones. All these Workers share
 * it. They are counted by their zone instead, which Cloudflare writes into CF-Worker.
 * https://developers.cloudflare.com/fundamentals/reference/http-headers/#cf-connecting-ip
 */
const WORKERS_ADDRESS = "2a06:98c0:3600::103";

/**
 * Canonical addresses by the prefix length and the text of CF-Connecting-IP. Parsing an address takes
 * longer than the other work for a key. At most 1,024 short texts, less than 200 KB.
 */
const addresses = new LruCache<string>(1024);
/** An IPv6 address with an IPv4 address at its end has 45 characters. */
const MAX_CACHED_LENGTH = 45;

/** The sender of a request, as far as Cloudflare reports it. */
export type Client =
  | { readonly kind: "address"; readonly address: Address }
  /** A Worker of another zone, all of which share one address. `zone` is empty if it is not reported. */
  | { readonly kind: "worker"; readonly zone: string }
  /** The request did not come through Cloudflare. */
  | { readonly kind: "unknown" };

/**
 * Reads the client from CF-Connecting-IP alone: clients can forge every other header with an address.
 * An IPv4 address in an IPv6 notation is that IPv4 address.
 */
export function readClient(headers: Headers): Client {
  const address = parseAddress(headers.get("cf-connecting-ip")?.trim() ?? "");
  if (!address) return { kind: "unknown" };
  if (address.toString() === WORKERS_ADDRESS) {
    return { kind: "worker", zone: readZone(headers.get("cf-worker")) };
  }
  return { kind: "address", address: unwrapIPv4(address) };
}

/**
 * The text that a client is counted by. An IPv6 client is counted by its network, because it can choose
 * any address in it.
 *
 * @param ipv6Prefix leading bits of an IPv6 address that distinguish clients
 * @returns `203.0.113.7`, `2001:db8::/64`, `worker:ZONE`, or `unknown`, one client for all others
 */
export function clientAddress(headers: Headers, ipv6Prefix: number): string {
  const text = headers.get("cf-connecting-ip") ?? "";
  const cached = addresses.get(`${ipv6Prefix}/${text}`);
  if (cached !== undefined) return cached;
  const client = readClient(headers);
  switch (client.kind) {
    case "unknown":
      return "unknown";
    case "worker":
      // Not cached: the zone is in another header.
      return `worker:${client.zone}`;
    case "address": {
      const address = canonicalAddress(client.address, ipv6Prefix);
      if (text.length <= MAX_CACHED_LENGTH) addresses.set(`${ipv6Prefix}/${text}`, address);
      return address;
    }
    default:
      return client satisfies never;
  }
}

function canonicalAddress(address: Address, ipv6Prefix: number): string {
  if (address.kind() === "ipv4") return address.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${ipv6Prefix}`)}/${ipv6Prefix}`;
}

/** A Worker may send CF-Worker too. Then it is unclear which of two fields is Cloudflare's. */
function readZone(field: string | null): string {
  const zone = removeTrailing(".", field?.trim().toLowerCase() ?? "");
  return /^[\w.-]*$/.test(zone) ? zone : "";
}
