import { createHmac, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { get, JSON_TYPE, OVERRIDE, SAME_ORIGIN, send } from "../vector.ts";

// This module creates its keys each time it loads, because private keys must not be stored in a repository.

const KEYS = generateKeyPairSync("rsa", { modulusLength: 2048 });
const OTHERS = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = KEYS.publicKey.export({ type: "spki", format: "pem" }).toString();
const JWK = KEYS.publicKey.export({ format: "jwk" });

/** The keys that the team publishes. */
export const TEAM_KEYS = { keys: [{ ...JWK, kid: "one", alg: "RS256", use: "sig" }] };
export const TEAM = "https://team.cloudflareaccess.com";
export const AUDIENCE = "0123456789abcdef".repeat(4);

const HEADER = { alg: "RS256", kid: "one", typ: "JWT" };
const now = Math.floor(Date.now() / 1000);
const CLAIMS = {
  iss: TEAM,
  aud: [AUDIENCE],
  email: "ada@example.com",
  iat: now - 10,
  exp: now + 3600,
};

function encoded(...parts: readonly object[]): string {
  return parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
}

function rs(claims: object = CLAIMS, header: object = HEADER, key: KeyObject = KEYS.privateKey) {
  const text = encoded(header, claims);
  return `${text}.${createSign("RSA-SHA256").update(text).sign(key).toString("base64url")}`;
}

function hs(header: object, secret: string | Buffer): string {
  const text = encoded(header, CLAIMS);
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
}

/** A valid token, which opens the API. */
export const VALID = rs();
/** A valid token of a program with a service token. */
export const VALID_PROGRAM = rs({ ...CLAIMS, email: undefined, common_name: "ci.access" });

const field = (token: string) => `Cf-Access-Jwt-Assertion: ${token}`;
const jwt = (name: string, token: string) => get(name, field(token));
const without = (name: keyof typeof CLAIMS) => rs({ ...CLAIMS, [name]: undefined });
const [head = "", body = "", signature = ""] = VALID.split(".");

export const access = [
  jwt("an empty token", ""),
  jwt("no token", "x"),
  jwt("no signature", `${head}.${body}.`),
  jwt("two parts", `${head}.${body}`),
  jwt("a part of the signature", VALID.slice(0, -4)),
  jwt("other claims", `${head}.${encoded({ ...CLAIMS, email: "eve@example.com" })}.${signature}`),
  jwt("the algorithm none", `${encoded({ alg: "none", kid: "one" }, CLAIMS)}.`),
  jwt("the algorithm None", `${encoded({ alg: "None", kid: "one" }, CLAIMS)}.${signature}`),
  jwt("HS256 with the public key", hs({ ...HEADER, alg: "HS256" }, PEM)),
  jwt(
    "HS256 with the modulus",
    hs({ ...HEADER, alg: "HS256" }, Buffer.from(JWK.n ?? "", "base64url")),
  ),
  jwt("HS256 with no key", hs({ ...HEADER, alg: "HS256" }, "")),
  jwt("RS384 in the header", rs(CLAIMS, { ...HEADER, alg: "RS384" })),
  jwt("no algorithm", rs(CLAIMS, { kid: "one" })),
  jwt("another key", rs(CLAIMS, HEADER, OTHERS.privateKey)),
  jwt(
    "a key in the header",
    rs(CLAIMS, { ...HEADER, jwk: OTHERS.publicKey.export({ format: "jwk" }) }, OTHERS.privateKey),
  ),
  jwt(
    "a URL of keys in the header",
    rs(CLAIMS, { ...HEADER, jku: "https://evil.example/keys" }, OTHERS.privateKey),
  ),
  jwt("an unknown key", rs(CLAIMS, { ...HEADER, kid: "two" })),
  jwt("no name of a key", rs(CLAIMS, { alg: "RS256" })),
  jwt("a critical field", rs(CLAIMS, { ...HEADER, crit: ["exp"] })),
  jwt("another audience", rs({ ...CLAIMS, aud: ["f".repeat(64)] })),
  jwt("a part of the audience", rs({ ...CLAIMS, aud: AUDIENCE.slice(0, 63) })),
  jwt("a list in the audience", rs({ ...CLAIMS, aud: [[AUDIENCE]] })),
  jwt("no audience", without("aud")),
  jwt("another issuer", rs({ ...CLAIMS, iss: "https://evil.cloudflareaccess.com" })),
  jwt("a longer issuer", rs({ ...CLAIMS, iss: `${TEAM}.evil.example` })),
  jwt("no issuer", without("iss")),
  jwt("an end in the past", rs({ ...CLAIMS, exp: now - 1 })),
  jwt("no end", without("exp")),
  jwt("an end that is a text", rs({ ...CLAIMS, exp: `${now + 3600}` })),
  jwt("a start in the future", rs({ ...CLAIMS, nbf: now + 3600 })),
  jwt("no email", without("email")),
  jwt("an email with a line break", rs({ ...CLAIMS, email: "ada@example.com\nroot" })),
  jwt("an email that is an object", rs({ ...CLAIMS, email: { toString: "ada@example.com" } })),
  get("the token twice", field(VALID), field(VALID)),
  get("the token in Authorization", `Authorization: Bearer ${VALID}`),
  get("the token as a cookie", `Cookie: CF_Authorization=${VALID}`),
  get("the email alone", "Cf-Access-Authenticated-User-Email: ada@example.com"),
  send(
    "another site",
    ["PUT", "/_weir/api/overrides"],
    OVERRIDE,
    JSON_TYPE,
    field(VALID),
    "Sec-Fetch-Site: cross-site",
  ),
  get("another site that reads", field(VALID), "Sec-Fetch-Site: cross-site"),
  get("a service token", "CF-Access-Client-Id: ci.access", "CF-Access-Client-Secret: secret"),
];

/** Changes with a valid token of a user that pages of other sites may have sent. */
export const accessForgeries = [
  ["no CSRF token", ...SAME_ORIGIN],
  ["another CSRF token", ...SAME_ORIGIN, "X-Weir-Csrf: x"],
  ["another origin", "Origin: https://evil.example"],
  ["the origin null", "Origin: null"],
].map(([name = "", ...fields]) => ({
  ...send(name, ["PUT", "/_weir/api/overrides"], OVERRIDE, JSON_TYPE, field(VALID), ...fields),
  refused: 403,
}));
