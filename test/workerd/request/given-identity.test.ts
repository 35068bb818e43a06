import { describe, expect, it } from "vitest";
import { defineConfig } from "../../../src/config/index.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import { type GivenKey, givenIdentity } from "../../../src/request/given-identity.ts";
import { identityOf } from "../../../src/request/identity.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

function configWith(key: string | string[]) {
  return defineConfig({
    jwt: { secret: "JWT_SECRET" },
    rules: [{ name: "r", key, match: { paths: ["/users/:id"] }, limit: 5, window: "1m" }],
  });
}

function given(key: string | string[], values: GivenKey | undefined) {
  const config = configWith(key);
  return givenIdentity(config.rules[0] as (typeof config.rules)[number], values, config);
}

/** Who the gateway counts a request by. */
function counted(key: string | string[]): Promise<string> {
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
  return identityOf(config.rules[0]?.key ?? [], {
    request: canonical,
    path: match?.path ?? canonical.path,
    params: match?.params ?? {},
    ipv6Prefix: config.ipv6Prefix,
    claims: async () => ({ sub: "user-1" }),
    custom: async () => "gold",
  });
}

describe("a given key", () => {
  it.each<[string | string[], GivenKey]>([
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
  ])("for %j is the client that the gateway counts", async (key, values) => {
    expect(await given(key, values)).toBe(await counted(key));
  });

  it("left out is one counter for all, that of a rule for everyone", async () => {
    expect(await given("header:x-api-key", undefined)).toBe(await counted("global"));
  });

  it("of two values is not one of another division", async () => {
    const key = ["query:a", "query:b"];
    expect(await given(key, ["x1", "y"])).not.toBe(await given(key, ["x", "1y"]));
  });

  it.each<[string | string[], unknown, string]>([
    ["ip", "user-1", 'The key for the rule "r" needs an IP address as ip.'],
    [
      "header:x-api-key",
      "",
      'The key for the rule "r" needs a text that is not empty as header:x-api-key.',
    ],
    ["global", null, 'The key for the rule "r" is a text, for global.'],
    [["query:a", "ip"], "x", 'The key for the rule "r" is a list of 2 texts, for query:a, ip.'],
    [["query:a", "ip"], ["x", 4], 'The key for the rule "r" is a text, for ip.'],
    [["query:a", "ip"], ["x", "4"], 'The key for the rule "r" needs an IP address as ip.'],
    ...["abc", null, 5, {}, [], { ip: "1.2.3.4", "header:a": "b" }, { "cookie:a": "b" }].map(
      (value): [string, unknown, string] => [
        "header:a | ip",
        Array.isArray(value) ? [value] : value,
        'The key for the rule "r" names one of { "header:a": "…" }, { ip: "…" }.',
      ],
    ),
    ["header:a", JSON.parse('{"__proto__": "b"}'), "names one of"],
    ["header:a", new Map([["header:a", "b"]]), "is a text, for header:a."],
    ["header:a", { "header:a": { ip: "1.2.3.4" } }, "is a text, for header:a."],
    ["header:a", { ip: "user-1" }, "needs an IP address as ip."],
    ["header:a", "x".repeat(8193), "a text of up to 8192 characters as header:a."],
  ])("for %j that is %j is refused", async (key, values, message) => {
    const refused = given(key, values as GivenKey);
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(message);
  });
});
