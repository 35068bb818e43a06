import { LruCache } from "./lru-cache.ts";

/** Computes identities from the texts of keys. See {@link hasherFor}. */
export interface Hasher {
  /** @returns the identity, which has 22 characters of base64url */
  hash(text: string): Promise<string>;
  /** Returns the same identity without a promise; undefined if it is not cached. */
  cachedHash(text: string): string | undefined;
}

/**
 * The number of bytes of a hash that form an identity. With 128 bits, it is practically impossible
 * that two clients get the same identity by chance.
 */
const IDENTITY_BYTES = 16;
/**
 * The maximum number of cached hashes. They are cached because hashing is the costliest work for a
 * key.
 */
const CACHED_HASHES = 2048;
const MAX_CACHED_LENGTH = 128;
const encoder = new TextEncoder();

/**
 * Maps each secret to its hasher, because hashes with different secrets must not share a cache. An
 * isolate needs one or two hashers.
 */
const hashers = new Map<string, Hasher>();

/**
 * Returns the hasher that computes identities. It uses HMAC-SHA-256 with the secret, or SHA-256 if
 * there is no secret, and cuts the result to 128 bits. Anyone who can read the store can guess a
 * value and compare its SHA-256 with an identity. For an HMAC, they also need the secret.
 */
export function hasherFor(secret = ""): Hasher {
  const existing = hashers.get(secret);
  if (existing) return existing;
  const hasher = createCachingHasher(secret === "" ? sha256 : createHmac(secret));
  hashers.set(secret, hasher);
  return hasher;
}

type Digest = (bytes: Uint8Array) => Promise<ArrayBuffer>;

function createCachingHasher(digest: Digest): Hasher {
  const hashes = new LruCache<string>(CACHED_HASHES);
  return {
    cachedHash: (text) => hashes.get(text),
    async hash(text) {
      const cached = hashes.get(text);
      if (cached !== undefined) return cached;
      const bytes = await digest(encoder.encode(text));
      const identity = base64url(new Uint8Array(bytes, 0, IDENTITY_BYTES));
      if (text.length <= MAX_CACHED_LENGTH) hashes.set(text, identity);
      return identity;
    },
  };
}

function sha256(bytes: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
}

/**
 * Returns a function that computes HMACs. The first request that needs the key imports it. Later
 * requests reuse the imported key. The promise of the import is not stored, because a request must
 * not wait for another request's promise.
 */
function createHmac(secret: string): Digest {
  const raw = encoder.encode(secret);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const importKey = () => crypto.subtle.importKey("raw", raw, algorithm, false, ["sign"]);
  let key: Awaited<ReturnType<typeof importKey>> | undefined;
  return async function sign(bytes) {
    key ??= await importKey();
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
