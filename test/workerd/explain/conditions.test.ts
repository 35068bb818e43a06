import { describe, expect, it } from "vitest";
import type { MatchInput } from "../../../src/config/index.ts";
import type { DescribedRequest } from "../../../src/explain/explanation.ts";
import { explaining, explainRule } from "./explaining.ts";

const HOST = "https://api.example.com";
const header = (value: string, name = "x-plan") => ({ headers: { [name]: value } });
const at = (path: string, method = "GET") => ({ url: HOST + path, method });

describe("an exception", () => {
  const except = { paths: ["/v1/health"], methods: ["GET"] };

  it.each<[string, Partial<DescribedRequest>, object[]]>([
    ["with another path", at("/v1/x"), [{ field: "match.except.paths", result: "fails" }]],
    [
      "with an ambiguous path",
      at("/v1%2Fhealth"),
      [
        {
          field: "match.except.paths",
          result: "unknown",
          note: expect.stringContaining("So the exception does not apply."),
        },
      ],
    ],
    [
      "with another method",
      at("/v1/health", "POST"),
      [{ result: "holds" }, { field: "match.except.methods", result: "fails" }],
    ],
  ])("does not apply to a request %s", async (_, request, conditions) => {
    const explained = await explainRule({ match: { except } }, request);
    expect(explained).toMatchObject({ applies: true, conditions });
  });

  it("applies if all of its conditions hold", async () => {
    expect(await explainRule({ match: { except } }, at("/v1/health"))).toMatchObject({
      applies: false,
      why: "The request fulfils match.except: methods is GET.",
      conditions: [{ result: "holds" }, { field: "match.except.methods", result: "holds" }],
    });
  });
});

describe("a condition whose result is unknown counts the request, and says so", () => {
  it.each<[string, MatchInput, Partial<DescribedRequest>]>([
    ["a path that origins read differently", { paths: ["/v1/a"] }, at("/v1%2Fa")],
    ["an ambiguous path below a wildcard", { paths: ["/v1/*"] }, at("/v1/a%2Fb")],
    ["a parameter in another case", { query: { export: true } }, at("/?Export=1")],
    ["a parameter that was sent twice", { query: { format: "csv" } }, at("/?format=csv&format=x")],
    ["a semicolon in the query", { query: { format: "csv" } }, at("/?format=csv;x")],
    ["an empty parameter", { query: { export: true } }, at("/?export=")],
    ["a hidden query", { query: { export: true } }, at("/a%3fexport=1")],
    ["a text in another case", { headers: { "x-plan": "free" } }, header("FREE")],
    ["another separator", { headers: { "x-plan": "free" } }, header("free", "x_plan")],
    ["a header that was sent twice", { headers: { "x-plan": "free" } }, header("free, pro")],
    ["an unknown address", { ips: ["198.51.100.0/24"] }, {}],
    ["an unknown country", { countries: ["DE"] }, { cf: {} }],
    ["Tor", { countries: ["DE"] }, { cf: { country: "T1" } }],
    ["an unknown network", { asns: [64_500] }, {}],
    ["no data about bots", { bots: "verified" }, {}],
  ])("%s", async (_, match, request) => {
    const { applies, conditions } = await explainRule({ match }, request);
    expect({ applies, results: conditions.map(({ result }) => result) }).toEqual({
      applies: true,
      results: ["unknown"],
    });
    expect(conditions[0]?.note).toContain("So this condition counts as fulfilled.");
  });
});

describe("a read of the client's own quotas", () => {
  const rules = [{ name: "api", limit: 5, window: "1m" }] as const;
  const explain = explaining({ quotaPath: "/Rate-Limit", rules });

  it.each([at("/rate-limit"), at("/RATE-limit/?a=b", "HEAD")])(
    "is counted by no rule, and answered by Weir: %j",
    async (request) => {
      expect(await explain(request)).toMatchObject({
        outcome: "unmatched",
        rules: [{ applies: false, conditions: [{ field: "quotaPath", result: "fails" }] }],
        response: { status: 200 },
      });
    },
  );

  it.each([at("/rate-limit", "POST"), at("/rate-limit/x")])(
    "is neither another method nor another path: %j",
    async (request) => {
      const { rules } = await explain(request);
      expect(rules).toMatchObject([{ applies: true }]);
    },
  );
});

