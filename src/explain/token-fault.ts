import { decode } from "hono/utils/jwt/jwt";
import { printableSecretName } from "../config/exempt.ts";
import type { JwtConfig } from "../config/jwt.ts";
import type { ClaimPart } from "../config/key-expression.ts";
import type { HeaderFields } from "../request/header-fields.ts";
import type { Claims } from "../request/token.ts";

/** The reasons why a token is invalid, by the names of Hono's errors, whose messages quote the token. */
const FAULTS: Readonly<Record<string, string>> = {
  JwtTokenExpired: "the token has expired (exp)",
  JwtTokenNotBefore: "the token is not valid yet (nbf)",
  JwtTokenIssuer: "the token's issuer (iss) is not the configured one",
  JwtTokenAudience: "the token's audience (aud) is not the configured one",
  JwtPayloadRequiresAud: "the token has no audience (aud)",
  JwtTokenSignatureMismatched: "the token's signature is not valid",
  JwtTokenInvalid: "the header field has no JWT",
  JwtHeaderInvalid: "the token's header is not that of a JWT",
  JwtAlgorithmMismatch: "the token's algorithm (alg) is not the configured one",
};

/**
 * Returns why a request has no claim, as a part of a sentence. It contains no part of the token.
 *
 * @param claims the claims of the verified token; undefined if it is missing or invalid
 * @param error the error with which the verification has ended, if it has
 */
export function claimFault(
  part: ClaimPart,
  claims: Claims | undefined,
  error: unknown,
  { jwt, secrets, headers }: TokenFacts,
): string {
  if (claims)
    return `the token is valid, but its claim ${part.name} is missing, or no text or whole number`;
  if (!jwt) return "the configuration has no jwt";
  const value = headers.get(jwt.header);
  if (!value) return `the header field ${jwt.header} is missing`;
  if (jwt.kind === "secret" && !secrets.get(jwt.secret)) {
    return `the secret ${printableSecretName(jwt.secret)} is not set`;
  }
  if (error !== undefined) {
    const name = error instanceof Error ? error.name : "";
    return FAULTS[name] ?? "the token cannot be verified";
  }
  const token = jwt.header === "authorization" ? /^Bearer +(\S+)$/i.exec(value)?.[1] : value;
  if (!token) return `the header field ${jwt.header} has no Bearer token`;
  return jwt.kind === "jwks" ? keyFault(token, jwt.algs) : "the token is too long";
}

/** What an explanation needs to know about tokens. */
export interface TokenFacts {
  readonly jwt: JwtConfig | undefined;
  readonly secrets: ReadonlyMap<string, string>;
  readonly headers: HeaderFields;
}

/** Returns why no key of the issuer fits a token. */
function keyFault(token: string, algs: readonly string[]): string {
  try {
    const { alg, kid } = decode(token).header;
    if (!algs.some((each) => each === alg))
      return `the token's algorithm is not ${algs.join(" or ")}`;
    if (!kid) return "the token does not name its key (kid)";
    return "the issuer's keys could not be fetched, or have none with the token's kid and algorithm";
  } catch {
    return "the header field has no JWT";
  }
}
