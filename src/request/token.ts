import type { HonoJsonWebKey } from "hono/utils/jwt/jws";
import { decode, verify } from "hono/utils/jwt/jwt";
import { JwtTokenIssuedAt, JwtTokenNotBefore } from "hono/utils/jwt/types";
import type { JwtConfig } from "../config/jwt.ts";
import type { ClaimPart } from "../config/key.ts";
import type { ReadonlyHeaders } from "./headers.ts";
import { withTimeout } from "./timeout.ts";

/** The claims of a verified token. They can have any type. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns a claim as a key's value. A claim is present only if it is a whole number or a text that is not empty. A
 * number that a double cannot hold exactly counts as absent: JSON.parse would round it, so two clients with different
 * numbers could share a counter.
 */
export function readClaim(claims: Claims | undefined, part: ClaimPart): string | undefined {
  return keyText(findClaim(claims, part));
}

/**
 * Returns the elements of a claim that is a list, such as a list of roles; undefined if the claim is not a list.
 * Omits elements that {@link readClaim} would treat as absent.
 */
export function readClaimList(
  claims: Claims | undefined,
  part: ClaimPart,
): readonly string[] | undefined {
  const claim = findClaim(claims, part);
  return Array.isArray(claim) ? claim.map(keyText).filter((text) => text !== undefined) : undefined;
}

/** Returns a claim that is a whole number from 0, or a text of digits; otherwise the reason why there is none. */
export function readClaimNumber(claims: Claims, part: ClaimPart): number | "missing" | "invalid" {
  const claim = findClaim(claims, part);
  if (claim === undefined || claim === null) return "missing";
  const number = typeof claim === "string" && /^\d{1,15}$/.test(claim) ? Number(claim) : claim;
  return Number.isInteger(number) && (number as number) >= 0
    ? Math.abs(number as number)
    : "invalid";
}

function findClaim(claims: Claims | undefined, { name, pointer = [name] }: ClaimPart): unknown {
  let value: unknown = claims;
  for (const each of pointer) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, each)) {
      return undefined;
    }
    // Besides its elements, a list has other properties, such as `length`.
    if (Array.isArray(value) && !/^\d+$/.test(each)) return undefined;
    value = (value as Claims)[each];
  }
  return value;
}

