import { sign } from "hono/utils/jwt/jwt";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { identifying, identifyingBy } from "./requests.ts";

type Jwt = NonNullable<ConfigInput["jwt"]>;

const NOW_S = 1_800_000_000;
const MINUTE_MS = 60_000;
const SECRET = "a secret of 32 bytes or of more";
const env = { JWT_SECRET: SECRET };
const HS256: Jwt = { secret: "JWT_SECRET" };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW_S * 1000 });
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/**
 * Returns a token with this header and payload. It is signed with HMAC-SHA-256, whatever algorithm
 * the header names.
 */
async function forged(header: object, payload: object, secret: string): Promise<string> {
  const encode = (part: object) =>
    btoa(JSON.stringify(part)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const text = `${encode(header)}.${encode(payload)}`;
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, [
    "sign",
  ]);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text)));
  const signature = btoa(String.fromCharCode(...mac))
    .replaceAll("+", "-")
    .replaceAll("/", "_");
  return `${text}.${signature.replace(/=+$/, "")}`;
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** Whether Weir identifies the client by the claim of its token, and not by its address. */
async function isCountedByClaim(jwt: Jwt, sent: Record<string, string>, bindings: object = env) {
  const identify = (key: string) => identifyingBy(key, { jwt }, { env: { ...bindings } })(sent);
  return (await identify("jwt:sub")) !== (await identify("ip"));
}

