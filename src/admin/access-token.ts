import { waitUntil } from "cloudflare:workers";
import { decode } from "hono/utils/jwt/jwt";
import { createClaimsReader } from "../request/token.ts";
import type { AccessApplication } from "./credentials.ts";
import { sha256 } from "./digest.ts";
import type { Operator } from "./operator.ts";

/** The header field in which Cloudflare Access sends the token of a signed-in user. */
export const HEADER = "cf-access-jwt-assertion";
/** The only algorithm with which Access signs. */
const ALG = "RS256";
/** The maximum time that a request waits for the team's keys, in milliseconds. */
const MAX_WAIT_MS = 2000;
/** The maximum length of a name in the audit list, which is that of an email address. */
const MAX_NAME = 254;

/** @returns undefined if the request has no valid token */
export type AccessReader = (headers: Headers) => Promise<Operator | undefined>;

/**
 * Creates a function that verifies the tokens of Access with the team's keys.
 * https://developers.cloudflare.com/cloudflare-one/identity/authorization-cookie/validating-json/
 */
export function createAccessReader({ team, audience, role }: AccessApplication): AccessReader {
  const jwt = {
    kind: "jwks",
    url: `${team}/cdn-cgi/access/certs`,
    algs: [ALG],
    header: HEADER,
    issuer: team,
    audience,
  } as const;
  // The reader waits for half of this time.
  const readClaims = createClaimsReader(jwt, new Map(), 2 * MAX_WAIT_MS, waitUntil);
  return async function readUser(headers) {
    const token = headers.get(HEADER);
    if (!token) return undefined;
    // Anyone can send a token, so only a token that may be valid causes a fetch of the keys.
    if (!mayBeValid(token, team, audience)) return undefined;
    const claims = await readClaims(headers);
    const { email, common_name: program } = claims ?? {};
    const name = email || program;
    if (typeof name !== "string" || !/^[\x21-\x7e]+$/.test(name) || name.length > MAX_NAME) {
      return undefined;
    }
    // Pages of other sites cannot read the token, so its digest proves that a page of Weir sent a change. A
    // program with a service token has no browser and no email address.
    const csrf = email ? await sha256(`csrf\n${token}`) : "";
    return { actor: `access:${name}`, role, csrf };
  };
}

/** Whether a token has the algorithm, the issuer, the audience and the time of a valid one. */
function mayBeValid(token: string, team: string, audience: string): boolean {
  try {
    const { header, payload } = decode(token);
    return (
      header.alg === ALG &&
      payload.iss === team &&
      [payload.aud].flat().includes(audience) &&
      typeof payload.exp === "number" &&
      payload.exp * 1000 > Date.now()
    );
  } catch {
    return false;
  }
}
