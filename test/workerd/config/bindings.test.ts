import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";

const upstash = {
  UPSTASH_REDIS_REST_URL: "https://a.upstash.io",
  UPSTASH_REDIS_REST_TOKEN: "token",
};
const objects = { COUNTERS: env.COUNTERS };

function settings(options: Omit<ConfigInput, "rules">, bindings: Record<string, unknown>) {
  return resolveBindings(defineConfig({ rules: [], ...options }), bindings);
}

describe("the store", () => {
  it("is Upstash if its URL is set", () => {
    expect(settings({}, { ...upstash, ...objects }).store).toEqual({
      kind: "upstash",
      url: "https://a.upstash.io",
      token: "token",
    });
  });

  it.each([undefined, "", "  "])("is the Durable Object if that URL is %j", (url) => {
    const { store } = settings({}, { ...objects, UPSTASH_REDIS_REST_URL: url });
    expect(store).toEqual({ kind: "durable-object", namespace: env.COUNTERS });
  });

  it("is the configured store, regardless of the bindings that are set", () => {
    expect(settings({ store: "memory" }, { ...upstash }).store).toEqual({ kind: "memory" });
    expect(settings({ store: "durable-object" }, { ...upstash, ...objects }).store.kind).toBe(
      "durable-object",
    );
  });

  it.each<[string, Omit<ConfigInput, "rules">, Record<string, unknown>]>([
    ["UPSTASH_REDIS_REST_URL is not set", { store: "upstash" }, objects],
    ["UPSTASH_REDIS_REST_TOKEN is not set", {}, { UPSTASH_REDIS_REST_URL: "https://a" }],
    ["UPSTASH_REDIS_REST_URL is not", {}, { ...upstash, UPSTASH_REDIS_REST_URL: "redis://a" }],
    ["UPSTASH_REDIS_REST_TOKEN has", {}, { ...upstash, UPSTASH_REDIS_REST_TOKEN: "a\nb" }],
    ["bound as COUNTERS", {}, {}],
    ["bound as COUNTERS", {}, { COUNTERS: "text" }],
  ])("is misconfigured: %s", (fault, options, bindings) => {
    const { store } = settings(options, bindings);
    expect(store).toMatchObject({ kind: "misconfigured", fault: expect.stringContaining(fault) });
    expect(JSON.stringify(store)).not.toMatch(/redis:\/\/a|a\\nb/);
  });
});

describe("a token without its URL", () => {
  const { UPSTASH_REDIS_REST_TOKEN } = upstash;

  it("is a fault, and Durable Objects count", () => {
    const { store, limiterFaults } = settings({}, { UPSTASH_REDIS_REST_TOKEN, ...objects });
    expect(store).toEqual({ kind: "durable-object", namespace: env.COUNTERS });
    expect(limiterFaults).toEqual([
      "UPSTASH_REDIS_REST_URL is not set, but UPSTASH_REDIS_REST_TOKEN is: Durable Objects count instead of Redis",
    ]);
  });

  it("is not a fault if the configuration names the store, or if there is no token", () => {
    const token = { UPSTASH_REDIS_REST_TOKEN, ...objects };
    expect(settings({ store: "durable-object" }, token).limiterFaults).toEqual([]);
    expect(settings({ store: "memory" }, token).limiterFaults).toEqual([]);
    expect(settings({}, { ...objects, UPSTASH_REDIS_REST_TOKEN: " " }).limiterFaults).toEqual([]);
    expect(settings({}, { ...upstash, ...objects }).limiterFaults).toEqual([]);
    expect(settings({ store: "upstash" }, token).limiterFaults).toEqual([
      "UPSTASH_REDIS_REST_URL is not set",
    ]);
  });
});

describe("the secrets", () => {
  const exempt = (secret: string) => ({ headers: { "x-internal": { secret } } });
  const rule = (name: string, secret: string) => ({
    name,
    limit: 1,
    window: 1,
    exempt: exempt(secret),
  });
  const config = defineConfig({
    rules: [rule("a", "INTERNAL"), rule("b", "INTERNAL"), rule("c", "PROBE")],
    jwt: { secret: "JWT" },
  });

  it("are only those that the configuration names", () => {
    const bindings = { INTERNAL: "i", PROBE: "p\n", JWT: "j", OTHER: "o" };
    const { secrets, requestFaults } = resolveBindings(config, bindings);
    expect([...secrets]).toEqual([
      ["INTERNAL", "i"],
      ["PROBE", "p"],
      ["JWT", "j"],
    ]);
    expect(requestFaults).toEqual([]);
  });

  it("are reported once each if they are not set", () => {
    const { secrets, requestFaults } = resolveBindings(config, { PROBE: " ", JWT: 5 });
    expect(secrets.size).toBe(0);
    expect(requestFaults).toEqual([
      "INTERNAL is not set: it exempts nobody from the rule a",
      "PROBE is not set: it exempts nobody from the rule c",
      "JWT is not set: no token is verified, and every claim is absent",
    ]);
  });

  it.each([
    "hunter2LiteralSecretOf32Characters0",
    "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
    "_x9",
    "jwt_key",
  ])("with a name that may be a secret itself are reported by its first characters: %s", (text) => {
    const given = defineConfig({ rules: [rule("a", text)], jwt: { secret: text } });
    const { requestFaults } = resolveBindings(given, {});
    expect(requestFaults).toEqual([
      `${text.slice(0, 3)}… is not set (write the secret's name there, not the secret): no token is verified, and every claim is absent`,
    ]);
    expect([...resolveBindings(given, { [text]: "value" }).secrets]).toEqual([[text, "value"]]);
  });

  it("are none if the configuration names none", () => {
    const options = { jwt: { jwks: "https://issuer.example.com/jwks.json" } };
    expect(settings(options, { JWT: "j" })).toMatchObject({
      secrets: new Map(),
      requestFaults: [],
    });
  });
});

