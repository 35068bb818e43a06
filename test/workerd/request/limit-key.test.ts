import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import type { Rule } from "../../../src/config/rule.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import { identityOf } from "../../../src/request/identity.ts";
import { identityOfLimitKey, type LimitKey } from "../../../src/request/limit-key.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

interface Sent {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly cf?: object;
  readonly routes?: string[] | undefined;
}

function configWith(key: string | string[], paths = ["/users/:id"]) {
  return defineConfig({
    jwt: { secret: "JWT_SECRET" },
    custom: { keys: { plan: () => "gold" } },
    rules: [{ name: "r", key, match: { paths }, limit: 5, window: "1m" }],
  });
}

function identityFor(key: string | string[], values: LimitKey | undefined) {
  const config = configWith(key);
  return identityOfLimitKey(config.rules[0] as Rule, values, config);
}

/**
 * Returns the identity that the gateway computes for a request. The request has a value for every
 * kind of key.
 */
async function gatewayIdentity(key: string | string[]): Promise<string> {
  const config = configWith(key);
  const cf = { country: "NL", asn: 13335, botManagement: { ja4: "t13d" } };
  const request = new Request("https://Api.Example.com./Users/Ann?tenant=acme", {
    method: "HEAD",
    headers: {
      "cf-connecting-ip": "2001:db8:0:0:1::1",
      "x-api-key": " abc ",
      authorization: "bEARER   t",
      cookie: "sid=s1; other=o",
    },
    cf: cf as never,
  });
  const canonical = canonicalRequest(request, false) as CanonicalRequest;
  const [match] = createMatcher(config.rules, false)(canonical);
  const { identity } = await identityOf(config.rules[0]?.key ?? [], {
    request: canonical,
    path: match?.path ?? canonical.path,
    params: match?.params ?? {},
    ipv6Prefix: config.ipv6Prefix,
    readClaims: async () => ({
      sub: "user-1",
      app_metadata: { org: "acme" },
      "https://example.com/org": "acme",
    }),
    computeCustom: async () => "gold",
  });
  return identity;
}

