import { sign } from "hono/utils/jwt/jwt";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import type { DescribedRequest } from "../../../src/explain/explanation.ts";
import { explainRule } from "./explaining.ts";

afterEach(() => void vi.restoreAllMocks());

type Request = Partial<DescribedRequest>;

const HOST = "https://api.example.com";
const IP = { "cf-connecting-ip": "203.0.113.7" };
const SECRET = "a-secret-of-32-characters-or-more";
const later = Math.floor(Date.now() / 1000) + 1000;

/** Returns the alternatives of the only element of a key. */
async function alternativesOf(
  key: RuleInput["key"],
  request: Request,
  options?: Partial<ConfigInput>,
  env?: Record<string, unknown>,
) {
  const { key: elements } = await explainRule({ key }, request, options, env);
  expect(elements).toHaveLength(1);
  return elements[0];
}

describe("the value of a key", () => {
  it.each<[string, Request, string, string]>([
    ["ip", { headers: IP }, "203.0.113.7", "the header cf-connecting-ip"],
    ["ip", { headers: { "cf-connecting-ip": "2001:db8::9" } }, "2001:db8::/64", "cf-connecting-ip"],
    ["header:x-plan", { headers: { "x-plan": " free " } }, "free", "the header x-plan"],
    [
      "header:x-api-key",
      { headers: { "x-api-key": "abcdefghijklmn" } },
      "abcd… (14 characters)",
      "x-api-key",
    ],
    [
      "header:authorization",
      { headers: { authorization: "Bearer abc" } },
      "a… (3 characters)",
      "authorization",
    ],
    [
      "cookie:session",
      { headers: { cookie: "a=b; session=s-1234567890" } },
      "s-12… (12 characters)",
      "the cookie session",
    ],
    [
      "query:api_key",
      { url: `${HOST}/?api_key=k%2B1` },
      "k… (3 characters)",
      "the query parameter api_key",
    ],
    ["query:plan", { url: `${HOST}/?plan=a+b` }, "a b", "the query parameter plan"],
    [
      "host",
      { url: "https://API.example.com:8443/" },
      "api.example.com",
      "the host of the request",
    ],
    ["path", { url: `${HOST}/A/` }, "/a", "the path of the request"],
    ["method", { method: "HEAD" }, "GET", "the method of the request"],
    ["country", { cf: { country: "DE" } }, "DE", "Cloudflare's data about the client"],
    ["asn", { cf: { asn: 64_500 } }, "64500", "Cloudflare's data"],
    ["ja4", { cf: { botManagement: { ja4: "t13d" } } }, "t13d", "Cloudflare's data"],
    ["global", {}, "global", "all clients share one counter"],
  ])("of %s is shown with its source: %j", async (key, request, value, from) => {
    expect(await alternativesOf(key, request)).toEqual({
      alternatives: [{ part: key, result: "used", from: expect.stringContaining(from), value }],
      isFallback: false,
    });
  });

  it("of a path parameter and of a function is shown", async () => {
    const match = { paths: ["/users/:id"] };
    const custom: ConfigInput["custom"] = { keys: { tenant: () => "acme" } };
    const request = { url: `${HOST}/users/7` };
    const { key } = await explainRule({ key: ["param:id", "custom:tenant"], match }, request, {
      custom,
    });
    expect(key.map(({ alternatives }) => alternatives[0])).toEqual([
      { part: "param:id", result: "used", from: "the path parameter id", value: "7" },
      {
        part: "custom:tenant",
        result: "used",
        from: "the function custom.keys.tenant",
        value: "acme",
      },
    ]);
  });

  it.each<[string, Request, string]>([
    ["header:x-a", {}, "the header is missing"],
    ["header:x-a", { headers: { "x-a": " " } }, "the header is empty or too long, or origins"],
    ["header:x-a", { headers: { "x-a": "b, c" } }, "origins may read different values"],
    ["header:x-a", { headers: { "x-a": "b".repeat(8193) } }, "too long"],
    ["cookie:s", { headers: { cookie: "t=1" } }, "it is missing, empty or too long, or origins"],
    ["cookie:s", { headers: { cookie: "s=1; s=2" } }, "origins may read different values"],
    ["query:k", { url: `${HOST}/?j=1` }, "it is missing, empty or too long, or origins"],
    ["query:k", { url: `${HOST}/?k=1&k=2&K=3` }, "origins may read different values"],
    ["query:k", { url: `${HOST}/?k=` }, "empty"],
    ["path", { url: `${HOST}/a%2Fb` }, "origins may read the path in different ways"],
    ["country", {}, "Cloudflare's data about the client does not have it"],
    ["custom:none", {}, "custom.keys.none returned no text"],
    ["custom:throws", {}, "custom.keys.throws threw an error"],
    ["custom:slow", {}, "custom.keys.slow took longer than 20 ms"],
    ["custom:long", {}, "custom.keys.long returned no text, or an empty or too long one"],
  ])("of %s is absent with the reason: %j", async (key, request, from) => {
    const custom: ConfigInput["custom"] = {
      keys: {
        none: () => undefined,
        throws: () => {
          throw new Error("secret");
        },
        slow: () => new Promise(() => {}),
        long: () => "x".repeat(8193),
      },
    };
    const element = await alternativesOf(
      `${key} | ip`,
      { ...request, headers: { ...IP, ...request.headers } },
      { custom, timeoutMs: 20 },
    );
    expect(element).toEqual({
      alternatives: [
        { part: key, result: "absent", from: expect.stringContaining(from) },
        { part: "ip", result: "used", from: expect.any(String), value: "203.0.113.7" },
      ],
      isFallback: false,
    });
  });

  it("of a function that reads the body is used, or says that the description lacks the body", async () => {
    const custom: ConfigInput["custom"] = {
      keys: {
        account: async (request) => {
          const { a } = await request.clone().json<{ a: string }>();
          return request.headers.has("content-type") ? undefined : a;
        },
      },
    };
    const keyOf = async (request: Request) =>
      (await alternativesOf("custom:account", { method: "POST", ...request }, { custom }))
        ?.alternatives[0];
    expect(await keyOf({ body: '{"a":"ä@b.c"}' })).toMatchObject({ result: "used" });
    const from = "custom.keys.account threw an error";
    const without = `${from}; this request is explained without a body`;
    expect(await keyOf({})).toMatchObject({ result: "absent", from: without });
    expect(await keyOf({ body: "{" })).toMatchObject({ result: "absent", from });
    expect(await keyOf({ method: "GET" })).toMatchObject({ result: "absent", from });
  });

  it("is the client's address if no alternative is present, as for a real request", async () => {
    const request = { headers: IP };
    const fallback = await explainRule({ key: "header:x-a | cookie:b" }, request);
    expect(fallback.key).toMatchObject([{ isFallback: true, alternatives: [{}, {}] }]);
    expect(fallback.client).toBe((await explainRule({ key: "ip" }, request)).client);
  });

  it("depends on WEIR_KEY_SECRET", async () => {
    const plain = await explainRule({}, { headers: IP });
    const env = { WEIR_KEY_SECRET: SECRET };
    const secret = await explainRule({}, { headers: IP }, {}, env);
    expect(secret.client).not.toBe(plain.client);
    expect(JSON.stringify(secret)).not.toContain(SECRET);
  });
});

