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

/** A token of any header, signed with HMAC-SHA-256 whatever its header says. */
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

/** Whether a request with these header fields is counted by the claim, not by its address. */
async function isNamed(jwt: Jwt, sent: Record<string, string>, bindings: object = env) {
  const identify = (key: string) => identifyingBy(key, { jwt }, { env: { ...bindings } })(sent);
  return (await identify("jwt:sub")) !== (await identify("ip"));
}

describe("a token signed with a secret", () => {
  const claims = { sub: "alice", exp: NOW_S + 60 };

  it("names who it says, and tells them apart", async () => {
    const identity = identifyingBy("jwt:sub", { jwt: HS256 }, { env });
    const of = async (sub: string) => identity(bearer(await sign({ sub }, SECRET)));
    expect(await of("alice")).toBe(await of("alice"));
    expect(await of("alice")).not.toBe(await of("bob"));
  });

  it.each<[string, Jwt, () => Promise<Record<string, string>>, boolean]>([
    ["is good", HS256, async () => bearer(await sign(claims, SECRET)), true],
    [
      "that never expires is good",
      HS256,
      async () => bearer(await sign({ sub: "a" }, SECRET)),
      true,
    ],
    [
      "of another HMAC that is configured is good",
      { ...HS256, alg: "HS512" },
      async () => bearer(await sign(claims, SECRET, "HS512")),
      true,
    ],
    [
      "of another HMAC is none",
      HS256,
      async () => bearer(await sign(claims, SECRET, "HS512")),
      false,
    ],
    ["by another secret is none", HS256, async () => bearer(await sign(claims, "other")), false],
    [
      "that has expired is none",
      HS256,
      async () => bearer(await sign({ ...claims, exp: NOW_S }, SECRET)),
      false,
    ],
    [
      "of the future is none",
      HS256,
      async () => bearer(await sign({ ...claims, nbf: NOW_S + 1 }, SECRET)),
      false,
    ],
    [
      "of an issuer whose clock is ahead is good",
      HS256,
      async () => bearer(await sign({ ...claims, iat: NOW_S + 1 }, SECRET)),
      true,
    ],
    [
      "without the claim is none",
      HS256,
      async () => bearer(await sign({ exp: NOW_S + 60 }, SECRET)),
      false,
    ],
    [
      "with alg none is none",
      HS256,
      async () => bearer((await forged({ alg: "none" }, claims, SECRET)).replace(/[^.]*$/, "")),
      false,
    ],
    [
      "with alg none and a signature is none",
      HS256,
      async () => bearer(await forged({ alg: "none" }, claims, SECRET)),
      false,
    ],
    [
      "of the type of an access token is good",
      HS256,
      async () => bearer(await forged({ alg: "HS256", typ: "at+jwt" }, claims, SECRET)),
      true,
    ],
    [
      "of another type is none",
      HS256,
      async () => bearer(await forged({ alg: "HS256", typ: "dpop+jwt" }, claims, SECRET)),
      false,
    ],
    [
      "without Bearer is none",
      HS256,
      async () => ({ authorization: await sign(claims, SECRET) }),
      false,
    ],
    [
      "in a header of its own needs no Bearer",
      { ...HS256, header: "X-Token" },
      async () => ({ "x-token": await sign(claims, SECRET) }),
      true,
    ],
    ["that is nonsense is none", HS256, async () => bearer("a.b.c"), false],
    ["that is too long is none", HS256, async () => bearer("a".repeat(20_000)), false],
    [
      "from the issuer is good",
      { ...HS256, issuer: "me" },
      async () => bearer(await sign({ ...claims, iss: "me" }, SECRET)),
      true,
    ],
    [
      "from another issuer is none",
      { ...HS256, issuer: "me" },
      async () => bearer(await sign({ ...claims, iss: "me too" }, SECRET)),
      false,
    ],
    [
      "for the audience is good",
      { ...HS256, audience: "api" },
      async () => bearer(await sign({ ...claims, aud: ["web", "api"] }, SECRET)),
      true,
    ],
    [
      "for no audience is none",
      { ...HS256, audience: "api" },
      async () => bearer(await sign(claims, SECRET)),
      false,
    ],
  ])("%s", async (_, jwt, sent, expected) => {
    expect(await isNamed(jwt, await sent())).toBe(expected);
  });

  it("with words of a PEM document in it is good", async () => {
    const secret = "my PUBLIC PRIVATE secret";
    const token = await sign(claims, await hmac(secret));
    expect(await isNamed(HS256, bearer(token), { JWT_SECRET: secret })).toBe(true);
  });

  it.each([{}, { JWT_SECRET: "" }, { JWT_SECRET: " " }])(
    "that is not set names nobody: %j",
    async (bindings) => {
      expect(await isNamed(HS256, bearer(await sign(claims, SECRET)), bindings)).toBe(false);
      const unsigned = await forged({ alg: "HS256" }, claims, " ");
      expect(await isNamed(HS256, bearer(unsigned), bindings)).toBe(false);
    },
  );

  it("is verified once for a request, however many keys read it", async () => {
    const verify = vi.spyOn(crypto.subtle, "verify");
    const rules = [{ key: "jwt:sub" }, { key: ["jwt:sub", "path"] }, { key: "jwt:org | jwt:sub" }];
    const subjects = identifying(rules, { jwt: HS256 }, { env });
    const token = await sign(claims, SECRET);
    expect(await subjects(bearer(token))).toHaveLength(3);
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

  /** An issuer that answers with these; the spy tells how often. */
  function publishing(...keys: unknown[]) {
    return vi.spyOn(globalThis, "fetch").mockImplementation(async () => Response.json({ keys }));
  }

  const naming = (jwt: Jwt = JWKS) => {
    const named = identifyingBy("jwt:sub", { jwt });
    const address = identifyingBy("ip", { jwt });
    return async (token: string) => (await named(bearer(token))) !== (await address(bearer(token)));
  };

  beforeAll(async () => {
    [first, second] = await Promise.all([issued("first"), issued("second")]);
  });

  it("names who it says; its keys are fetched once in ten minutes", async () => {
    const fetched = publishing(first.publicKey, second.publicKey);
    const isNamed = naming();
    expect(await isNamed(first.token)).toBe(true);
    expect(await isNamed(second.token)).toBe(true);
    vi.setSystemTime(NOW_S * 1000 + 10 * MINUTE_MS - 1);
    expect(await isNamed(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW_S * 1000 + 10 * MINUTE_MS);
    expect(await isNamed(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it.each(["ES256", "EdDSA"] as const)("may be of %s", async (alg) => {
    const { publicKey, token } = await issued("other", alg);
    publishing(publicKey);
    expect(await naming({ ...JWKS, algs: ["RS256", alg] })(token)).toBe(true);
    expect(await naming({ ...JWKS, algs: ["RS256"] })(token)).toBe(false);
  });

  it("is none when it is signed with another's key", async () => {
    publishing({ ...second.publicKey, kid: "first" });
    expect(await naming()(first.token)).toBe(false);
  });

  it("is none when the public key was the secret of an HMAC", async () => {
    const { publicKey } = first;
    publishing(publicKey);
    const isNamed = naming();
    const header = { alg: "HS256", typ: "JWT", kid: "first" };
    for (const secret of [JSON.stringify(publicKey), publicKey.n as string, await pem(publicKey)]) {
      expect(await isNamed(await forged(header, claims, secret))).toBe(false);
      const asRsa = { ...header, alg: "RS256" };
      expect(await isNamed(await forged(asRsa, claims, secret))).toBe(false);
    }
  });

  it("is none when it is signed with a secret that the issuer publishes", async () => {
    const k = btoa("secret").replace(/=+$/, "");
    publishing({ kty: "oct", kid: "first", k }, first.publicKey);
    for (const alg of ["HS256", "RS256", "none"]) {
      expect(await naming()(await forged({ alg, kid: "first" }, claims, "secret"))).toBe(false);
    }
  });

  it("is none without the name of its key, and nothing is fetched for it", async () => {
    const fetched = publishing(first.publicKey);
    expect(await naming()(await forged({ alg: "RS256" }, claims, "secret"))).toBe(false);
    expect(await naming()(await forged({ alg: "HS256", kid: "first" }, claims, "s"))).toBe(false);
    expect(fetched).not.toHaveBeenCalled();
  });

  it("by a key that is new is known once the keys are fetched again, after a minute", async () => {
    const isNamed = naming();
    publishing(first.publicKey);
    expect(await isNamed(first.token)).toBe(true);
    const fetched = publishing(first.publicKey, second.publicKey);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    expect(await isNamed(second.token)).toBe(true);
    expect(await isNamed(first.token)).toBe(true);
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it("by a key that there is not makes the keys be fetched once a minute", async () => {
    const fetched = publishing(first.publicKey);
    const isNamed = naming();
    for (const second of Array.from({ length: 120 }, (_, index) => index)) {
      vi.setSystemTime((NOW_S + second) * 1000);
      const token = await forged({ alg: "RS256", kid: `k${second}` }, claims, "secret");
      expect(await isNamed(token)).toBe(false);
    }
    expect(fetched).toHaveBeenCalledTimes(2);
  });

  it.each<[string, () => Promise<Response>]>([
    ["cannot be reached", () => Promise.reject(new TypeError("Network connection lost."))],
    ["answers with an error", async () => new Response("down", { status: 503 })],
    ["answers with a redirect", async () => Response.redirect("https://evil.example/", 302)],
    ["answers with nonsense", async () => new Response("<html>")],
    ["answers with null", async () => new Response("null")],
    ["answers without keys", async () => Response.json({ keys: {} })],
    ["answers with keys that are none", async () => Response.json({ keys: [null, 5, "k"] })],
    ["answers without end", async () => new Response("x".repeat(300_000))],
  ])("is none when its issuer %s", async (_, answer) => {
    vi.spyOn(globalThis, "fetch").mockImplementation(answer);
    expect(await naming()(first.token)).toBe(false);
  });

  it("is none while its issuer is down, which is asked every ten seconds", async () => {
    const down = vi
      .spyOn(globalThis, "fetch")
      .mockImplementation(async () => new Response("down", { status: 503 }));
    const isNamed = naming();
    for (const second of [0, 0, 5, 9]) {
      vi.setSystemTime((NOW_S + second) * 1000);
      expect(await isNamed(first.token)).toBe(false);
    }
    expect(down).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    publishing(first.publicKey);
    expect(await isNamed(first.token)).toBe(true);
  });

  it("is known for an hour while its issuer is down", async () => {
    publishing(first.publicKey);
    const isNamed = naming();
    expect(await isNamed(first.token)).toBe(true);
    vi.spyOn(globalThis, "fetch").mockRejectedValue(new TypeError("Network connection lost."));
    vi.setSystemTime(NOW_S * 1000 + 59 * MINUTE_MS);
    expect(await isNamed(first.token)).toBe(true);
    vi.setSystemTime(NOW_S * 1000 + 60 * MINUTE_MS);
    expect(await isNamed(first.token)).toBe(false);
  });

  it("is fetched for once at a time, by whichever request comes first", async () => {
    const answer = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(answer.promise);
    const isNamed = naming();
    const requests = Array.from({ length: 20 }, () => isNamed(first.token));
    await scheduler.wait(30);
    answer.resolve(Response.json({ keys: [first.publicKey] }));
    expect(await Promise.all(requests)).toEqual(Array(20).fill(true));
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it("is waited for no longer than half of the deadline; then the address counts", async () => {
    const { promise: never } = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    const named = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 100 });
    const address = await identifyingBy("ip")(bearer(first.token));
    const both = [named(bearer(first.token)), named(bearer(first.token))];
    expect(await Promise.all(both)).toEqual([address, address]);
    expect(fetched).toHaveBeenCalledTimes(1);
  });

  it("is fetched for again when a fetch was lost, two seconds later", async () => {
    const { promise: never } = Promise.withResolvers<Response>();
    const fetched = vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    const named = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 20 });
    const address = await named(bearer(first.token));
    vi.setSystemTime(NOW_S * 1000 + 1999);
    await named(bearer(first.token));
    expect(fetched).toHaveBeenCalledTimes(1);
    publishing(first.publicKey);
    vi.setSystemTime(NOW_S * 1000 + 2000);
    expect(await named(bearer(first.token))).not.toBe(address);
  });

  it("of the old set is known while a fetch for another key hangs", async () => {
    publishing(first.publicKey);
    const named = identifyingBy("jwt:sub", { jwt: JWKS, timeoutMs: 100 });
    const identity = await named(bearer(first.token));
    const { promise: never } = Promise.withResolvers<Response>();
    vi.spyOn(globalThis, "fetch").mockReturnValue(never);
    vi.setSystemTime(NOW_S * 1000 + MINUTE_MS);
    const rotated = named(bearer(second.token));
    expect(await named(bearer(first.token))).toBe(identity);
    expect(await rotated).toBe(await identifyingBy("ip")(bearer(second.token)));
  });

  it("is learnt though the clock is put back by an hour", async () => {
    publishing(first.publicKey);
    const isNamed = naming();
    expect(await isNamed(first.token)).toBe(true);
    publishing(first.publicKey, second.publicKey);
    vi.setSystemTime(NOW_S * 1000 - 3_600_000);
    expect(await isNamed(second.token)).toBe(true);
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
    expect(await isNamed(HS256, bearer(token))).toBe(isAccepted);
  });

  it("with a critical extension is refused", async () => {
    const token = await forged({ alg: "HS256", crit: [] }, claims, SECRET);
    expect(await isNamed(HS256, bearer(token))).toBe(false);
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
      // Three characters of JSON are four characters of base64. Spaces after the scheme fill the rest.
      const more = length - short.length;
      const field = await fieldOf(3 + Math.floor(more / 4) * 3);
      const sent = field.replace(" ", " ".repeat(1 + (more % 4)));
      expect(sent).toHaveLength(length);
      expect(await isNamed(HS256, { authorization: sent })).toBe(isAccepted);
    },
  );
});
