import { decode, verify, verifyWithJwks } from "hono/utils/jwt/jwt";
import type { JwtConfig } from "../config/jwt.ts";
import type { Claims } from "./claims.ts";
import { createKeySource } from "./jwks.ts";

/** @returns the claims of a request's token; undefined without one that can be verified */
export type ClaimsReader = (headers: Headers) => Promise<Claims | undefined>;

/** A token of more is nobody's, and would cost CPU to look at. */
const MAX_LENGTH = 16 * 1024;

/**
 * Prepares the verification of tokens.
 *
 * The algorithm is pinned by the configuration and never taken from a token alone: not `none`, and
 * not the public key of an asymmetric one as the secret of a symmetric one.
 */
export function createClaimsReader(
  jwt: JwtConfig,
  secrets: ReadonlyMap<string, string>,
  timeoutMs: number,
): ClaimsReader {
  const verified = jwt.kind === "secret" ? withSecret(jwt, secrets) : withJwks(jwt, timeoutMs);
  return async function readClaims(headers) {
    const token = tokenIn(headers, jwt.header);
    if (!token) return undefined;
    try {
      return await verified(token);
    } catch {
      // Whatever is wrong with a token, it names nobody. Errors quote it, so they are not reported.
      return undefined;
    }
  };
}

function tokenIn(headers: Headers, header: string): string | undefined {
  const value = headers.get(header);
  if (!value || value.length > MAX_LENGTH) return undefined;
  return header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
}

type Verify = (token: string) => Promise<Claims | undefined>;

function withSecret(jwt: JwtConfig & { kind: "secret" }, secrets: ReadonlyMap<string, string>) {
  const secret = secrets.get(jwt.secret);
  let key: CryptoKey | undefined;
  return async function verified(token: string) {
    // An empty key would verify what anybody can sign.
    if (!secret) return undefined;
    key ??= await importSecret(secret, jwt.alg);
    return verify(token, key, { alg: jwt.alg, ...expectations(jwt, decode(token).header.typ) });
  } satisfies Verify;
}

/** As a key, since of a text the library would guess by its words whether it is a PEM document. */
function importSecret(secret: string, alg: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: alg.replace("HS", "SHA-") };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, [
    "verify",
  ]);
}

function withJwks(jwt: JwtConfig & { kind: "jwks" }, timeoutMs: number) {
  // The other half of the deadline is the store's, so that a slow issuer leaves no request undecided.
  const keysFor = createKeySource(jwt.url, timeoutMs / 2);
  return async function verified(token: string) {
    const { alg, kid, typ } = decode(token).header;
    // Checked before the keys are asked for, which a token that cannot be good is not worth.
    if (typeof kid !== "string" || !jwt.algs.some((allowed) => allowed === alg)) return undefined;
    return verifyWithJwks(token, {
      keys: [...(await keysFor(kid))],
      allowedAlgorithms: jwt.algs,
      verification: expectations(jwt, typ),
    });
  } satisfies Verify;
}

/** What a token must say of itself, beside its being in force by `exp` and `nbf`. */
function expectations({ issuer, audience }: JwtConfig, typ: unknown) {
  return {
    // When it was made decides nothing, and an issuer's clock may be a second ahead of the edge's.
    iat: false,
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
    // The type of OAuth's access tokens (RFC 9068); without a word on it, only "JWT" would do.
    ...(typeof typ === "string" && /^(application\/)?at\+jwt$/i.test(typ) && { typ: "at+jwt" }),
  };
}
