/**
 * Compares texts in constant time. It compares digests, because the texts may have different
 * lengths.
 */
export async function isSameText(one: string, other: string): Promise<boolean> {
  const [digest, otherDigest] = await Promise.all([sha256(one), sha256(other)]);
  return crypto.subtle.timingSafeEqual(digest, otherDigest);
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
