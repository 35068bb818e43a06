import { type KeyExpression, type KeyPart, MAX_KEY_LENGTH } from "../config/key.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { clientAddress } from "./headers.ts";
import { LruCache } from "./lru-cache.ts";
import { type Claims, readClaim } from "./token.ts";

/** Matches exactly the texts with the form of an identity. */
export const IDENTITY_PATTERN = /^[A-Za-z0-9_-]{22}$/;

/** The allowed form, for messages. */
export const IDENTITY_FORM = "an identity: 22 characters of A-Z, a-z, 0-9, - and _";

/** Whether a value has the form of a client's identity. So no address or API key is stored as an identity. */
export function isIdentity(value: unknown): value is string {
  return typeof value === "string" && IDENTITY_PATTERN.test(value);
}

/** The data from which the values of keys are read synchronously. */
export interface RequestContext {
  readonly request: CanonicalRequest;
  /** See `PathMatch` in matcher.ts. */
  readonly path: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  /** The number of leading bits of an IPv6 address that distinguish clients. */
  readonly ipv6Prefix: number;
  /** The secret for HMACs. Without a secret, identities are plain hashes. */
  readonly keySecret?: string | undefined;
}

export interface KeyContext extends RequestContext {
  /** @returns the claims of the request's token; undefined if the request has no valid token */
  readonly readClaims: () => Promise<Claims | undefined>;
  /** Calls the function for `custom:NAME`. */
  readonly computeCustom: (name: string) => Promise<string | null | undefined>;
}

/** The value of a part of a key. */
export interface NamedValue {
  /** The name of the part, such as `header:x-api-key`. */
  readonly name: string;
  readonly value: string;
}

/** A client under a key. */
export interface Identity {
  /** A short text that reveals nothing about the client. See {@link hashValues}. */
  readonly identity: string;
  /** How widely the identity is shared. See {@link reachOf}. */
  readonly reach: number;
}

export interface IdentifiedClient extends Identity {
  /** The value of each element of the key. */
  readonly values: readonly NamedValue[];
}

export async function identityOf(
  key: KeyExpression,
  context: KeyContext,
): Promise<IdentifiedClient> {
  const values: NamedValue[] = [];
  for (const alternatives of key) {
    let present: NamedValue | undefined;
    for (const part of alternatives) {
      const value = readPart(part, context);
      present = value instanceof Promise ? await value : value;
      if (present) break;
    }
    values.push(present ?? addressIn(context));
  }
  return { identity: await hashValues(values, context.keySecret), reach: reachOf(values), values };
}

/**
 * Returns the same identity as {@link identityOf}, if this takes no waiting, decoding or hashing.
 *
 * @returns undefined if the hash is not cached, or if a value must be awaited or decoded. The caller then calls
 * {@link identityOf} once for all rules with the same key
 */
export function cachedIdentityOf(
  key: KeyExpression,
  context: RequestContext,
): Identity | undefined {
  const values: NamedValue[] = [];
  for (const alternatives of key) {
    let present: NamedValue | undefined;
    for (const part of alternatives) {
      if (isAsync(part) || part.kind === "cookie" || part.kind === "query") return undefined;
      present = valueIn(part, context);
      if (present) break;
    }
    values.push(present ?? addressIn(context));
  }
  const identity = hasherFor(context.keySecret).cachedHash(encodeValues(values));
  return identity === undefined ? undefined : { identity, reach: reachOf(values) };
}

/**
 * The kinds of keys, from the client's own values to values that all clients share. Only the client itself can send a
 * claim of its verified token, or send from its address. Anybody can send another client's header, cookie, query
 * parameter or path.
 */
