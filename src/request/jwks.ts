import { waitUntil } from "cloudflare:workers";
import type { HonoJsonWebKey } from "hono/utils/jwt/jws";

// Fetches and caches an issuer's keys. jose's createRemoteJWKSet cannot replace this (6.2.17; 6.9 KiB of
// gzip with `jwtVerify`). In Workers it starts a fetch for each request that waits, and no `waitUntil`
// keeps a fetch running after its request. A failed fetch starts no cool-down, so an issuer that is down
// receives a fetch for each token. Keys past their maximum age are not used, even if the fetch fails.
// A request waits as long as its fetch may take.

/** How long fetched keys are used without a new fetch. */
const FRESH_MS = 10 * 60_000;
/** How long they are used if a fetch fails: an issuer's outage must not make tokens invalid. */
const STALE_MS = 60 * 60_000;
/**
 * Cool-down between fetches for an unknown `kid`. Clients choose it, so random values must not each
 * cause a fetch.
 */
const REFETCH_MS = 60_000;
/** Cool-down after a failed fetch. */
const BACKOFF_MS = 10_000;
/** A fetch is aborted after this time. Requests wait for less time: see `maxWaitMs`. */
const TIMEOUT_MS = 2000;
/** How often a request checks whether another request's fetch has ended. */
const POLL_MS = 10;
/** The largest key set that is read. */
const MAX_BYTES = 256 * 1024;

/**
 * @param kid the name of a key, from a token's header
 * @returns the key with that name; undefined if there is none or the keys cannot be fetched
 */
export type KeySource = (kid: string) => Promise<HonoJsonWebKey | undefined>;

/**
 * Keeps an issuer's keys in this isolate. One request at a time fetches them.
 *
 * The fetch continues after that request's client hangs up, and the mark of a running fetch expires. So
 * no client can prevent a fetch. Other requests use the cached keys. Requests whose key is not cached
 * wait. They do not wait for the promise of another request, which the runtime may never settle. They
 * poll plain values.
 *
 * @param maxWaitMs how long a request waits for any fetch, in milliseconds; then its key is unknown
 */
export function createKeySource(url: string, maxWaitMs: number): KeySource {
  const keys = new KeyCache(url);
  return async function keyFor(kid) {
    const now = Date.now();
    if (keys.needsFetch(kid, now)) {
      const fetched = keys.fetch(now);
      waitUntil(fetched);
      await waitAtMost(maxWaitMs, fetched);
    } else if (!keys.has(kid, now)) {
      await keys.waitForFetch(now, maxWaitMs);
    }
    return keys.find(kid);
  };
}

class KeyCache {
  readonly #url: string;
  #keys: readonly HonoJsonWebKey[] = [];
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** Until when a fetch may be running; 0 when none is. */
  #fetchingUntil = 0;

  constructor(url: string) {
    this.#url = url;
  }

  has(kid: string, now: number): boolean {
    return elapsedMs(this.#fetchedAt, now) < STALE_MS && this.#keys.some((key) => key.kid === kid);
  }

  /** @returns the key, unless the keys are too old. A clock that was put back does not make them older */
  find(kid: string): HonoJsonWebKey | undefined {
    if (Math.abs(Date.now() - this.#fetchedAt) >= STALE_MS) return undefined;
    return this.#keys.find((key) => key.kid === kid);
  }

  needsFetch(kid: string, now: number): boolean {
    if (this.#isFetching(now) || elapsedMs(this.#failedAt, now) < BACKOFF_MS) return false;
    const ageMs = elapsedMs(this.#fetchedAt, now);
    return ageMs >= (this.has(kid, now) ? FRESH_MS : REFETCH_MS);
  }

  /** Replaces the keys. A failed fetch keeps the old keys, and never rejects. */
  async fetch(now: number): Promise<void> {
    const until = now + TIMEOUT_MS;
    this.#fetchingUntil = until;
    try {
      this.#keys = await fetchKeys(this.#url);
      this.#fetchedAt = Date.now();
    } catch {
      this.#failedAt = Date.now();
    } finally {
      if (this.#fetchingUntil === until) this.#fetchingUntil = 0;
    }
  }

  /** Waits until another request's fetch has ended, `maxWaitMs` at most. */
  async waitForFetch(since: number, maxWaitMs: number): Promise<void> {
    // Both a count and a time: a clock may stand still, and in a busy isolate each wait takes longer.
    let polls = Math.ceil(maxWaitMs / POLL_MS);
    while (
      polls-- > 0 &&
      this.#isFetching(Date.now()) &&
      elapsedMs(since, Date.now()) < maxWaitMs
    ) {
      await scheduler.wait(POLL_MS);
    }
  }

  #isFetching(now: number): boolean {
    return now < this.#fetchingUntil && this.#fetchingUntil - now <= TIMEOUT_MS;
  }
}

async function waitAtMost(ms: number, task: Promise<unknown>): Promise<void> {
  const { promise: timeOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([task, timeOver]);
  clearTimeout(timer);
}

/** Milliseconds since a time; infinite for a future time, which shows that the clock was put back. */
function elapsedMs(since: number, now: number): number {
  return now < since ? Number.POSITIVE_INFINITY : now - since;
}

/** @throws unless the issuer answers in time with a JWK set (RFC 7517) of at most `MAX_BYTES` */
async function fetchKeys(url: string): Promise<HonoJsonWebKey[]> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    // Only the configuration decides where the keys come from.
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const set: unknown = JSON.parse(await readText(response));
  if (typeof set !== "object" || set === null || !("keys" in set) || !Array.isArray(set.keys)) {
    throw new Error("not a JWK set");
  }
  return set.keys.filter(isKey);
}

/** `importKey` checks the other members of a key. */
function isKey(value: unknown): value is HonoJsonWebKey {
  return typeof value === "object" && value !== null && "kid" in value && "kty" in value;
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    // An exception in the loop cancels the rest of the body.
    if (bytes > MAX_BYTES) throw new Error("too long");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
