import { LruCache } from "./lru-cache.ts";

/** Makes identities from the texts of keys: see {@link hasherFor}. */
export interface Hasher {
  /** @returns 22 characters of base64url */
  hash(text: string): Promise<string>;
  /** The same hash, if it is cached: then there is nothing to wait for. */
  cachedHash(text: string): string | undefined;
}

/** Bytes of a hash that are kept: at 128 bits, no two clients share an identity by chance. */
const IDENTITY_BYTES = 16;
/** How many hashes are cached, and of texts up to which length. Hashing is the costliest work for a key. */
const CACHED_HASHES = 2048;
const MAX_CACHED_LENGTH = 128;
const encoder = new TextEncoder();

/** One hasher for each secret, because their caches must not mix. An isolate needs one or two. */
const hashers = new Map<string, Hasher>();

/**
 * The hasher that makes identities: HMAC-SHA-256 with the secret, or SHA-256 without a secret, cut to
 * 128 bits. Anyone who can read the store can test guesses of a SHA-256. For an HMAC they need the secret.
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

/** The first request that needs the key imports it. The key is kept, its promise is not. */
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

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