describe("a token signed with a secret", () => {
  const claims = { sub: "alice", exp: NOW_S + 60 };

  it("distinguishes clients by its claim", async () => {
    const identity = identifyingBy("jwt:sub", { jwt: HS256 }, { env });
    const identityFor = async (sub: string) => identity(bearer(await sign({ sub }, SECRET)));
    expect(await identityFor("alice")).toBe(await identityFor("alice"));
    expect(await identityFor("alice")).not.toBe(await identityFor("bob"));
  });

  it.each<[string, Jwt, () => Promise<Record<string, string>>, boolean]>([
    ["is valid", HS256, async () => bearer(await sign(claims, SECRET)), true],
    [
      "is valid without an expiry time",
      HS256,
      async () => bearer(await sign({ sub: "a" }, SECRET)),
      true,
    ],
    [
      "is valid with another HMAC that is configured",
      { ...HS256, alg: "HS512" },
      async () => bearer(await sign(claims, SECRET, "HS512")),
      true,
    ],
    [
      "is invalid with another HMAC",
      HS256,
      async () => bearer(await sign(claims, SECRET, "HS512")),
      false,
    ],
    [
      "is invalid with another secret",
      HS256,
      async () => bearer(await sign(claims, "other")),
      false,
    ],
    [
      "is invalid after its expiry time",
      HS256,
      async () => bearer(await sign({ ...claims, exp: NOW_S }, SECRET)),
      false,
    ],
    [
      "is invalid before its start time",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: NOW_S + 6 }, SECRET)),
      false,
    ],
    [
      "is invalid before the time of its issue",
      HS256,
      async () => bearer(await sign({ ...claims, iat: NOW_S + 6 }, SECRET)),
      false,
    ],
    [
      "is valid from an issuer whose clock is ahead by a second",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: NOW_S + 1, iat: NOW_S + 1 }, SECRET)),
      true,
    ],
    [
      "is valid from an issuer whose clock is ahead by five seconds",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: NOW_S + 5, iat: NOW_S + 5 }, SECRET)),
      true,
    ],
    [
      "is invalid with a start time that is no time",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: Number.NEGATIVE_INFINITY }, SECRET)),
      false,
    ],
    [
      "is invalid with a start time that is a text",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: String(NOW_S) as never }, SECRET)),
      false,
    ],
    [
      "is invalid a second after its expiry time",
      HS256,
      async () => bearer(await sign({ ...claims, exp: NOW_S - 1 }, SECRET)),
      false,
    ],
    [
      "is not used without the claim",
      HS256,
      async () => bearer(await sign({ exp: NOW_S + 60 }, SECRET)),
      false,
    ],
    [
      "is invalid with alg none",
      HS256,
      async () => bearer((await forged({ alg: "none" }, claims, SECRET)).replace(/[^.]*$/, "")),
      false,
    ],
    [
      "is invalid with alg none and a signature",
      HS256,
      async () => bearer(await forged({ alg: "none" }, claims, SECRET)),
      false,
    ],
    [
      "is valid with the type of an access token",
      HS256,
      async () => bearer(await forged({ alg: "HS256", typ: "at+jwt" }, claims, SECRET)),
      true,
    ],
    [
      "is invalid with another type",
      HS256,
      async () => bearer(await forged({ alg: "HS256", typ: "dpop+jwt" }, claims, SECRET)),
      false,
    ],
    [
      "is not read without Bearer",
      HS256,
      async () => ({ authorization: await sign(claims, SECRET) }),
      false,
    ],
    [
      "needs no Bearer in another header",
      { ...HS256, header: "X-Token" },
      async () => ({ "x-token": await sign(claims, SECRET) }),
      true,
    ],
    ["is invalid in a wrong form", HS256, async () => bearer("a.b.c"), false],
    ["is invalid above the maximum length", HS256, async () => bearer("a".repeat(20_000)), false],
    [
      "is valid from the configured issuer",
      { ...HS256, issuer: "me" },
      async () => bearer(await sign({ ...claims, iss: "me" }, SECRET)),
      true,
    ],
    [
      "is invalid from another issuer",
      { ...HS256, issuer: "me" },
      async () => bearer(await sign({ ...claims, iss: "me too" }, SECRET)),
      false,
    ],
    [
      "is valid for the configured audience",
      { ...HS256, audience: "api" },
      async () => bearer(await sign({ ...claims, aud: ["web", "api"] }, SECRET)),
      true,
    ],
    [
      "is invalid without an audience",
      { ...HS256, audience: "api" },
      async () => bearer(await sign(claims, SECRET)),
      false,
    ],
  ])("%s", async (_, jwt, sent, expected) => {
    expect(await isCountedByClaim(jwt, await sent())).toBe(expected);
  });

  it("is valid with a secret that contains words of a PEM document", async () => {
    const secret = "my PUBLIC PRIVATE secret";
    const token = await sign(claims, await hmac(secret));
    expect(await isCountedByClaim(HS256, bearer(token), { JWT_SECRET: secret })).toBe(true);
  });

  it.each([{}, { JWT_SECRET: "" }, { JWT_SECRET: " " }])(
    "is invalid if the secret is not set or blank: %j",
    async (bindings) => {
      expect(await isCountedByClaim(HS256, bearer(await sign(claims, SECRET)), bindings)).toBe(
        false,
      );
      const unsigned = await forged({ alg: "HS256" }, claims, " ");
      expect(await isCountedByClaim(HS256, bearer(unsigned), bindings)).toBe(false);
    },
  );

  it("is verified once for a request, even if several keys read it", async () => {
    const verify = vi.spyOn(crypto.subtle, "verify");
    const rules = [{ key: "jwt:sub" }, { key: ["jwt:sub", "path"] }, { key: "jwt:org | jwt:sub" }];
    const apply = identifying(rules, { jwt: HS256 }, { env });
    const token = await sign(claims, SECRET);
    expect(await apply(bearer(token))).toHaveLength(3);
    expect(verify).toHaveBeenCalledTimes(1);
  });
});

function hmac(secret: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, [
    "sign",
  ]);
}

