import { createHash } from "node:crypto";
import { isIPv4 } from "node:net";
import type { KeyPart } from "../../src/config/key.ts";
import type { Rule } from "../../src/config/rule.ts";
import { mayBeCredential } from "../../src/config/tiers.ts";
import { clientAddress } from "../../src/request/headers.ts";
import {
  encodeValues,
  type NamedValue,
  type RequestContext,
  valueIn,
} from "../../src/request/identity.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import type { PathMatch } from "../../src/request/matcher.ts";
import { ownText } from "../logs/log-request.ts";
import type { LoggedRequest } from "./logged-request.ts";

// The clients of a log: the values of a rule's key, and the client as reports show it. The Worker's own code
// (identityOf in src/request/identity.ts) returns only a hash of the values, and only as a promise.

/** A value of a key, with the part of the key that it comes from. */
interface KeyValue extends NamedValue {
  readonly part: KeyPart;
}

const ADDRESS: KeyPart = { kind: "ip" };
/** The value of the part `ip` for requests without a valid address. */
const UNKNOWN_ADDRESS = "unknown";

/** Returns the first alternative that a request has. */
export function firstValue(
  alternatives: readonly KeyPart[],
  context: RequestContext,
): KeyValue | undefined {
  for (const part of alternatives) {
    const present = valueIn(part, context);
    if (present) return { ...present, part };
  }
  return undefined;
}

function isUnknownAddress({ part, value }: KeyValue): boolean {
  return part.kind === "ip" && value === UNKNOWN_ADDRESS;
}

/** The maximum length of an identity, in characters. A longer one is replaced by its hash. */
const MAX_IDENTITY = 128;

export interface ClientOptions {
  readonly ipv6Prefix: number;
  /** Whether all clients without an address count as one, as in the Worker. Otherwise they are skipped. */
  readonly countsUnknownAddress: boolean;
  readonly addresses: CanonicalAddresses;
}

/** Finds the clients of the requests that one rule matches. */
export class RuleClients {
  /** The number of requests without an identity: the rule needs their address, which is unknown. */
  withoutAddress = 0;
  readonly #rule: Rule;
  readonly #options: ClientOptions;
  /** Whether a condition reads the address. */
  readonly #readsAddress: boolean;
  /** Whether the address alone identifies the clients, as under most rules. */
  readonly #isByAddress: boolean;
  /** The value of the key of the last request, if the address alone is the key. */
  readonly #address = { part: ADDRESS, name: "ip", value: "" };
  /** The values of the key of the last request. */
  #values: readonly KeyValue[] = [this.#address];

  constructor(rule: Rule, options: ClientOptions) {
    const { key, match, spread } = rule;
    this.#rule = rule;
    this.#options = options;
    this.#readsAddress = match.ips !== undefined || match.except?.ips !== undefined;
    this.#isByAddress = key.length === 1 && key[0]?.[0]?.kind === "ip" && !spread;
  }

  /** Returns a text that is different for each client; undefined if the rule needs an unknown address. */
  identityOf({ path, params }: PathMatch, request: LoggedRequest): string | undefined {
    const { ipv6Prefix } = this.#options;
    const identity = this.#isByAddress
      ? this.#addressOf(request)
      : this.#identityIn({ request, path, params, ipv6Prefix });
    if (identity === undefined) this.withoutAddress++;
    return identity;
  }

  /** Returns the client of the last request as reports show it. */
  shown(): string {
    return this.#values.map(({ part, value }) => clientText(part, value)).join(", ");
  }

  #addressOf(request: LoggedRequest): string | undefined {
    const { addresses, countsUnknownAddress } = this.#options;
    const value = addresses.of(request);
    this.#address.value = value;
    return value === UNKNOWN_ADDRESS && !countsUnknownAddress ? undefined : value;
  }

  /** Tokens and functions count as absent. */
  #identityIn(context: RequestContext): string | undefined {
    const values = this.#rule.key.map(
      (alternatives) =>
        firstValue(alternatives, context) ?? (firstValue([ADDRESS], context) as KeyValue),
    );
    const needsAddress = this.#readsAddress && !context.request.headers.has("cf-connecting-ip");
    const isUnknown = needsAddress || values.some(isUnknownAddress);
    if (isUnknown && !this.#options.countsUnknownAddress) return undefined;
    this.#values = values;
    const encoded = encodeValues(values);
    // The Worker's identity is a hash, on which only the windows of `start: "spread"` depend.
    return this.#rule.spread || encoded.length > MAX_IDENTITY ? identityHash(encoded) : encoded;
  }
}

/** The number of cached addresses. They take up to 20 MB. */
const CACHED_ADDRESSES = 65_536;
/** The longest address that is cached, in characters. */
const MAX_CACHED = 45;

/** Reads the canonical addresses of clients like the Worker, but with a cache for many more clients. */
export class CanonicalAddresses {
  readonly #ipv6Prefix: number;
  /** The canonical addresses, by the logged ones. */
  readonly #cache = new LruCache<string>(CACHED_ADDRESSES);

  constructor(ipv6Prefix: number) {
    this.#ipv6Prefix = ipv6Prefix;
  }

  /** @returns {@link UNKNOWN_ADDRESS} if the request has no valid address */
  of({ headers }: LoggedRequest): string {
    const logged = headers.get("cf-connecting-ip") ?? "";
    // Most addresses have their canonical form already, and parsing them takes long.
    if (isIPv4(logged)) return logged;
    const cached = this.#cache.get(logged);
    if (cached !== undefined) return cached;
    const address = clientAddress(headers, this.#ipv6Prefix);
    // The address `worker:ZONE` depends on another header.
    const isCached = logged.length <= MAX_CACHED && !address.startsWith("worker:");
    if (isCached) this.#cache.set(ownText(logged), address);
    return address;
  }
}

/** The number of bytes of a hash that form an identity, as in src/request/identity.ts. */
const IDENTITY_BYTES = 16;

/** Returns the identity that a Worker without WEIR_KEY_SECRET has for the encoded values of a key. */
export function identityHash(encodedValues: string): string {
  const bytes = createHash("sha256").update(encodedValues).digest();
  return bytes.toString("base64url", 0, IDENTITY_BYTES);
}

/** Headers of browsers that never contain credentials. A referer may, in its path or query. */
const HARMLESS_HEADERS = /^(?:user-agent|origin|host|dnt|accept(?:-[a-z]+)*|sec-[a-z-]+)$/;
/** The maximum length of a value in a report, in characters. */
const MAX_LENGTH = 80;
/** The number of characters of a hash. Two values with the same 60 bits hardly ever occur in a log. */
const HASH_LENGTH = 10;

/**
 * Returns a value of a key as reports show it. A hash replaces most of a value that may be a credential, and the end
 * of a long value.
 */
export function clientText(part: KeyPart, value: string): string {
  if (isSecret(part)) return shortened(value, Math.min(4, Math.floor(value.length / 4)));
  return value.length > MAX_LENGTH ? shortened(value, MAX_LENGTH / 2) : ownText(value);
}

function isSecret(part: KeyPart): boolean {
  if (part.kind === "param" || !mayBeCredential(part)) return false;
  return !(part.kind === "header" && HARMLESS_HEADERS.test(part.name));
}

function shortened(value: string, length: number): string {
  const hash = createHash("sha256").update(value).digest("base64url").slice(0, HASH_LENGTH);
  return `${value.slice(0, length)}…${hash}`;
}
