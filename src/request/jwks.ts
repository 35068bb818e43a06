import type { HonoJsonWebKey } from "hono/utils/jwt/jws";

/** How long fetched keys serve without being asked for again. */
const FRESH_MS = 10 * 60_000;
/** How long they serve when they cannot be fetched again: an outage is not to unname everybody. */
const STALE_MS = 60 * 60_000;
/** Between two fetches for keys that are not there: whoever sends a token chooses the name of its key. */
const REFETCH_MS = 60_000;
/** How long nothing is asked of an issuer that has just failed. */
const BACKOFF_MS = 10_000;
const TIMEOUT_MS = 2000;
const MAX_BYTES = 256 * 1024;

/**
 * @param kid what a token says that its key is called
 * @returns the keys to verify it with; none when they cannot be had
 */
export type KeySource = (kid: string) => Promise<readonly HonoJsonWebKey[]>;

/**
 * Keeps an issuer's keys for an isolate. What it keeps are plain values: a request that waits for
 * the promise of another would hang with it, so on a cold start each that needs the keys fetches
 * them. Once they are there, one request at a time does, and the others go on with what there is.
 */
export function createKeySource(url: string): KeySource {
  let keys: readonly HonoJsonWebKey[] = [];
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let askedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;

  function isDue(kid: string, now: number): boolean {
    if (now - failedAt < BACKOFF_MS) return false;
    const age = now - fetchedAt;
    if (age >= STALE_MS) return true;
    const known = age < FRESH_MS && keys.some((key) => key.kid === kid);
    return !known && now - askedAt >= REFETCH_MS;
  }

  return async function keysFor(kid) {
    const now = Date.now();
    if (isDue(kid, now)) {
      askedAt = now;
      try {
        keys = await fetchKeys(url);
        fetchedAt = Date.now();
      } catch {
        failedAt = Date.now();
      }
    }
    return Date.now() - fetchedAt < STALE_MS ? keys : [];
  };
}

/** @throws for anything but a JWK set (RFC 7517) of bounded size within the time */
async function fetchKeys(url: string): Promise<HonoJsonWebKey[]> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    // Where the keys come from is configured, not for the other side to choose.
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const set: unknown = JSON.parse(await textOf(response));
  if (typeof set !== "object" || set === null || !("keys" in set) || !Array.isArray(set.keys)) {
    throw new Error("not a JWK set");
  }
  return set.keys.filter(isKey);
}

/** The rest is checked where a key is imported. */
function isKey(value: unknown): value is HonoJsonWebKey {
  return typeof value === "object" && value !== null && "kid" in value && "kty" in value;
}

async function textOf(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop by a throw cancels the rest of the body.
    if (bytes > MAX_BYTES) throw new Error("too long");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
