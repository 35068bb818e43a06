import { createHmac, createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { GOLD, SECRETS } from "../rules.ts";
import { head, type Vector, type VectorClass } from "../vector.ts";

// This module creates its RSA keys and tokens each time it loads, because private keys must not be
// stored in a repository.

const KEYS = generateKeyPairSync("rsa", { modulusLength: 2048 });
const OTHERS = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PEM = KEYS.publicKey.export({ type: "spki", format: "pem" }).toString();
const JWK = KEYS.publicKey.export({ format: "jwk" });

/**
 * The keys that the issuer publishes. One of them is a shared secret, which an issuer should not
 * publish. Weir must not accept it.
 */
export const JWKS = {
  keys: [
    { ...JWK, kid: "one", alg: "RS256", use: "sig" },
    { kty: "oct", kid: "shared", k: Buffer.from("shared").toString("base64url") },
  ],
};

const claims = { sub: "alice" };

function encoded(header: object | string, payload: object | string): string {
  return [header, payload]
    .map((part) =>
      Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url"),
    )
    .join(".");
}

function hs(
  header: object | string,
  payload: object | string,
  secret: string,
  hash = "sha256",
): string {
  const text = encoded(header, payload);
  return `${text}.${createHmac(hash, secret).update(text).digest("base64url")}`;
}

function rs(header: object, payload: object, key: KeyObject = KEYS.privateKey): string {
  const text = encoded(header, payload);
  return `${text}.${createSign("RSA-SHA256").update(text).sign(key).toString("base64url")}`;
}

function token(name: string, client: string, text: string, scheme = "Bearer "): Vector {
  return {
    name,
    lines: head("/token", `Authorization: ${scheme}${text}`),
    counted: { token: client },
  };
}

/** A request whose key is the nested claim `/app_metadata/org`. */
function org(name: string, client: string, payload: object | string): Vector {
  const text = hs(HS256, payload, JWT_SECRET);
  return {
    name: `nested: ${name}`,
    lines: head("/org", `Authorization: Bearer ${text}`),
    counted: { org: client },
  };
}

/** A request whose tier depends on the list `/app_metadata/roles`. */
function role(name: string, payload: object | string, secret = JWT_SECRET, quota?: number): Vector {
  const text = hs(HS256, payload, secret);
  return {
    name: `roles: ${name}`,
    lines: head("/role", `Authorization: Bearer ${text}`),
    counted: { role: "client" },
    ...(quota && { quotas: { role: quota } }),
  };
}

/**
 * The name of the client if a request has an invalid token. Weir then uses the address as the key.
 */
const ADDRESS = "by address";

const { JWT_SECRET } = SECRETS;
const HS256 = { alg: "HS256", typ: "JWT" };
const good = hs(HS256, claims, JWT_SECRET);
const [goodHead, goodClaims, goodMac] = good.split(".") as [string, string, string];

/** Vectors for a Worker whose tokens are signed with a secret. */
export const sharedTokens: VectorClass = {
  about: "Tokens signed with a secret: forged, expired, unsigned, huge",
  vectors: [
    token("good", "alice", good),
    token("good, with another case of Bearer", "alice", good, "bearer   "),
    token(
      "good, with other claims",
      "alice",
      hs(HS256, { ...claims, plan: "x", iat: 1 }, JWT_SECRET),
    ),
    token("another subject", "bob", hs(HS256, { sub: "bob" }, JWT_SECRET)),
    token(
      "a subject that is the address",
      "address as text",
      hs(HS256, { sub: "203.0.113.7" }, JWT_SECRET),
    ),
    token("a subject called __proto__", "__proto__", hs(HS256, { sub: "__proto__" }, JWT_SECRET)),
    { ...token("none", ADDRESS, ""), lines: head("/token") },
    token("alg none", ADDRESS, `${encoded({ alg: "none" }, claims)}.`),
    token("alg None", ADDRESS, `${encoded({ alg: "None" }, claims)}.`),
    token("alg none with a signature", ADDRESS, hs({ alg: "none" }, claims, JWT_SECRET)),
    token("no alg", ADDRESS, hs({ typ: "JWT" }, claims, JWT_SECRET)),
    token("two algs", ADDRESS, hs('{"alg":"HS256","alg":"none"}', claims, "")),
    token("another alg", ADDRESS, hs({ alg: "HS512" }, claims, JWT_SECRET, "sha512")),
    token("another secret", ADDRESS, hs(HS256, claims, "guess")),
    token("an empty secret", ADDRESS, hs(HS256, claims, "")),
    token("the secret's name", ADDRESS, hs(HS256, claims, "JWT_SECRET")),
    token("expired", ADDRESS, hs(HS256, { ...claims, exp: 1 }, JWT_SECRET)),
    token("expired as a text", ADDRESS, hs(HS256, { ...claims, exp: "1" }, JWT_SECRET)),
    token("not yet in force", ADDRESS, hs(HS256, { ...claims, nbf: 99_999_999_999 }, JWT_SECRET)),
    token("without a signature", ADDRESS, `${goodHead}.${goodClaims}.`),
    token("without a third part", ADDRESS, `${goodHead}.${goodClaims}`),
    token("with a fourth part", ADDRESS, `${good}.x`),
    token(
      "other claims under the signature",
      ADDRESS,
      `${encoded(HS256, { sub: "eve" })}.${goodMac}`,
    ),
    token("another `typ`", ADDRESS, hs({ ...HS256, typ: "dpop+jwt" }, claims, JWT_SECRET)),
    token(
      "a subject that is not a text",
      ADDRESS,
      hs(HS256, { sub: { toString: "x" } }, JWT_SECRET),
    ),
    token("a subject that is a number", "42", hs(HS256, { sub: 42 }, JWT_SECRET)),
    token("a subject above 2^53", ADDRESS, hs(HS256, '{"sub":9007199254740993}', JWT_SECRET)),
    token(
      "the next subject above 2^53",
      ADDRESS,
      hs(HS256, '{"sub":9007199254740995}', JWT_SECRET),
    ),
    token("a subject that is empty", ADDRESS, hs(HS256, { sub: "" }, JWT_SECRET)),
    token(
      "a subject that is inherited",
      ADDRESS,
      hs(HS256, '{"__proto__":{"sub":"eve"}}', JWT_SECRET),
    ),
    token("claims that are a list", ADDRESS, hs(HS256, "[]", JWT_SECRET)),
    token("claims that are null", ADDRESS, hs(HS256, "null", JWT_SECRET)),
    token("claims that are not JSON", ADDRESS, hs(HS256, "{", JWT_SECRET)),
    token("nonsense", ADDRESS, "a.b.c"),
    token("dots", ADDRESS, ".".repeat(1000)),
    token("bytes that are not UTF-8", ADDRESS, "\xff.\xff.\xff"),
    token("good, without Bearer", ADDRESS, good, ""),
    token("good, as Basic", ADDRESS, good, "Basic "),
    token("two good tokens", ADDRESS, `${good}, Bearer ${good}`),
    {
      name: "a good token in one of two fields",
      lines: head("/token", `Authorization: Bearer ${good}`, "Authorization: Bearer 1"),
      counted: { token: ADDRESS },
    },
    org("given", "acme", { app_metadata: { org: "acme" } }),
    org("beside other claims", "acme", { sub: "a", app_metadata: { org: "acme", plan: "x" } }),
    org("a number", "42", { app_metadata: { org: 42 } }),
    org("absent", ADDRESS, { app_metadata: {} }),
    org("at the top", ADDRESS, { org: "acme", "app_metadata/org": "x", "/app_metadata/org": "x" }),
    org("in a list", ADDRESS, { app_metadata: [{ org: "acme" }] }),
    org("a list", ADDRESS, { app_metadata: { org: ["acme"] } }),
    org("an object", ADDRESS, { app_metadata: { org: { org: "acme" } } }),
    org("a text in place of the object", ADDRESS, { app_metadata: "org" }),
    org("null in place of the object", ADDRESS, { app_metadata: null }),
    org("inherited", ADDRESS, '{"app_metadata":{"__proto__":{"org":"eve"}}}'),
    org("inherited by all claims", ADDRESS, '{"__proto__":{"app_metadata":{"org":"eve"}}}'),
    org("above 2^53", ADDRESS, '{"app_metadata":{"org":9007199254740993}}'),
    role("gold", { app_metadata: { roles: ["user", "gold"] } }, JWT_SECRET, GOLD),
    role("gold as a text", { app_metadata: { roles: "gold" } }, JWT_SECRET, GOLD),
    role("none", { app_metadata: { roles: [] } }),
    role("other names", { app_metadata: { roles: ["Gold", "gold ", "goldx", "__proto__"] } }),
    role("nested lists", { app_metadata: { roles: [["gold"]] } }),
    role("an object", { app_metadata: { roles: { 0: "gold", gold: true } } }),
    role("at the top", { roles: ["gold"] }),
    role("gold, with another secret", { app_metadata: { roles: ["gold"] } }, "guess"),
    token(
      "good, but 100 KB long",
      ADDRESS,
      hs(HS256, { ...claims, junk: "a".repeat(75_000) }, JWT_SECRET),
    ),
  ],
};

const RS256 = { alg: "RS256", typ: "JWT", kid: "one" };

/** Vectors for a Worker whose tokens are signed by an issuer that publishes its keys. */
export const issuedTokens: VectorClass = {
  about: "Tokens signed by an issuer: with the public key as a secret, and with any `kid`",
  vectors: [
    token("good", "alice", rs(RS256, claims)),
    token("good, with a later expiry", "alice", rs(RS256, { ...claims, exp: 99_999_999_999 })),
    token("HS256 with the public key's PEM", ADDRESS, hs({ ...RS256, alg: "HS256" }, claims, PEM)),
    token(
      "HS256 with the PEM without its last line break",
      ADDRESS,
      hs({ ...RS256, alg: "HS256" }, claims, PEM.trim()),
    ),
    token(
      "HS256 with the public key's JWK",
      ADDRESS,
      hs({ ...RS256, alg: "HS256" }, claims, JSON.stringify(JWK)),
    ),
    token("HS256 with the modulus", ADDRESS, hs({ ...RS256, alg: "HS256" }, claims, String(JWK.n))),
    token("an HMAC with the header of RS256", ADDRESS, hs(RS256, claims, PEM)),
    token(
      "HS256 with the published secret",
      ADDRESS,
      hs({ alg: "HS256", kid: "shared" }, claims, "shared"),
    ),
    token(
      "RS256 with the published secret",
      ADDRESS,
      hs({ alg: "RS256", kid: "shared" }, claims, "shared"),
    ),
    token("the key of another issuer", ADDRESS, rs(RS256, claims, OTHERS.privateKey)),
    token("alg none", ADDRESS, `${encoded({ ...RS256, alg: "none" }, claims)}.`),
    token("PS256", ADDRESS, rs({ ...RS256, alg: "PS256" }, claims)),
    token(
      "a key in the token's own header",
      ADDRESS,
      rs({ ...RS256, jwk: OTHERS.publicKey.export({ format: "jwk" }) }, claims, OTHERS.privateKey),
    ),
    token(
      "the attacker's keys in jku",
      ADDRESS,
      rs(
        { ...RS256, kid: "two", jku: "https://evil.example/jwks.json" },
        claims,
        OTHERS.privateKey,
      ),
    ),
    ...["", "two", "ONE", "../one", "/dev/null", "one' OR '1'='1", "__proto__", "constructor"].map(
      (kid) =>
        token(
          `kid ${JSON.stringify(kid)}`,
          ADDRESS,
          rs({ ...RS256, kid }, claims, OTHERS.privateKey),
        ),
    ),
    ...[null, 0, ["one"], { toString: "one" }].map((kid) =>
      token(`kid ${JSON.stringify(kid)}`, ADDRESS, rs({ ...RS256, kid }, claims)),
    ),
    token("no kid", ADDRESS, rs({ alg: "RS256" }, claims)),
    token("expired", ADDRESS, rs(RS256, { ...claims, exp: 1 })),
  ],
};