describe("an exemption", () => {
  const exempt = {
    ips: ["198.51.100.0/25"],
    headers: { "x-text": "a-text", "x-secret": { secret: "NAME" } },
  };
  const env = { NAME: "secret-of-the-worker" };

  it.each<[string, Record<string, string>, object, string]>([
    ["an address", { "cf-connecting-ip": "198.51.100.127" }, {}, "ips"],
    ["a text", { "x-text": "a-text" }, {}, "headers.x-text"],
    ["a secret", { "x-secret": "secret-of-the-worker" }, env, "headers.x-secret"],
  ])("by %s is named", async (_, headers, bindings, entry) => {
    const explained = await explainRule({ exempt }, { headers }, {}, { ...bindings });
    expect(explained).toMatchObject({
      applies: false,
      why: `The request fulfils exempt: ${entry}.`,
      key: [],
    });
    expect(explained.conditions.at(-1)).toMatchObject({
      field: `exempt.${entry}`,
      result: "holds",
    });
    expect(explained).not.toHaveProperty("client");
  });

  it("that nearly applies shows what the request has", async () => {
    const headers = { "cf-connecting-ip": "198.51.100.128", "x-text": "a-tex", "x-secret": "x" };
    const { applies, conditions } = await explainRule({ exempt }, { headers });
    expect({ applies, conditions }).toEqual({
      applies: true,
      conditions: [
        {
          field: "exempt.ips",
          result: "fails",
          actual: "198.51.100.128",
          expected: "198.51.100.0/25",
        },
        {
          field: "exempt.headers.x-text",
          result: "fails",
          actual: "a value",
          expected: "a text (not shown)",
        },
        {
          field: "exempt.headers.x-secret",
          result: "fails",
          actual: "a value",
          expected: "the value of the secret NAME, which is not set",
        },
      ],
    });
  });
});

it.each([{}, header("free"), at("/?token=x")])(
  "shows no text that only the configuration knows: %j",
  async (request) => {
    const conditions: MatchInput = {
      headers: { "x-plan": ["secret-text", { prefix: "secret-prefix" }] },
      query: { token: "secret-token" },
    };
    const exempt = { headers: { "x-internal": "secret-value", "x-other": { secret: "NAME" } } };
    for (const fields of [{ match: conditions }, { match: { except: conditions } }, { exempt }]) {
      const explained = await explainRule(fields, request, {}, { NAME: "secret-of-the-worker" });
      expect(JSON.stringify(explained)).not.toContain("secret-");
    }
  },
);

describe("a value that may be a credential is not shown in full", () => {
  const SECRET = "SECRETVALUE-0123456789";
  const WHOLE = new RegExp(SECRET);

  it.each<[string, MatchInput, Partial<DescribedRequest>, boolean]>([
    [
      "that an exception demands",
      { except: { headers: { "x-plan": SECRET } } },
      header(SECRET),
      false,
    ],
    ["that a condition demands", { headers: { "x-plan": [SECRET] } }, header(SECRET), true],
    ["that begins as a prefix", { headers: { "x-plan": { prefix: "SEC" } } }, header(SECRET), true],
    [
      "of a parameter that a condition demands",
      { query: { plan: SECRET } },
      at(`/?plan=${SECRET}`),
      true,
    ],
    [
      "that may be a demanded one",
      { query: { plan: SECRET } },
      at(`/?plan=${SECRET}&plan=a`),
      true,
    ],
    ["in x-api-key", { headers: { "x-api-key": true } }, header(SECRET, "x-api-key"), true],
    [
      "in x-auth-token",
      { headers: { "x-auth-token": "other" } },
      header(SECRET, "x-auth-token"),
      false,
    ],
    ["in the parameter api_key", { query: { api_key: true } }, at(`/?api_key=${SECRET}`), true],
    ["in the parameter token", { query: { token: "a" } }, at(`/?token=a&token=${SECRET}`), true],
    ["in cookies", { headers: { cookie: true } }, header(`a=${SECRET}`, "cookie"), true],
  ])("%s", async (_, match, request, applies) => {
    const explained = await explainRule({ match }, request);
    expect(explained.applies).toBe(applies);
    expect(JSON.stringify(explained)).not.toMatch(WHOLE);
    expect(explained.conditions.at(-1)?.actual).toMatch(/… \(\d+ characters\)/);
  });

  it("even if another rule demands another value", async () => {
    const rules = ["one", SECRET].map((text, index) => ({
      name: `rule-${index}`,
      match: { headers: { "x-plan": text } },
      limit: 5,
      window: "1m" as const,
    }));
    expect(JSON.stringify(await explaining({ rules })(header(SECRET)))).not.toMatch(WHOLE);
  });
});
