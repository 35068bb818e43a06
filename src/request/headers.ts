import { type Address, parseAddress, unwrapIPv4 } from "../config/address.ts";
import { LruCache } from "./lru-cache.ts";
import { removeTrailing } from "./text-folding.ts";

/**
 * The headers of a request or of a response, with names in lower case. `Headers` implements this type. The headers
 * of a log implement it too, without the validation and the copies of `Headers`.
 */
export interface ReadonlyHeaders {
  get(name: string): string | null;
  has(name: string): boolean;
  keys(): Iterable<string>;
}

const SEPARATOR = "[^a-z\\d]";
const SEPARATORS = new RegExp(SEPARATOR, "g");

/**
 * Returns the form in which servers may see the name of a header. CGI and similar interfaces do not distinguish `_`
 * from `-`. Some servers replace every character other than letters and digits.
 *
 * @param name a name in lower case
 */
export function foldHeaderName(name: string): string {
  return name.replace(SEPARATORS, "_");
}

/**
 * Returns a pattern that matches each name with the folded form of one of the given names. This is faster than
 * folding each name.
 *
 * @param names names in lower case, with `-` as the only separator
 */
export function namePattern(...names: readonly string[]): RegExp {
  return new RegExp(`^(?:${names.join("|").replaceAll("-", SEPARATOR)})$`);
}

/** Returns the names of the headers that match a pattern of {@link namePattern}. */
export function headersNamed(pattern: RegExp, headers: ReadonlyHeaders): string[] {
  const found: string[] = [];
  // This code runs for every request. The loop takes half the time of a filtered copy of all names.
  for (const name of headers.keys()) if (pattern.test(name)) found.push(name);
  return found;
}

/**
 * The address in CF-Connecting-IP if a Worker of another zone sends the request. All such Workers share this address.
 * So Weir uses their zone as the key instead, which Cloudflare writes into CF-Worker.
 * https://developers.cloudflare.com/fundamentals/reference/http-headers/#cf-connecting-ip
 */
const WORKERS_ADDRESS = parseAddress("2a06:98c0:3600::103") as Address;

/**
 * The canonical addresses by the prefix length and the text of CF-Connecting-IP. Without this cache, parsing an
 * address would take longer than all other work for a key. The cache takes less than 200 KB.
 */
const addresses = new LruCache<string>(1024);
/** The length of the longest address: an IPv6 address with an IPv4 address at its end. */
const MAX_CACHED_LENGTH = 45;

/** The sender of a request, as far as Cloudflare reports it. */
export type Client =
  | { readonly kind: "address"; readonly address: Address }
  /**
   * A Worker of another zone. All such Workers share one address. `zone` is empty if CF-Worker does
   * not name exactly one zone.
   */
  | { readonly kind: "worker"; readonly address: Address; readonly zone: string }
  /** The request did not come through Cloudflare. */
  | { readonly kind: "unknown" };

/**
 * Reads the client only from CF-Connecting-IP, because clients can forge every other header with an
 * address. An IPv4 address in an IPv6 notation becomes a plain IPv4 address.
 */
export function readClient(headers: ReadonlyHeaders): Client {
  const address = parseAddress(headers.get("cf-connecting-ip")?.trim() ?? "");
  if (!address) return { kind: "unknown" };
  if (address.startsWith(WORKERS_ADDRESS, 128)) {
    return { kind: "worker", address, zone: readZone(headers.get("cf-worker")) };
  }
  return { kind: "address", address: unwrapIPv4(address) };
}

/**
 * Returns the text that identifies a client. An IPv6 client is identified by its network, because the client can
 * choose any address of this network.
 *
 * @param ipv6Prefix the number of leading bits of an IPv6 address that distinguish clients
 * @returns `203.0.113.7`, `2001:db8::/64` or `worker:ZONE`; `unknown` for all requests without an address
 */
export function clientAddress(headers: ReadonlyHeaders, ipv6Prefix: number): string {
  const text = headers.get("cf-connecting-ip") ?? "";
  const cached = addresses.get(`${ipv6Prefix}/${text}`);
  if (cached !== undefined) return cached;
  const client = readClient(headers);
  switch (client.kind) {
    case "unknown":
      return "unknown";
    case "worker":
      // Not cached, because the cache key does not contain CF-Worker.
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
  return `${address.masked(ipv6Prefix)}/${ipv6Prefix}`;
}

/**
 * Returns the zone in CF-Worker. If a Worker has sent this header too, the runtime joins both values by a comma. The
 * result is then empty, because Weir cannot know Cloudflare's value.
 */
function readZone(header: string | null): string {
  const zone = removeTrailing(".", header?.trim().toLowerCase() ?? "");
  return /^[\w.-]*$/.test(zone) ? zone : "";
}
