import { decode, verify } from "hono/utils/jwt/jwt";
import type { JwtConfig } from "../config/jwt.ts";
import type { Claims } from "./claims.ts";
import type { HeaderFields } from "./header-fields.ts";
import { createKeySource } from "./jwks.ts";

// Weir verifies tokens with Hono, which is a dependency already. Verification adds 2.4 KiB after
// gzip. The package jose (6.2.17, in November 2026) would add 5.3 KiB for `jwtVerify` alone, and
// 6.1 KiB with key sets. See jwks.ts for the reasons not to fetch keys with jose.

/** @returns the claims of a request's token; undefined if the request has no valid token */
export type ClaimsReader = (headers: HeaderFields) => Promise<Claims | undefined>;

/**
 * The maximum length of a header field that is read, in characters. Verifying a longer token would
 * take much CPU time.
 */
const MAX_FIELD_LENGTH = 16 * 1024;

/**
 * Returns a function that verifies tokens.
 *
 * Only the configuration sets the allowed algorithms, and a token cannot change them. So the
 * algorithm `none` is refused, and a public key is never used as the secret of a symmetric
 * algorithm.
 *
 * @param timeoutMs the time limit of a decision, in milliseconds. A request waits for an issuer's
 * keys for at most half of this time
 * @param keepAlive keeps the invocation alive until a fetch of the keys has ended, even if the client
 * hangs up
 * @param onInvalid called with the error if a token is invalid. The error may quote the token
 */
export function createClaimsReader(
  jwt: JwtConfig,
  secrets: ReadonlyMap<string, string>,
  timeoutMs: number,
  keepAlive: (task: Promise<void>) => void,
  onInvalid?: (error: unknown) => void,
): ClaimsReader {
  const verifyToken =
    jwt.kind === "secret"
      ? createSecretVerifier(jwt, secrets)
      : createJwksVerifier(jwt, timeoutMs, keepAlive);
  return async function readClaims(headers) {
    const token = tokenIn(headers, jwt.header);
    if (!token) return undefined;
    try {
      return await verifyToken(token);
    } catch (error) {
      // An invalid token has no claims. The errors are not logged, because they quote the token.
      onInvalid?.(error);
      return undefined;
    }
  };
}

function tokenIn(headers: HeaderFields, header: string): string | undefined {
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
    // If the key is empty, anyone can sign a token.
    if (!secret) return undefined;
    key ??= await importSecret(secret, jwt.alg);
    return verify(token, key, { alg: jwt.alg, ...requirements(jwt, decode(token).header.typ) });
  };
}

/**
 * Imports the secret as a key. If Hono received a text instead of a key, it would search the text
 * for the words of a PEM document.
 */
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
  // The other half of the time is for the store. Otherwise a slow issuer would leave requests
  // undecided.
  const keyFor = createKeySource(jwt.url, timeoutMs / 2, keepAlive);
  return async function verifyToken(token) {
    const { alg: sentAlg, kid, typ } = decode(token).header;
    const alg = jwt.algs.find((allowed) => allowed === sentAlg);
    // A token that cannot be valid must not cause a fetch of the keys.
    if (typeof kid !== "string" || kid === "" || alg === undefined) return undefined;
    const key = await keyFor(kid);
    // An issuer may restrict a key to one algorithm (RFC 7517, section 4.4).
    if (!key || (key.alg && key.alg !== alg)) return undefined;
    return verify(token, key, { alg, ...requirements(jwt, typ) });
  };
}

/** Returns Hono's options for all checks of a token except those of `alg`, `exp` and `nbf`. */
function requirements({ issuer, audience }: JwtConfig, typ: unknown) {
  return {
    // `iat` is not checked, because an issuer's clock may be a second ahead of Cloudflare's clock.
    iat: false,
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
    // The type of OAuth access tokens (RFC 9068). Without this option, Hono accepts only "JWT".
    ...(typeof typ === "string" && /^(application\/)?at\+jwt$/i.test(typ) && { typ: "at+jwt" }),
  };
}
