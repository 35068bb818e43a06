import { LruCache } from "./lru-cache.ts";

/** Turns what a key holds into an identity: see {@link hasherFor}. */
export interface Hasher {
  /** @returns 22 characters of base64url */
  hash(text: string): Promise<string>;
  /** The same, if it has been hashed lately: there is nothing to wait for. */
  recall(text: string): string | undefined;
}

/** Bytes of a hash that are kept: 128 bits, at which two clients never meet by chance. */
const IDENTITY_BYTES = 16;
/** Hashes that are remembered, and of which texts: hashing costs more than all else about a key. */
const REMEMBERED = 2048;
const LONGEST_REMEMBERED = 128;
const encoder = new TextEncoder();

/** One for each secret, whose hashes no other secret's cache may hold. An isolate has one or two. */
const hashers = new Map<string, Hasher>();

/**
 * The function that makes identities: HMAC-SHA-256 by the secret, or SHA-256 without one, cut to 128
 * bits. Anyone who can read the store can test guesses of a SHA-256; of an HMAC only with the secret.
 */
export function hasherFor(secret = ""): Hasher {
  const known = hashers.get(secret);
  if (known) return known;
  const hasher = remembering(secret === "" ? sha256 : hmacBy(secret));
  hashers.set(secret, hasher);
  return hasher;
}

type Digest = (bytes: Uint8Array) => Promise<ArrayBuffer>;

function remembering(digest: Digest): Hasher {
  const hashes = new LruCache<string>(REMEMBERED);
  return {
    recall: (text) => hashes.get(text),
    async hash(text) {
      const known = hashes.get(text);
      if (known !== undefined) return known;
      const bytes = await digest(encoder.encode(text));
      const identity = base64url(new Uint8Array(bytes, 0, IDENTITY_BYTES));
      if (text.length <= LONGEST_REMEMBERED) hashes.set(text, identity);
      return identity;
    },
  };
}

function sha256(bytes: Uint8Array): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>);
}

/** The key is imported by the first request that needs it; what is kept is the key, no promise. */
function hmacBy(secret: string): Digest {
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
