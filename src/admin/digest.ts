import { base64url } from "../request/hash.ts";

const encoder = new TextEncoder();

/**
 * Compares texts in constant time. It compares digests, because the texts may have different
 * lengths.
 */
export async function isSameText(one: string, other: string): Promise<boolean> {
  const digest = (text: string) => crypto.subtle.digest("SHA-256", encoder.encode(text));
  return crypto.subtle.timingSafeEqual(await digest(one), await digest(other));
}

/** Imports a text as a key for {@link sign}. */
export function importHmacKey(secret: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
}

/** Returns the HMAC-SHA-256 of a text, as 43 characters of base64url. */
export async function sign(key: CryptoKey, text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text))));
}

/** Returns the SHA-256 of a text, as 43 characters of base64url. */
export async function sha256(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}