const KINDS_BY_REACH: readonly KeyPart["kind"][] = [
  "jwt",
  "ip",
  "custom",
  "header",
  "cookie",
  "query",
  "param",
  "path",
  "ja4",
  "asn",
  "host",
  "country",
  "method",
  "global",
];
const RANKS = new Map<string, number>(KINDS_BY_REACH.map((kind, rank) => [kind, rank]));
const OWN_RANK = KINDS_BY_REACH.indexOf("ip");
const LAST_RANK = KINDS_BY_REACH.length - 1;

/** An identity with a lower reach belongs to one client. Other clients cannot use its quota. */
export const SHARED_REACH = (OWN_RANK + 1) * KINDS_BY_REACH.length;

/**
 * Returns a number for the clients that share an identity: from 0 for a verified user to 182 for all clients. Only
 * the kinds of the values determine the number. The identity is a hash of these kinds too, so it always has the same
 * reach.
 *
 * Only clients with all values of an identity can use its quota, so the value with the lowest rank counts. Among the
 * client's own identities, those with a value that the client can vary have higher numbers. Among shared identities,
 * those with more values have lower numbers, because fewer clients share them.
 */
function reachOf(values: readonly NamedValue[]): number {
  let [lowest, highest] = [LAST_RANK, 0];
  for (const { name } of values) {
    const end = name.indexOf(":");
    const rank = RANKS.get(end < 0 ? name : name.slice(0, end)) as number;
    lowest = Math.min(lowest, rank);
    highest = Math.max(highest, rank);
  }
  const within = lowest <= OWN_RANK ? highest : LAST_RANK - highest;
  return lowest * KINDS_BY_REACH.length + within;
}

/**
 * Computes an identity from the values of a key: 22 characters of base64url.
 *
 * In the hashed text, the length of each name or value stands before it. So a value cannot look like two values or
 * like a value of another name. Because of the hash, identities are short, and the store contains no addresses or API
 * keys.
 */
export function hashValues(values: readonly NamedValue[], secret?: string): Promise<string> {
  return hasherFor(secret).hash(encodeValues(values));
}

/** Returns the text from which {@link hashValues} computes an identity. */
export function encodeValues(values: readonly NamedValue[]): string {
  let text = "";
  for (const { name, value } of values) {
    text += `${name.length}:${name}${value.length}:${value}`;
  }
  return text;
}

/** @returns undefined if the request lacks the value; a promise only if Weir must wait for the value */
export function readPart(
  part: KeyPart,
  context: KeyContext,
): NamedValue | undefined | Promise<NamedValue | undefined> {
  if (!isAsync(part)) return valueIn(part, context);
  return readAsync(part, context).then((value) => namedValue(part, value));
}

/** Returns the name of a part of a key, such as `header:x-api-key`. */
export function keyPartName(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}

type AsyncKeyPart = KeyPart & { readonly kind: "jwt" | "custom" };

function isAsync(part: KeyPart): part is AsyncKeyPart {
  return part.kind === "jwt" || part.kind === "custom";
}

/** Like {@link readPart}, but the value of a token or of a function counts as absent. */
export function valueIn(part: KeyPart, context: RequestContext): NamedValue | undefined {
  return part.kind === "ip" ? addressIn(context) : namedValue(part, readValue(part, context));
}

/** @returns undefined if the value counts as absent, because it is empty or too long */
function namedValue(part: KeyPart, value: string | null | undefined): NamedValue | undefined {
  if (!value || value.length > MAX_KEY_LENGTH) return undefined;
  return { name: keyPartName(part), value };
}

function addressIn({ request, ipv6Prefix }: RequestContext): NamedValue {
  return { name: "ip", value: clientAddress(request.headers, ipv6Prefix) };
}