function keyText(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

// Weir verifies tokens with Hono, which is a dependency anyway, and caches an issuer's keys itself. Verification adds
// 2.4 KiB after gzip. The package jose (6.2.17, in November 2026) would add 5.3 KiB for `jwtVerify` alone.
//
// jose's createRemoteJWKSet does not suit Workers. It starts a fetch for each waiting request, and does not use
// `waitUntil` to continue a fetch after its request. A request waits for the whole fetch. After a failed fetch, there
// is no cool-down, so an issuer that is down receives a fetch for each token. Keys above their maximum age are not
// used, even if no new keys can be fetched.

/** The maximum age of keys that are used without a new fetch, in milliseconds. */
const FRESH_MS = 10 * 60_000;
/** The maximum age of keys that are used if fetches fail, in milliseconds. */
const STALE_MS = 60 * 60_000;
/**
 * The time after a fetch, in milliseconds, in which an unknown `kid` causes no new fetch. Clients choose the `kid`,
 * so random values must not each cause a fetch.
 */
const REFETCH_MS = 60_000;
/** The time after a failed fetch, in milliseconds, in which no new fetch starts. */
const BACKOFF_MS = 10_000;
/** The time after which a fetch is aborted, in milliseconds. Requests can stop waiting earlier: see `maxWaitMs`. */
const TIMEOUT_MS = 2000;
/** The interval in milliseconds at which a request checks whether another request's fetch has ended. */
const POLL_MS = 10;
/** The maximum size of a key set, in bytes. Larger key sets are refused. */
const MAX_BYTES = 256 * 1024;

/**
 * Caches an issuer's keys in this isolate. Only one request at a time fetches the keys.
 *
 * The fetch continues if the client of this request hangs up, and counts as running for at most `TIMEOUT_MS`. So no
 * client can prevent later fetches. During a fetch, other requests use the cached keys. If its key is not cached, a
 * request checks the cache at intervals. It cannot wait for the promise of another request, because the runtime may
 * never settle this promise.
 */
class KeyCache {
  readonly #url: string;
  readonly #maxWaitMs: number;
  readonly #keepAlive: (fetched: Promise<void>) => void;
  #keys: readonly HonoJsonWebKey[] = [];
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  /** The time until which a fetch may be running; 0 if no fetch is running. */
  #fetchingUntil = 0;

  /**
   * @param maxWaitMs the maximum time that a request waits for a fetch, in milliseconds. After this
   * time, a key that is not cached counts as unknown
   * @param keepAlive keeps the invocation alive until the fetch has ended
   */
  constructor(url: string, maxWaitMs: number, keepAlive: (fetched: Promise<void>) => void) {
    this.#url = url;
    this.#maxWaitMs = maxWaitMs;
    this.#keepAlive = keepAlive;
  }

  /**
   * Returns the key with this name. Returns undefined if there is none, if the keys cannot be fetched, or if they are
   * too old. The keys stay usable if the clock is set back by less than `STALE_MS`.
   */
  async keyFor(kid: string): Promise<HonoJsonWebKey | undefined> {
    const now = Date.now();
    if (this.#needsFetch(kid, now)) {
      const fetched = this.#fetch(now);
      this.#keepAlive(fetched);
      await withTimeout(fetched, this.#maxWaitMs, () => {});
    } else if (!this.#has(kid, now)) {
      await this.#waitForFetch(now);
    }
    if (Math.abs(Date.now() - this.#fetchedAt) >= STALE_MS) return undefined;
    return this.#keys.find((key) => key.kid === kid);
  }

  #has(kid: string, now: number): boolean {
    return elapsedMs(this.#fetchedAt, now) < STALE_MS && this.#keys.some((key) => key.kid === kid);
  }

  #needsFetch(kid: string, now: number): boolean {
    if (this.#isFetching(now) || elapsedMs(this.#failedAt, now) < BACKOFF_MS) return false;
    const ageMs = elapsedMs(this.#fetchedAt, now);
    return ageMs >= (this.#has(kid, now) ? FRESH_MS : REFETCH_MS);
  }

  /** Fetches the keys. If the fetch fails, the cached keys stay. Never rejects. */
  async #fetch(now: number): Promise<void> {
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
  async #waitForFetch(since: number): Promise<void> {
    // The number of polls is limited, because the clock of a Worker can stand still. The time is limited too, because
    // in a busy isolate each poll takes longer than `POLL_MS`.
    let polls = Math.ceil(this.#maxWaitMs / POLL_MS);
    while (
      polls-- > 0 &&
      this.#isFetching(Date.now()) &&
      elapsedMs(since, Date.now()) < this.#maxWaitMs
    ) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  #isFetching(now: number): boolean {
    return now < this.#fetchingUntil && this.#fetchingUntil - now <= TIMEOUT_MS;
  }
}

/** Returns infinity for a time in the future, because the clock was then set back. */
function elapsedMs(since: number, now: number): number {
  return now < since ? Number.POSITIVE_INFINITY : now - since;
}

/** @throws unless the issuer answers in time with a JWK set (RFC 7517) of at most `MAX_BYTES` */
async function fetchKeys(url: string): Promise<HonoJsonWebKey[]> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    // Redirects are not followed: only the configuration decides where the keys come from.
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const set: unknown = JSON.parse(await readText(response));
  const { keys } = Object(set) as { keys?: unknown };
  if (!Array.isArray(keys)) throw new Error("not a JWK set");
  // `importKey` checks the other members.
  return keys.filter((key) => typeof key === "object" && key && "kid" in key && "kty" in key);
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    // This exception cancels the rest of the body.
    if (bytes > MAX_BYTES) throw new Error("too long");
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** @returns the claims of a request's token; undefined if the request has no valid token */
export type ClaimsReader = (headers: ReadonlyHeaders) => Promise<Claims | undefined>;

/** The maximum length of a header with a token, in characters, because verifying takes CPU time. */
const MAX_FIELD_LENGTH = 16 * 1024;

/**
 * The time by which an issuer's clock may be ahead of Cloudflare's clock, in seconds. Otherwise a token could be
 * refused in its first second. An expired token gets no such time.
 */
const LEEWAY_S = 5;

/**
 * Returns a function that verifies tokens.
 *
 * Only the configuration, and never a token, sets the allowed algorithm. So the algorithm `none` is refused, and a
 * public key is never used as the secret of a symmetric algorithm.
 *
 * @param timeoutMs the time limit of a decision, in milliseconds. A request waits for an issuer's keys for at most
 * half of this time
 * @param keepAlive keeps the invocation alive until a fetch of the keys has ended, even if the client hangs up
 * @param onToken called with the claims of a valid token, or with the error of an invalid one, which may quote the token
 */
export function createClaimsReader(
  jwt: JwtConfig,
  secrets: ReadonlyMap<string, string>,
  timeoutMs: number,
  keepAlive: (task: Promise<void>) => void,
  onToken?: (claims: Claims | undefined, error?: unknown) => void,
): ClaimsReader {
  const verifyToken =
    jwt.kind === "secret"
      ? createSecretVerifier(jwt, secrets)
      : createJwksVerifier(jwt, timeoutMs, keepAlive);
  return async function readClaims(headers) {
    const token = tokenIn(headers, jwt.header);
    if (!token) return undefined;
    try {
      const claims = await verifyToken(token);
      if (claims) checkStart(claims, token);
      onToken?.(claims);
      return claims;
    } catch (error) {
      // An invalid token has no claims. The errors are not logged, because they quote the token.
      onToken?.(undefined, error);
      return undefined;
    }
  };
}

/** @throws if the token is valid or issued only after now and the leeway. The error may quote the token */
function checkStart({ nbf, iat }: Claims, token: string): void {
  const latest = Date.now() / 1000 + LEEWAY_S;
  const isLater = (time: unknown) =>
    time !== undefined && !(Number.isFinite(time) && (time as number) <= latest);
  if (isLater(nbf)) throw new JwtTokenNotBefore(token);
  if (isLater(iat)) throw new JwtTokenIssuedAt(latest, Number(iat));
}

function tokenIn(headers: ReadonlyHeaders, header: string): string | undefined {
  const value = headers.get(header);
  if (!value || value.length > MAX_FIELD_LENGTH) return undefined;
  return header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
}

/** Returns the claims of a valid token. @throws if the token is invalid */
type Verifier = (token: string) => Promise<Claims | undefined>;

function createSecretVerifier(
  jwt: JwtConfig & { kind: "secret" },
  secrets: ReadonlyMap<string, string>,
): Verifier {
  const secret = secrets.get(jwt.secret);
  let key: CryptoKey | undefined;
  return async function verifyToken(token) {
    // With an empty key, anyone could sign a token.
    if (!secret) return undefined;
    key ??= await importSecret(secret, jwt.alg);
    return verify(token, key, { alg: jwt.alg, ...requirements(jwt, decode(token).header.typ) });
  };
}

/** Imports the secret, because Hono would search a text for the words of a PEM document. */
function importSecret(secret: string, alg: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: alg.replace("HS", "SHA-") };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, [
    "verify",
  ]);
}

function createJwksVerifier(
  jwt: JwtConfig & { kind: "jwks" },
  timeoutMs: number,
  keepAlive: (task: Promise<void>) => void,
): Verifier {
  // The other half is for the store. Otherwise a slow issuer would leave requests undecided.
  const keys = new KeyCache(jwt.url, timeoutMs / 2, keepAlive);
  return async function verifyToken(token) {
    const { alg: sentAlg, kid, typ } = decode(token).header;
    const alg = jwt.algs.find((allowed) => allowed === sentAlg);
    // A token that cannot be valid must cause no fetch of the keys.
    if (typeof kid !== "string" || kid === "" || alg === undefined) return undefined;
    const key = await keys.keyFor(kid);
    // An issuer may restrict a key to one algorithm (RFC 7517, section 4.4).
    if (!key || (key.alg && key.alg !== alg)) return undefined;
    return verify(token, key, { alg, ...requirements(jwt, typ) });
  };
}

/** Returns Hono's options for checking a token, except those for `alg` and `exp`. */
function requirements({ issuer, audience }: JwtConfig, typ: unknown) {
  return {
    // Hono gives an issuer's clock no leeway: see `checkStart`.
    nbf: false,
    iat: false,
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
    // The type of OAuth access tokens (RFC 9068). By default, Hono accepts only "JWT".
    ...(typeof typ === "string" && /^(application\/)?at\+jwt$/i.test(typ) && { typ: "at+jwt" }),
  };
}