describe("a program's key", () => {
  it.each<[string | string[], LimitKey]>([
    ["ip", "2001:db8::1:0:0:1"],
    ["ip", "2001:db8:0:0:9::9"],
    ["header:x-api-key", "abc"],
    ["header:x-api-key", " abc "],
    ["header:authorization", "Bearer t"],
    ["header:authorization", "bearer  t"],
    ["cookie:sid", " s1 "],
    ["header:x-api-key | ip", { "header:x-api-key": "abc" }],
    ["header:x-api-key | ip", { "header:X-Api-Key": "abc" }],
    ["header:x-other | header:x-api-key", { "header:x-api-key": "abc" }],
    ["header:x-other | ip", { ip: "2001:db8::2" }],
    ["header:x-other", { ip: "2001:db8::2" }],
    ["jwt:none | cookie:sid", { "cookie:sid": "s1" }],
    [
      ["query:tenant", "header:x-other"],
      ["acme", { ip: "2001:db8::2" }],
    ],
    [["query:tenant"], [{ "query:tenant": "acme" }]],
    ["header:X-API-Key", "abc"],
    ["cookie:sid", "s1"],
    ["query:tenant", "acme"],
    ["param:id", "Ann"],
    ["jwt:sub", "user-1"],
    ["jwt:/app_metadata/org", "acme"],
    ["jwt:/https:~1~1example.com~1org | ip", { "jwt:/https:~1~1example.com~1org": "acme" }],
    ["custom:plan", "gold"],
    ["host", "API.example.com."],
    ["path", "/users//ann/"],
    ["method", "head"],
    ["country", "NL"],
    ["asn", "13335"],
    ["ja4", "t13d"],
    ["global", "global"],
    [
      ["query:tenant", "header:x-api-key | ip"],
      ["acme", { "header:x-api-key": "abc" }],
    ],
  ])("for %j names the client that the gateway counts: %j", async (key, values) => {
    expect(await identityFor(key, values)).toBe(await gatewayIdentity(key));
  });

  it("is that of a global rule if it is left out", async () => {
    expect(await identityFor("header:x-api-key", undefined)).toBe(await gatewayIdentity("global"));
  });

  it("differs for another split of the same text", async () => {
    const key = ["query:a", "query:b"];
    expect(await identityFor(key, ["x1", "y"])).not.toBe(await identityFor(key, ["x", "1y"]));
  });

  /**
   * Returns the identity that the gateway computes for a request. `sent.routes` sets the rule's
   * paths.
   */
  async function gatewayIdentityFor(key: string, sent: Sent) {
    const config = configWith(key, sent.routes);
    const {
      url = "https://api.example.com/users/ann",
      method = "GET",
      headers = {},
      cf = {},
    } = sent;
    const request = new Request(url, {
      method,
      headers: { "cf-connecting-ip": "203.0.113.7", ...headers },
      cf: cf as never,
    });
    const canonical = canonicalRequest(request, false) as CanonicalRequest;
    const [match] = createMatcher(config.rules, false)(canonical);
    const { identity } = await identityOf(config.rules[0]?.key ?? [], {
      request: canonical,
      path: match?.path,
      params: match?.params ?? {},
      ipv6Prefix: config.ipv6Prefix,
      readClaims: async () => undefined,
      computeCustom: async () => undefined,
    });
    return identity;
  }

  const at = (url: string, routes?: string[]): Sent => ({
    url: `https://api.example.com${url}`,
    ...(routes && { routes }),
  });
  const sent = (name: string, value: string): Sent => ({ headers: { [name]: value } });

  it.each<[key: string, value: string, Sent]>([
    ["header:x", "é", sent("x", "é")],
    ["header:x", "a b", sent("x", "a b")],
    ["header:user-agent", "A (b, c)", sent("user-agent", "A (b, c)")],
    ["header:authorization", "abc", sent("authorization", "Bearer abc")],
    ["header:authorization", "Basic dTpw", sent("authorization", "Basic dTpw")],
    ["cookie:sid", "v1,user-1", sent("cookie", "sid=v1%2Cuser-1")],
    ["cookie:sid", "a;b", sent("cookie", "sid=a%3Bb")],
    ["query:q", "a b", at("/users/x?q=a%20b")],
    ["query:q", "%41", at("/users/x?q=%2541")],
    ["path", "/Users/Ann", at("/Users/Ann")],
    ["path", "/users/josé", at("/users/jos%C3%A9")],
    ["path", "/users/a%20b", at("/users/a%20b")],
    ["path", "/users/a%2fb", at("/users/a%2fb")],
    ["path", "/users/../users/x", at("/users/../users/x")],
    ["param:id", "Alice", at("/users/Alice")],
    ["param:id", "50%", at("/users/50%25")],
    ["param:id", "a b", at("/users/a%20b")],
    ["param:id", "a+b", at("/users/a+b")],
    ["param:id", "josé", at("/users/jos%C3%A9")],
    ["param:id", "İ", at("/users/İ")],
    ["param:id", "ﬁ", at("/users/ﬁ")],
    ["param:id", "7", at("/v1/7/x", ["/v1/:id{[0-9]+}/x"])],
    ["param:id", "a/b", at("/files/a/b", ["/files/:id{.+}"])],
    ["param:id", "x", at("/a/9/b/x", ["/a/:other{[0-9]}/*/:id"])],
    ["param:id", "a;b", at("/users/a%3Bb")],
    ["param:id", "a/b", at("/users/a%2Fb")],
    ["param:id", "100%25", at("/users/100%2525")],
    ["host", "API.example.com", {}],
    ["host", "api.example.com:8080", { url: "https://api.example.com:8080/users/x" }],
    ["host", "bücher.de", { url: "https://bücher.de/users/x" }],
    ["method", "head", { method: "HEAD" }],
    ["method", "post", { method: "POST" }],
    ["country", "de", { cf: { country: "DE" } }],
    ["asn", "AS13335", { cf: { asn: 13335 } }],
    ["asn", "013335", { cf: { asn: 13335 } }],
    ["global", "global", {}],
  ])(
    "for %s with the value %j is counted like a request that carries it",
    async (key, value, request) => {
      const config = configWith(key, request.routes);
      const identity = await identityOfLimitKey(config.rules[0] as Rule, value, config);
      expect(identity).toBe(await gatewayIdentityFor(key, request));
      // If the request had no value for the key, Weir would use the address as the key.
      expect(identity).not.toBe(await gatewayIdentityFor("ip", request));
    },
  );

  it.each<[key: string, value: string, needs: string, routes?: string[]]>([
    ["header:x", "a,b", "a text without commas"],
    ["header:x", "a\nb", "a text without commas"],
    ["header:authorization", "a,b", "one credential"],
    ["header:authorization", "a b c", "one credential"],
    ["header:authorization", "Basic a_b", "one credential"],
    ["cookie:sid", "\ud800", "Unicode"],
    ["path", "users/ann", "a path"],
    ["path", "https://a/users/ann", "a path"],
    ["path", "/users/ann?x=1", "a path"],
    ["path", "/users/ann#x", "a path"],
    ["path", "/a%2fb", "a path"],
    ["path", "//x/login", "a path"],
    ["param:id", "what?", "in the same way"],
    ["param:id", "c#", "in the same way"],
    ["param:id", "❤️", "in the same way"],
    ["param:id", "..", "in the same way"],
    ["param:id", "x", "in the same way", ["/v1/:id{[0-9]+}"]],
    ["host", "https://api.example.com", "a host name"],
    ["host", "a/b", "a host name"],
    ["host", "u@a", "a host name"],
    ["method", "GET /", "a method"],
    ["country", "Germany", "two letters"],
    ["asn", "Cloudflare", "a number"],
    ["asn", "0", "a number"],
    ["global", "user1", "global"],
  ])(
    "for %s is refused with the value %j, which no request can carry",
    async (key, value, needs, routes) => {
      const config = configWith(key, routes);
      const refused = identityOfLimitKey(config.rules[0] as Rule, value, config);
      await expect(refused).rejects.toThrow(TypeError);
      await expect(refused).rejects.toThrow(needs);
      await expect(refused).rejects.not.toThrow(value.length > 4 ? value : "\0");
    },
  );

  it.each<[string | string[], unknown, string]>([
    ["ip", "user-1", 'For the rule "r", ip must be an IP address.'],
    [
      "header:x-api-key",
      "",
      'For the rule "r", header:x-api-key must be a text that is not empty.',
    ],
    ["global", null, 'For the rule "r", global must be a text.'],
    [
      ["query:a", "ip"],
      "x",
      'For the rule "r", the key must be a list of 2 values: a text for query:a, then a text for ip.',
    ],
    ["ip", ["1.2.3.4", "x"], 'For the rule "r", the key must be a text for ip.'],
    [
      ["query:a", "header:b | ip"],
      "x",
      'the key must be a list of 2 values: a text for query:a, then { "header:b": "…" } or { ip: "…" }.',
    ],
    [
      ["query:a", "header:b | ip"],
      ["x", "y"],
      'For the rule "r", value 2 of the key must be { "header:b": "…" } or { ip: "…" }.',
    ],
    [
      "country",
      "Germany",
      'For the rule "r", country must be a code of two letters, such as "DE".',
    ],
    [["query:a", "ip"], ["x", 4], 'For the rule "r", ip must be a text.'],
    [["query:a", "ip"], ["x", "4"], 'For the rule "r", ip must be an IP address.'],
    ...["abc", null, 5, {}, [], { ip: "1.2.3.4", "header:a": "b" }, { "cookie:a": "b" }].map(
      (value): [string, unknown, string] => [
        "header:a | ip",
        Array.isArray(value) ? [value] : value,
        'For the rule "r", the key must be { "header:a": "…" } or { ip: "…" }.',
      ],
    ),
    [
      "header:a",
      JSON.parse('{"__proto__": "b"}'),
      'the key must be { "header:a": "…" } or { ip: "…" }.',
    ],
    ["header:a", new Map([["header:a", "b"]]), "header:a must be a text."],
    ["header:a", { "header:a": { ip: "1.2.3.4" } }, "header:a must be a text."],
    ["header:a", { ip: "user-1" }, "ip must be an IP address."],
    ["header:a", "x".repeat(8193), "header:a must be a text of up to 8192 characters."],
  ])("for %j is refused if it is %j", async (key, values, message) => {
    const refused = identityFor(key, values as LimitKey);
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(message);
  });
});