/** @returns a part's value in this request; undefined or empty if it is absent */
function readValue(
  part: Exclude<KeyPart, { kind: "ip" }>,
  { request, path, params }: RequestContext,
): string | null | undefined {
  switch (part.kind) {
    case "header":
      return request.sent.headerKey(part.name);
    case "cookie":
      return request.sent.cookieKey(part.name);
    case "query":
      return request.sent.parameterKey(part.name);
    case "param":
      return Object.hasOwn(params, part.name) ? params[part.name] : undefined;
    case "host":
      return request.host;
    case "path":
      return path;
    case "method":
      return request.method;
    case "country":
      return request.cf?.country;
    case "asn":
      return request.cf?.asn?.toString();
    case "ja4":
      return (request.cf?.botManagement as { ja4?: string } | undefined)?.ja4;
    case "global":
      return "global";
    case "jwt":
    case "custom":
      // `readAsync` reads the values of these kinds of key.
      return undefined;
  }
}

async function readAsync(
  part: AsyncKeyPart,
  { readClaims, computeCustom }: KeyContext,
): Promise<string | null | undefined> {
  if (part.kind === "custom") return computeCustom(part.name);
  return readClaim(await readClaims(), part);
}

/** With 128 bits, the chance that two clients get the same identity is practically zero. */
const IDENTITY_BYTES = 16;
/** Hashes are cached because hashing is the slowest work for a key. */
const CACHED_HASHES = 2048;
const MAX_CACHED_LENGTH = 128;
const encoder = new TextEncoder();

type Digest = (bytes: Uint8Array) => Promise<ArrayBuffer>;

/** Computes identities from the texts of keys. */
class Hasher {
  readonly #digest: Digest;
  readonly #hashes = new LruCache<string>(CACHED_HASHES);

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  async hash(text: string): Promise<string> {
    const cached = this.cachedHash(text);
    if (cached !== undefined) return cached;
    const bytes = await this.#digest(encoder.encode(text));
    const identity = base64url(new Uint8Array(bytes, 0, IDENTITY_BYTES));
    if (text.length <= MAX_CACHED_LENGTH) this.#hashes.set(text, identity);
    return identity;
  }

  cachedHash(text: string): string | undefined {
    return this.#hashes.get(text);
  }
}

/** The hashers by their secrets. Hashes with different secrets must not share a cache. */
const hashers = new Map<string, Hasher>();

/**
 * Returns the hasher that computes identities. It uses HMAC-SHA-256, or SHA-256 if there is no secret, and cuts the
 * result to 128 bits. A reader of the store can guess a value and compare its SHA-256 with an identity. With HMAC,
 * the reader also needs the secret.
 */
function hasherFor(secret = ""): Hasher {
  let hasher = hashers.get(secret);
  if (!hasher) {
    hasher = new Hasher(secret === "" ? sha256 : createHmac(secret));
    hashers.set(secret, hasher);
  }
  return hasher;
}

function sha256(bytes: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
}

/**
 * Compares two texts in a time that does not show how many characters of a guess are right. Compares digests, because
 * `timingSafeEqual` needs equal lengths, and the length of a secret must stay unknown.
 */
export async function isSameText(sent: string, expected: string): Promise<boolean> {
  const [one, other] = [await sha256(encoder.encode(sent)), await sha256(encoder.encode(expected))];
  if ("timingSafeEqual" in crypto.subtle) return crypto.subtle.timingSafeEqual(one, other);
  // Node, in which `weir explain` runs, lacks that function.
  const bytes = new Uint8Array(other);
  return new Uint8Array(one).reduce((sum, byte, at) => sum | (byte ^ (bytes[at] ?? 0)), 0) === 0;
}

/** Imports a secret as a key for HMAC-SHA-256. */
export function importHmacKey(secret: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
}

/**
 * Returns a function that computes HMACs. Stores the imported key instead of the import's promise, because a request
 * must not wait for another request's promise.
 */
function createHmac(secret: string): Digest {
  let key: CryptoKey | undefined;
  return async function sign(bytes) {
    key ??= await importHmacKey(secret);
    return crypto.subtle.sign("HMAC", key, bytes as Uint8Array<ArrayBuffer>);
  };
}

/** Encodes bytes as base64url without padding. */
export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