describe("a claim", () => {
  const jwt = { secret: "JWT_SECRET", issuer: "https://issuer.example.com", audience: "api" };
  const valid = { sub: "user-1", iss: jwt.issuer, aud: "api", exp: later };

  async function reasonFor(authorization: string, env: object = { JWT_SECRET: SECRET }) {
    const request = { headers: { ...IP, ...(authorization && { authorization }) } };
    const explained = await explainRule({ key: "jwt:sub | ip" }, request, { jwt }, { ...env });
    expect(JSON.stringify(explained)).not.toMatch(/eyJ|a-secret/);
    return explained.key[0]?.alternatives[0];
  }

  it("of a valid token is used", async () => {
    expect(await reasonFor(`Bearer ${await sign(valid, SECRET)}`)).toEqual({
      part: "jwt:sub",
      result: "used",
      from: "the claim sub of the verified token",
      value: "user-1",
    });
  });

  it.each<[string, object, string]>([
    ["has expired", { exp: 1 }, "the token has expired (exp)"],
    ["is not valid yet", { nbf: later }, "not valid yet (nbf)"],
    ["was issued later", { iat: later }, "issued in the future (iat)"],
    ["has another issuer", { iss: "https://other.example.com" }, "issuer (iss)"],
    ["has another audience", { aud: "web" }, "audience (aud)"],
    ["has no such claim", { sub: undefined }, "the token is valid, but its claim sub is missing"],
    ["has an empty claim", { sub: "" }, "the token is valid, but its claim sub"],
  ])("is absent with the reason if the token %s", async (_, claims, reason) => {
    const token = await sign({ ...valid, ...claims }, SECRET);
    expect(await reasonFor(`Bearer ${token}`)).toMatchObject({
      result: "absent",
      from: expect.stringContaining(reason),
    });
  });

  it("is absent with the reason if the token cannot be verified", async () => {
    const token = await sign(valid, SECRET);
    const forged = await sign(valid, "another-secret-of-32-characters!!");
    const strong = await sign(valid, SECRET, "HS512");
    const reasons = [
      await reasonFor(""),
      await reasonFor("Basic abc"),
      await reasonFor("Bearer abc"),
      await reasonFor(`Bearer ${forged}`),
      await reasonFor(`Bearer ${strong}`),
      await reasonFor(`Bearer ${token}`, {}),
      await reasonFor(`Bearer ${"a".repeat(17_000)}`),
    ];
    expect(reasons.map((each) => each?.from)).toEqual([
      "the header authorization is missing",
      "the header authorization has no Bearer token",
      "the header has no JWT",
      "the token's signature is not valid",
      "the token's algorithm (alg) is not the configured one",
      "the secret JWT_SECRET is not set",
      "the token is too long",
    ]);
  });

  it.each([
    [{ alg: "RS256", kid: "new" }, "the issuer's keys could not be fetched, or have none"],
    [{ alg: "RS256" }, "the token does not name its key (kid)"],
    [{ alg: "none", kid: "new" }, "the token's algorithm is not RS256 or ES256"],
  ])("is absent with the reason if the issuer has no key for %j", async (header, reason) => {
    vi.spyOn(globalThis, "fetch").mockImplementation(async () => Response.json({ keys: [] }));
    const part = (value: object) => btoa(JSON.stringify(value)).replaceAll("=", "");
    const token = `${part({ typ: "JWT", ...header })}.${part({ sub: "user-1" })}.c2ln`;
    const jwks = { jwks: "https://issuer.example.com/keys", algs: ["RS256", "ES256"] } as const;
    const request = { headers: { authorization: `Bearer ${token}` } };
    const { key } = await explainRule({ key: "jwt:sub" }, request, { jwt: jwks });
    expect(key[0]?.alternatives[0]?.from).toContain(reason);
    expect(key[0]?.isFallback).toBe(true);
  });
});