describe("the key secret", () => {
  const secret = "0123456789abcdef0123456789abcdef";

  it.each([undefined, ""])("is not set if it is %j", (given) => {
    const read = settings({ store: "memory" }, { WEIR_KEY_SECRET: given });
    expect(read).not.toHaveProperty("keySecret");
    expect(read.store.kind).toBe("memory");
  });

  it("may have 32 characters or more", () => {
    expect(settings({}, { ...objects, WEIR_KEY_SECRET: secret })).toMatchObject({
      keySecret: secret,
      store: { kind: "durable-object" },
    });
  });

  it.each([
    "  ",
    "\n",
    " ".repeat(40),
    `${secret.slice(1)} `,
    "too-short",
    secret.slice(1),
    5,
    { get: () => secret },
  ])("of %j makes the store misconfigured, and is not quoted", (given) => {
    const read = settings({ store: "memory" }, { WEIR_KEY_SECRET: given });
    expect(read).not.toHaveProperty("keySecret");
    expect(read.store).toMatchObject({
      kind: "misconfigured",
      fault: expect.stringContaining("WEIR_KEY_SECRET is not a text of at least 32 characters"),
    });
    expect(JSON.stringify(read.store)).not.toContain(secret.slice(1));
  });
});

describe("the prefix of stored keys", () => {
  it.each([
    ["the configured prefix", "site", {}],
    ["the configured prefix if WEIR_PREFIX is blank", "site", { WEIR_PREFIX: " " }],
    ["the var WEIR_PREFIX", "site-staging", { WEIR_PREFIX: "site-staging\n" }],
  ])("is %s", (_, prefix, vars) => {
    const read = settings({ prefix: "site", store: "memory" }, vars);
    expect(read).toMatchObject({ prefix, store: { kind: "memory" } });
  });

  it.each(["a:b", "a b", "é", "x".repeat(65), 5, { a: "b" }, null])(
    "of %j makes the store misconfigured",
    (given) => {
      const { store, limiterFaults } = settings({}, { ...upstash, WEIR_PREFIX: given });
      expect(store).toEqual({
        kind: "misconfigured",
        fault: expect.stringContaining("WEIR_PREFIX is not a text of 1 to 64 characters"),
      });
      expect(limiterFaults).toHaveLength(1);
    },
  );
});

describe("the origin", () => {
  const url = (text: string) => settings({}, { ORIGIN_URL: text }).origin;

  it("is the zone's own by default", () => {
    expect(settings({}, {}).origin).toEqual({ kind: "pass-through" });
    expect(url("")).toEqual({ kind: "pass-through" });
  });

  it.each([
    ["https://origin.example.com", "https://origin.example.com"],
    ["https://origin.example.com/", "https://origin.example.com"],
    ["http://Origin.example.com:8080/base/", "http://origin.example.com:8080/base"],
  ])("is ORIGIN_URL %s", (text, base) => {
    expect(url(text)).toEqual({ kind: "url", base });
  });

  it("is ORIGIN_URL, which replaces the configuration's url", () => {
    const origin = { url: "https://live.example.com" };
    expect(settings({ origin }, {}).origin).toMatchObject({ base: "https://live.example.com" });
    expect(settings({ origin }, { ORIGIN_URL: "http://localhost:3000" }).origin).toMatchObject({
      base: "http://localhost:3000",
    });
  });

  it("is a service binding", () => {
    const service = { fetch: async () => new Response() };
    expect(settings({ origin: { binding: "API" } }, { API: service }).origin).toEqual({
      kind: "binding",
      service,
    });
  });

  it.each([
    ["origin.example.com", {}],
    ["ftp://origin.example.com", {}],
    ["https://user:secret@origin.example.com", {}],
    ["https://origin.example.com/?a=b", {}],
  ])("is misconfigured by ORIGIN_URL %s", (text) => {
    expect(url(text)).toMatchObject({
      kind: "misconfigured",
      fault: expect.stringMatching(/^ORIGIN_URL is not an absolute http or https URL/),
    });
    expect(JSON.stringify(url(text))).not.toContain("secret");
  });

  it("is misconfigured by a missing binding", () => {
    expect(settings({ origin: { binding: "API" } }, {}).origin).toMatchObject({
      kind: "misconfigured",
      fault: "no service is bound as API: add it to wrangler.toml",
    });
  });
});

describe("the native limiter", () => {
  const nativeLimiter = { binding: "NATIVE" };
  const limiter = { limit: async () => ({ success: true }) };

  it("is the bound limiter that the configuration names", () => {
    expect(settings({ nativeLimiter }, { ...objects, NATIVE: limiter })).toMatchObject({
      nativeLimiter: limiter,
      limiterFaults: [],
    });
    expect(settings({}, { NATIVE: limiter }).nativeLimiter).toBeUndefined();
  });

  it.each([undefined, "text", {}])("that is bound as %j is reported as a fault", (NATIVE) => {
    const bindings = { ...objects, NATIVE };
    const { nativeLimiter: found, limiterFaults } = settings({ nativeLimiter }, bindings);
    expect(found).toBeUndefined();
    expect(limiterFaults).toEqual([expect.stringContaining("no rate limiter is bound as NATIVE")]);
  });
});

describe("the data set of the use by client", () => {
  const usage = { binding: "USAGE" };
  const dataset = { writeDataPoint: () => {} };

  it("is the bound data set that the configuration names", () => {
    expect(settings({ usage }, { ...objects, USAGE: dataset })).toMatchObject({
      usage: dataset,
      limiterFaults: [],
    });
    expect(settings({}, { USAGE: dataset }).usage).toBeUndefined();
  });
});
