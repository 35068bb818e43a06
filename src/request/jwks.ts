import type { HonoJsonWebKey } from "hono/utils/jwt/jws";

// This module fetches and caches an issuer's keys. Weir does not use createRemoteJWKSet of the
// package jose (6.2.17; 6.9 KiB after gzip, together with `jwtVerify`), because it does not suit
// Workers. jose starts a fetch for each waiting request, and does not use `waitUntil` to continue a
// fetch after its request has ended. jose has no cool-down after a failed fetch, so an issuer that
// is down receives a fetch for each token. jose does not use keys that are older than their maximum
// age, even if it cannot fetch new keys. With jose, a request waits for the whole duration of its
// fetch.

/** The maximum age of keys that are used without a new fetch. */
const FRESH_MS = 10 * 60_000;
/**
 * The maximum age of keys that are used if fetches fail, so that Weir can verify tokens during an
 * outage of the issuer.
 */
const STALE_MS = 60 * 60_000;
/**
 * After a fetch, an unknown `kid` causes no new fetch for this time. Clients choose the `kid`, so
 * random values must not each cause a fetch.
 */
const REFETCH_MS = 60_000;
/** After a failed fetch, no new fetch starts for this time. */
const BACKOFF_MS = 10_000;
/** A fetch is aborted after this time. Requests can stop waiting earlier: see `maxWaitMs`. */
const TIMEOUT_MS = 2000;
/** The interval at which a request checks whether another request's fetch has ended. */
const POLL_MS = 10;
/** The maximum size of a key set, in bytes. Larger key sets are refused. */
const MAX_BYTES = 256 * 1024;

/**
 * Returns an issuer's key.
 *
 * @param kid the name of a key, from a token's header
 * @returns the key with that name; undefined if there is none or the keys cannot be fetched
 */
export type KeySource = (kid: string) => Promise<HonoJsonWebKey | undefined>;

/**
 * Creates a function that caches an issuer's keys in this isolate. Only one request at a time
 * fetches the keys.
 *
 * The fetch continues if the client of that request hangs up, and it counts as running for at most
 * `TIMEOUT_MS`. So no client can prevent later fetches. During a fetch, other requests use the
 * cached keys, or wait if their key is not cached. They cannot wait for the promise of another
 * request, because the runtime may never settle it. So they check the fields of the cache at
 * intervals.
 *
 * @param maxWaitMs the maximum time that a request waits for a fetch, in milliseconds. After this
 * time, a key that is not cached counts as unknown
 * @param keepAlive keeps the invocation alive until the fetch has ended
 */
export function createKeySource(
  url: string,
  maxWaitMs: number,
  keepAlive: (fetched: Promise<void>) => void,
): KeySource {
  const keys = new KeyCache(url);
  return async function keyFor(kid) {
    const now = Date.now();
    if (keys.needsFetch(kid, now)) {
      const fetched = keys.fetch(now);
      keepAlive(fetched);
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
  /** The time until which a fetch may be running; 0 if no fetch is running. */
  #fetchingUntil = 0;

  constructor(url: string) {
    this.#url = url;
  }

  has(kid: string, now: number): boolean {
    return elapsedMs(this.#fetchedAt, now) < STALE_MS && this.#keys.some((key) => key.kid === kid);
  }

  /**
   * Returns a key. The keys stay usable if the clock is set back by less than `STALE_MS`.
   *
   * @returns undefined if there is no such key, or if the keys are too old
   */
  find(kid: string): HonoJsonWebKey | undefined {
    if (Math.abs(Date.now() - this.#fetchedAt) >= STALE_MS) return undefined;
    return this.#keys.find((key) => key.kid === kid);
  }

  needsFetch(kid: string, now: number): boolean {
    if (this.#isFetching(now) || elapsedMs(this.#failedAt, now) < BACKOFF_MS) return false;
    const ageMs = elapsedMs(this.#fetchedAt, now);
    return ageMs >= (this.has(kid, now) ? FRESH_MS : REFETCH_MS);
  }

  /**
   * Fetches the keys and replaces the cached keys. If the fetch fails, the cached keys stay. The
   * promise never rejects.
   */
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

  /** Waits until another request's fetch has ended, but at most `maxWaitMs`. */
  async waitForFetch(since: number, maxWaitMs: number): Promise<void> {
    // The loop limits the number of polls, because the clock of a Worker can stand still. It also
    // limits the time, because in a busy isolate each poll takes longer than `POLL_MS`.
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
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeOver = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([task, timeOver]);
  clearTimeout(timer as ReturnType<typeof setTimeout>);
}

/**
 * Returns the milliseconds since a time; infinity if the time is in the future, because the clock
 * was then set back.
 */
function elapsedMs(since: number, now: number): number {
  return now < since ? Number.POSITIVE_INFINITY : now - since;
}

/** @throws unless the issuer answers in time with a JWK set (RFC 7517) of at most `MAX_BYTES` */
async function fetchKeys(url: string): Promise<HonoJsonWebKey[]> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    // Redirects are not followed, because only the configuration decides where the keys come from.
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

/** Checks only that a key has the members `kid` and `kty`. `importKey` checks the other members. */
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
