import { decode, verify } from "hono/utils/jwt/jwt";
import type { JwtConfig } from "../config/jwt.ts";
import type { Claims } from "./claims.ts";
import { createKeySource } from "./jwks.ts";

// Hono, a dependency already, verifies tokens with 2.4 KiB of gzip. jose (6.2.17, in November 2026) would
// take 5.3 KiB for `jwtVerify` alone, and 6.1 KiB with key sets. See jwks.ts for its key fetch.

/** @returns the claims of a request's token; undefined without a valid token */
export type ClaimsReader = (headers: Headers) => Promise<Claims | undefined>;

/** The longest header field that is read, in characters. To verify a longer token would cost CPU. */
const MAX_FIELD_LENGTH = 16 * 1024;

/**
 * Prepares the verification of tokens.
 *
 * The configuration sets the algorithms; a token alone never does. So `none` is refused, and a public
 * key is never used as the secret of a symmetric algorithm.
 *
 * @param timeoutMs the time limit of a decision, in milliseconds. A request waits for an
 * issuer's keys at most half of it
 */
export function createClaimsReader(
  jwt: JwtConfig,
  secrets: ReadonlyMap<string, string>,
  timeoutMs: number,
): ClaimsReader {
  const verifyToken =
    jwt.kind === "secret" ? createSecretVerifier(jwt, secrets) : createJwksVerifier(jwt, timeoutMs);
  return async function readClaims(headers) {
    const token = tokenIn(headers, jwt.header);
    if (!token) return undefined;
    try {
      return await verifyToken(token);
    } catch {
      // An invalid token has no claims. The errors are not logged, because they quote the token.
      return undefined;
    }
  };
}

function tokenIn(headers: Headers, header: string): string | undefined {
  const value = headers.get(header);
  if (!value || value.length > MAX_FIELD_LENGTH) return undefined;
  return header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
}

/** @throws for an invalid token */
type Verifier = (token: string) => Promise<Claims | undefined>;

function createSecretVerifier(
  jwt: JwtConfig & { kind: "secret" },
  secrets: ReadonlyMap<string, string>,
): Verifier {
  const secret = secrets.get(jwt.secret);
  let key: CryptoKey | undefined;
  return async function verifyToken(token) {
    // Anyone could sign a token with an empty key.
    if (!secret) return undefined;
    key ??= await importSecret(secret, jwt.alg);
    return verify(token, key, { alg: jwt.alg, ...requirements(jwt, decode(token).header.typ) });
  };
}

/** Imports the secret as a key. Given a text, Hono would search it for the words of a PEM document. */
function importSecret(secret: string, alg: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: alg.replace("HS", "SHA-") };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, [
    "verify",
  ]);
}

function createJwksVerifier(jwt: JwtConfig & { kind: "jwks" }, timeoutMs: number): Verifier {
  // The store needs the other half. Otherwise a slow issuer would leave requests undecided.
  const keyFor = createKeySource(jwt.url, timeoutMs / 2);
  return async function verifyToken(token) {
    const { alg: sentAlg, kid, typ } = decode(token).header;
    const alg = jwt.algs.find((allowed) => allowed === sentAlg);
    // A token that cannot be valid must not cause a fetch of the keys.
    if (typeof kid !== "string" || alg === undefined) return undefined;
    const key = await keyFor(kid);
    // An issuer may restrict a key to one algorithm (RFC 7517, section 4.4).
    if (!key || (key.alg && key.alg !== alg)) return undefined;
    return verify(token, key, { alg, ...requirements(jwt, typ) });
  };
}

/** The requirements for a token besides `alg`, `exp` and `nbf`, as Hono's options. */
function requirements({ issuer, audience }: JwtConfig, typ: unknown) {
  return {
    // `iat` is not checked, because an issuer's clock may be a second ahead of the edge's.
    iat: false,
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
    // The type of OAuth's access tokens (RFC 9068). Without this option Hono accepts only "JWT".
    ...(typeof typ === "string" && /^(application\/)?at\+jwt$/i.test(typ) && { typ: "at+jwt" }),
  };
}