describe("a token signed with an issuer's key", () => {
  const JWKS: Jwt = { jwks: "https://issuer.example.com/jwks.json" };
  const claims = { sub: "alice", exp: NOW_S + 24 * 3600 };
  let first: Issued;
  let second: Issued;

  interface Issued {
    readonly kid: string;
    readonly publicKey: JsonWebKey;
    readonly token: string;
  }

  async function issued(kid: string, alg: "RS256" | "ES256" | "EdDSA" = "RS256"): Promise<Issued> {
    const algorithms = {
      RS256: {
        name: "RSASSA-PKCS1-v1_5",
        modulusLength: 2048,
        publicExponent: new Uint8Array([1, 0, 1]),
        hash: "SHA-256",
      },
      ES256: { name: "ECDSA", namedCurve: "P-256" },
      EdDSA: { name: "Ed25519" },
    };
    const pair = (await crypto.subtle.generateKey(algorithms[alg], true, [
      "sign",
      "verify",
    ])) as CryptoKeyPair;
    const publicKey = (await crypto.subtle.exportKey("jwk", pair.publicKey)) as JsonWebKey;
    const privateKey = (await crypto.subtle.exportKey("jwk", pair.privateKey)) as JsonWebKey;
    const token = await sign(claims, { ...privateKey, alg, kid } as Parameters<typeof sign>[1]);
    const { key_ops: _, ...published } = publicKey;
    return { kid, publicKey: { ...published, kid, alg, use: "sig" } as JsonWebKey, token };
  }

  /** Lets the issuer answer with these keys. @returns a spy that counts the fetches */
  function publishing(...keys: unknown[]) {
    return vi.spyOn(globalThis, "fetch").mockImplementation(async () => Response.json({ keys }));
  }

  const createTokenTest = (jwt: Jwt = JWKS) => {
    const byClaim = identifyingBy("jwt:sub", { jwt });
    const byAddress = identifyingBy("ip", { jwt });
    return async (token: string) =>
      (await byClaim(bearer(token))) !== (await byAddress(bearer(token)));
  };

  beforeAll(async () => {
    [first, second] = await Promise.all([issued("first"), issued("second")]);
  });

  it("is valid, and its keys are fetched once in ten minutes", async () => {
    const fetched = publishing(first.publicKey, second.publicKey);
    const isValid = createTokenTest();
    expect(await isValid(first.token)).toBe(true);
    expect(await isValid(second.token)).toBe(true);
    vi.setSystemTime(NOW_S * 1000 + 10 * MINUTE_MS - 1);
    expect(await isValid(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW_S * 1000 + 10 * MINUTE_MS);
    expect(await isValid(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it.each(["ES256", "EdDSA"] as const)("can be signed with %s", async (alg) => {
    const { publicKey, token } = await issued("other", alg);
    publishing(publicKey);
    expect(await createTokenTest({ ...JWKS, algs: ["RS256", alg] })(token)).toBe(true);
    expect(await createTokenTest({ ...JWKS, algs: ["RS256"] })(token)).toBe(false);
  });

  it("is invalid if its key has an empty name", async () => {
    const { publicKey, token } = await issued("");
    const fetched = publishing(publicKey);
    expect(await createTokenTest()(token)).toBe(false);
    expect(fetched).not.toHaveBeenCalled();
  });

  it("is invalid if its signature does not match the published key", async () => {
    publishing({ ...second.publicKey, kid: "first" });
    expect(await createTokenTest()(first.token)).toBe(false);
  });

  it("is invalid if the public key was used as the secret of an HMAC", async () => {
    const { publicKey } = first;
    publishing(publicKey);
    const isValid = createTokenTest();
    const header = { alg: "HS256", typ: "JWT", kid: "first" };
    for (const secret of [JSON.stringify(publicKey), publicKey.n as string, await pem(publicKey)]) {
      expect(await isValid(await forged(header, claims, secret))).toBe(false);
      const asRsa = { ...header, alg: "RS256" };
      expect(await isValid(await forged(asRsa, claims, secret))).toBe(false);
    }
  });

  it("is invalid if it is signed with a secret that the issuer publishes", async () => {
    const k = btoa("secret").replace(/=+$/, "");
    publishing({ kty: "oct", kid: "first", k }, first.publicKey);
    for (const alg of ["HS256", "RS256", "none"]) {
      expect(await createTokenTest()(await forged({ alg, kid: "first" }, claims, "secret"))).toBe(
        false,
      );
    }
  });

  it("is invalid without the name of its key, and causes no fetch", async () => {
    const fetched = publishing(first.publicKey);
    expect(await createTokenTest()(await forged({ alg: "RS256" }, claims, "secret"))).toBe(false);
    expect(await createTokenTest()(await forged({ alg: "HS256", kid: "first" }, claims, "s"))).toBe(
      false,
    );
    expect(fetched).not.toHaveBeenCalled();
  });

  it("is valid with a new key after the next fetch, a minute later", async () => {
    const isValid = createTokenTest();
    publishing(first.publicKey);
    expect(await isValid(first.token)).toBe(true);
    const fetched = publishing(first.publicKey, second.publicKey);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    expect(await isValid(second.token)).toBe(true);
    expect(await isValid(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it("causes one fetch per minute if its key does not exist", async () => {
    const fetched = publishing(first.publicKey);
    const isValid = createTokenTest();
    for (const second of Array.from({ length: 120 }, (_, index) => index)) {
      vi.setSystemTime((NOW_S + second) * 1000);
      const token = await forged({ alg: "RS256", kid: `k${second}` }, claims, "secret");
      expect(await isValid(token)).toBe(false);
    }
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it.each<[string, () => Promise<Response>]>([
    ["cannot be reached", () => Promise.reject(new TypeError("Network connection lost."))],
    ["answers with an error", async () => new Response("down", { status: 503 })],
    ["answers with a redirect", async () => Response.redirect("https://evil.example/", 302)],
    ["answers with HTML", async () => new Response("<html>")],
    ["answers with null", async () => new Response("null")],
    ["answers without keys", async () => Response.json({ keys: {} })],
    ["answers with values that are not keys", async () => Response.json({ keys: [null, 5, "k"] })],
    ["answers with too many bytes", async () => new Response("x".repeat(300_000))],
  ])("is invalid if its issuer %s", async (_, answer) => {
    vi.spyOn(globalThis, "fetch").mockImplementation(answer);
    expect(await createTokenTest()(first.token)).toBe(false);
  });

  it("is invalid while its issuer is down, which receives a fetch every ten seconds", async () => {
    const down = vi
      .spyOn(globalThis, "fetch")
      .mockImplementation(async () => new Response("down", { status: 503 }));
    const isValid = createTokenTest();
    for (const second of [0, 0, 5, 9]) {
      vi.setSystemTime((NOW_S + second) * 1000);
      expect(await isValid(first.token)).toBe(false);
    }
    expect(down).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    publishing(first.publicKey);
    expect(await isValid(first.token)).toBe(true);
  });

  it("stays valid for an hour while its issuer is down", async () => {
    publishing(first.publicKey);
    const isValid = createTokenTest();
    expect(await isValid(first.token)).toBe(true);
    vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Network connection lost."));
    vi.setSystemTime(NOW_S * 1000 + 59 * MINUTE_MS);
    expect(await isValid(first.token)).toBe(true);
    vi.setSystemTime(NOW_S * 1000 + 60 * MINUTE_MS);
    expect(await isValid(first.token)).toBe(false);
  });

  it("causes one fetch for all requests that arrive together", async () => {
    const answer = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(answer.promise);
    const isValid = createTokenTest();
    const requests = Array.from({ length: 20 }, () => isValid(first.token));
    await scheduler.wait(30);
    answer.resolve(Response.json({ keys: [first.publicKey] }));
    expect(await Promise.all(requests)).toEqual(Array(20).fill(true));
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it("delays a request by at most half of the deadline, and then Weir uses the address", async () => {
    const { promise: never } = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    const identityFor = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 1000 });
    const address = await identifyingBy("ip")(bearer(first.token));
    const both = [identityFor(bearer(first.token)), identityFor(bearer(first.token))];
    expect(await Promise.all(both)).toEqual([address, address]);
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["two seconds after it", 2000],
    ["after the clock was put back by an hour", -3_600_000],
  ])("causes another fetch if a fetch never ended: %s", async (_, pastMs) => {
    const { promise: never } = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    const identityFor = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 1000 });
    const address = await identityFor(bearer(first.token));
    vi.setSystemTime(NOW_S * 1000 + 1999);
    await identityFor(bearer(first.token));
    expect(fetched).toHaveBeenCalledTimes(1);
    publishing(first.publicKey);
    vi.setSystemTime(NOW_S * 1000 + pastMs);
    expect(await identityFor(bearer(first.token))).not.toBe(address);
  });

  it("is valid with a cached key while a fetch for another key hangs", async () => {
    publishing(first.publicKey);
    const identityFor = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 1000 });
    const identity = await identityFor(bearer(first.token));
    const { promise: never } = Promise.withResolvers<Response>();
    vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    const rotated = identityFor(bearer(second.token));
    expect(await identityFor(bearer(first.token))).toBe(identity);
    expect(await rotated).toBe(await identifyingBy("ip")(bearer(second.token)));
  });

  it("is valid with a new key after the clock was put back by an hour", async () => {
    publishing(first.publicKey);
    const isValid = createTokenTest();
    expect(await isValid(first.token)).toBe(true);
    publishing(first.publicKey, second.publicKey);
    vi.setSystemTime(NOW_S * 1000 - 3_600_000);
    expect(await isValid(second.token)).toBe(true);
  });

  async function pem(key: JsonWebKey): Promise<string> {
    const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
    const imported = await crypto.subtle.importKey("jwk", key, algorithm, true, ["verify"]);
    const spki = new Uint8Array((await crypto.subtle.exportKey("spki", imported)) as ArrayBuffer);
    const body = btoa(String.fromCharCode(...spki)).replace(/.{64}/g, "$&\n");
    return `-----BEGIN PUBLIC KEY-----\n${body}\n-----END PUBLIC KEY-----\n`;
  }
});

describe("a token", () => {
  const claims = { sub: "alice", exp: NOW_S + 60 };

  it.each([
    [undefined, true],
    ["JWT", true],
    ["jwt", true],
    ["application/JWT", true],
    ["AT+jwt", true],
    ["application/at+jwt", true],
    ["", false],
    ["id+jwt", false],
    [1, false],
  ])("with the type %o is accepted: %o", async (typ, isAccepted) => {
    const token = await forged({ alg: "HS256", typ }, claims, SECRET);
    expect(await isCountedByClaim(HS256, bearer(token))).toBe(isAccepted);
  });

  it("with a critical extension is refused", async () => {
    const token = await forged({ alg: "HS256", crit: [] }, claims, SECRET);
    expect(await isCountedByClaim(HS256, bearer(token))).toBe(false);
  });

  it.each([
    [16 * 1024, true],
    [16 * 1024 + 1, false],
  ])(
    "in a field of %i characters, its scheme included, is accepted: %o",
    async (length, isAccepted) => {
      const fieldOf = async (pad: number) =>
        `Bearer ${await forged({ alg: "HS256", pad: "x".repeat(pad) }, claims, SECRET)}`;
      const short = await fieldOf(3);
      // Three characters of JSON become four characters of base64. Spaces after the scheme fill the
      // remaining length.
      const more = length - short.length;
      const field = await fieldOf(3 + Math.floor(more / 4) * 3);
      const sent = field.replace(" ", " ".repeat(1 + (more % 4)));
      expect(sent).toHaveLength(length);
      expect(await isCountedByClaim(HS256, { authorization: sent })).toBe(isAccepted);
    },
  );
});
