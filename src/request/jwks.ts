import { waitUntil } from "cloudflare:workers";
import type { HonoJsonWebKey } from "hono/utils/jwt/jws";

/** How long fetched keys serve without being fetched again. */
const FRESH_MS = 10 * 60_000;
/** How long they serve while they cannot be fetched: an issuer's outage must not make tokens invalid. */
const STALE_MS = 60 * 60_000;
/** Cool-down between fetches for an unknown key. Clients choose its name, so random ones must not each cause a fetch. */
const REFETCH_MS = 60_000;
/** Cool-down after a failed fetch. */
const BACKOFF_MS = 10_000;
/** A fetch is given up after this long; what it was for does not wait that long. */
const TIMEOUT_MS = 2000;
/** How often a request looks whether another one's fetch has ended. */
const LOOK_MS = 10;
const MAX_BYTES = 256 * 1024;

/**
 * @param kid what a token says that its key is called
 * @returns the keys to verify it with; none when they cannot be had
 */
export type KeySource = (kid: string) => Promise<readonly HonoJsonWebKey[]>;

/**
 * Keeps an issuer's keys for an isolate, and fetches them by one request at a time.
 *
 * The fetch runs to its end though that request's client hangs up, and its mark expires, so no client can
 * keep keys from being learnt. Others go on with the keys that there are. Those whose key is not among
 * them wait, but not for the promise of another request, with which they would hang: they look at plain
 * values now and then.
 *
 * @param maxWaitMs how long a request waits for a fetch, its own or another's; then its key is unknown
 */
export function createKeySource(url: string, maxWaitMs: number): KeySource {
  let keys: readonly HonoJsonWebKey[] = [];
  let fetchedAt = Number.NEGATIVE_INFINITY;
  let failedAt = Number.NEGATIVE_INFINITY;
  /** Until when a fetch may be under way; 0 when none is. */
  let fetchingUntil = 0;

  function has(kid: string, now: number): boolean {
    return sinceThen(fetchedAt, now) < STALE_MS && keys.some((key) => key.kid === kid);
  }

  function isFetching(now: number): boolean {
    return now < fetchingUntil && fetchingUntil - now <= TIMEOUT_MS;
  }

  function isDue(kid: string, now: number): boolean {
    if (isFetching(now) || sinceThen(failedAt, now) < BACKOFF_MS) return false;
    const ageMs = sinceThen(fetchedAt, now);
    return ageMs >= (has(kid, now) ? FRESH_MS : REFETCH_MS);
  }

  async function refresh(now: number): Promise<void> {
    const until = now + TIMEOUT_MS;
    fetchingUntil = until;
    try {
      keys = await fetchKeys(url);
      fetchedAt = Date.now();
    } catch {
      failedAt = Date.now();
    } finally {
      if (fetchingUntil === until) fetchingUntil = 0;
    }
  }

  return async function keysFor(kid) {
    const now = Date.now();
    if (isDue(kid, now)) {
      const refreshed = refresh(now);
      waitUntil(refreshed);
      await atMost(maxWaitMs, refreshed);
    } else if (!has(kid, now)) {
      // Counted as well as timed: a clock may stand still, and in a busy isolate a look takes longer.
      let looks = Math.ceil(maxWaitMs / LOOK_MS);
      while (looks-- > 0 && isFetching(Date.now()) && sinceThen(now, Date.now()) < maxWaitMs) {
        await scheduler.wait(LOOK_MS);
      }
    }
    return Math.abs(Date.now() - fetchedAt) < STALE_MS ? keys : [];
  };
}

async function atMost(ms: number, task: Promise<unknown>): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([task, over]);
  clearTimeout(timer);
}

/** Milliseconds since a time; a time to come is one by a clock that has been put back, and long past. */
function sinceThen(then: number, now: number): number {
  return now < then ? Number.POSITIVE_INFINITY : now - then;
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
