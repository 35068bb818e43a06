import { describe, expect, test } from "vitest";
import { ruleWarnings } from "../../../cli/warnings/rules.ts";
import { defineConfig } from "../../../src/config/index.ts";

type RuleFields = Record<string, unknown>;

/** The codes of what is wrong with rules, each in addition to a name and a quota. */
function codes(rules: readonly RuleFields[], options: object = {}): string[] {
  return warnings(rules, options).map(({ code }) => code);
}

function warnings(rules: readonly RuleFields[], options: object = {}) {
  const named = rules.map((fields, index) => ({
    name: `r${index}`,
    limit: 5,
    window: "1m",
    ...fields,
  }));
  return ruleWarnings(
    defineConfig({ rules: named, ...options } as Parameters<typeof defineConfig>[0]),
  );
}

const login = (path: string, rest: RuleFields = {}) => ({
  match: { methods: ["POST"], paths: [path] },
  onError: "closed",
  ...rest,
});

describe("no-address-limit", () => {
  test.each([
    "header:x-api-key",
    "cookie:sid",
    "query:user",
    "header:x-device | ip",
    ["ip", "header:x-device"],
  ])("warns of a login that is counted by %j alone", (key) => {
    expect(warnings([login("/login", { key })])).toEqual([
      {
        code: "no-address-limit",
        where: "rules[0].key",
        what: expect.stringContaining('"r0"'),
        advice: expect.stringContaining('key: "ip"'),
      },
    ]);
  });

  test.each(["ip", "global", "jwt:sub", ["ip", "host"]])("does not where that is %j", (key) => {
    const jwt = { secret: "S" };
    expect(codes([login("/login", { key })], { jwt })).toEqual([]);
  });

  test.each([
    ["beside it", { match: { paths: ["/login"] } }, []],
    ["for every request", {}, []],
    ["for a part of the site that it is in", { match: { paths: ["/*"] } }, []],
    ["for its method", { match: { methods: ["POST"] } }, []],
    ["for another method", { match: { methods: ["GET"] } }, ["no-address-limit"]],
    ["for another path", { match: { paths: ["/login/x"] } }, ["no-address-limit"]],
    ["for one of its hosts", { match: { hosts: ["a.example"] } }, ["no-address-limit"]],
    [
      "with an exception for it",
      { match: { except: { paths: ["/login"] } } },
      ["no-address-limit"],
    ],
    ["in shadow mode", { mode: "shadow" }, ["no-address-limit"]],
    [
      "by something else that clients choose",
      { key: "header:b" },
      ["no-address-limit", "made-up-keys"],
    ],
  ] as const)("with a rule by address %s", (_, floor, expected) => {
    expect(codes([login("/login", { key: "header:a" }), { onError: "closed", ...floor }])).toEqual(
      expected,
    );
  });

  test.each([
    "/login",
    "/Log-In",
    "/v1/sign_in",
    "/:tenant/auth/callback",
    "/password-reset",
    "/oauth/token",
    "/account/2fa",
    "/otp/*",
  ])("takes %s for a place where credentials are tried", (path) => {
    expect(codes([login(path, { key: "header:a" })])).toEqual(["no-address-limit"]);
  });

  test.each([
    "/authors",
    "/blog/:login",
    "/tokens",
    "/log/in",
    "/v1/count_tokens",
    "/*",
    "/search",
  ])("takes %s for none", (path) => {
    expect(codes([login(path, { key: "header:a" })])).toEqual(["made-up-keys"]);
  });

  test("does not warn of a rule that is only about reading", () => {
    const match = { methods: ["GET", "HEAD"], paths: ["/login"] };
    expect(codes([{ match, key: "header:a" }])).toEqual(["made-up-keys"]);
  });
});

describe("made-up-keys", () => {
  const jwt = { secret: "S" };
  const search = { match: { paths: ["/search"] } };

  test.each([
    "header:x-api-key",
    "header:x-api-key | ip",
    "header:authorization | ip",
    "cookie:sid",
    "query:key | ip",
    "jwt:sub | header:x-api-key",
    ["header:x-api-key | ip", "ip"],
    ["ip", "cookie:sid"],
    ["header:x-api-key | ip", "path"],
  ])("warns of a rule that counts by %j alone", (key) => {
    expect(warnings([{ ...search, key }], { jwt })).toEqual([
      {
        code: "made-up-keys",
        where: "rules[0].key",
        what: expect.stringContaining('"r0"'),
        advice: expect.stringContaining('key: "ip"'),
      },
    ]);
  });

  test.each([
    "ip",
    "global",
    "jwt:sub",
    "jwt:sub | ip",
    "custom:tenant",
    "param:id",
    "path",
    "host",
    ["ip", "path"],
  ])("does not where that is %j", (key) => {
    const match = { paths: ["/search/:id"] };
    expect(codes([{ match, key }], { jwt })).toEqual([]);
  });

  test.each([
    ["by address", {}, []],
    ["for every client", { key: "global" }, []],
    ["by a verified claim", { key: "jwt:sub | ip" }, []],
    ["by a function", { key: "custom:tenant" }, []],
    ["by address, for a part of the site that it is in", { match: { paths: ["/*"] } }, []],
    ["by address, for another path", { match: { paths: ["/other"] } }, ["made-up-keys"]],
    ["by address, for another method", { match: { methods: ["POST"] } }, ["made-up-keys"]],
    ["by address, for one of its hosts", { match: { hosts: ["a.example"] } }, ["made-up-keys"]],
    ["by address, in shadow mode", { mode: "shadow" }, ["made-up-keys"]],
    [
      "by address and something made up",
      { key: ["ip", "header:b"] },
      ["made-up-keys", "made-up-keys"],
    ],
    [
      "by address and path, which is made up too",
      { match: { paths: ["/*"] }, key: ["ip", "path"] },
      ["made-up-keys"],
    ],
  ] as const)("with a rule beside it %s", (_, beside, expected) => {
    expect(codes([{ ...search, key: "header:a | ip" }, beside], { jwt })).toEqual(expected);
  });

  test("does not of a rule that denies nobody, nor of one that holds for no request", () => {
    expect(codes([{ ...search, key: "header:a", mode: "shadow" }])).toEqual([]);
    const match = { paths: ["/a"], except: { paths: ["/*"] } };
    expect(codes([{ match, key: "header:a" }])).toEqual(["never-matches"]);
  });
});

describe("fails-open", () => {
  test("warns of a login that passes undecided", () => {
    expect(warnings([login("/login", { onError: "open" })])).toMatchObject([
      { code: "fails-open", where: "rules[0].onError", advice: expect.stringContaining("closed") },
    ]);
  });

  test.each(["closed", "local"])("does not where it is %s", (onError) => {
    expect(codes([login("/login", { onError })])).toEqual([]);
  });

  test("does not where another rule for the same is closed", () => {
    expect(codes([login("/login", { onError: "open" }), { onError: "closed" }])).toEqual([]);
    const other = { match: { paths: ["/other"] }, onError: "closed" };
    expect(codes([login("/login", { onError: "open" }), other])).toEqual(["fails-open"]);
  });

  test.each([
    { match: { paths: ["/search"] } },
    {},
    { match: { paths: ["/login"] }, mode: "shadow" },
  ])("does not for %j", (rule) => {
    expect(codes([rule])).toEqual([]);
  });
});

describe("never-matches", () => {
  test.each([
    { hosts: ["api.example.com"], except: { hosts: ["*.example.com"] } },
    { paths: ["/a", "/b/:id"], except: { paths: ["/*"] } },
    { paths: ["/v1/*"], except: { paths: ["/v1/*"] } },
    { methods: ["POST", "PUT"], except: { methods: ["PUT", "POST", "GET"] } },
  ])("warns of a rule whose exception is all it is about: %j", (match) => {
    expect(warnings([{ match }])).toMatchObject([
      { code: "never-matches", where: "rules[0].match.except" },
    ]);
  });

  test.each([
    { hosts: ["*.example.com"], except: { hosts: ["api.example.com"] } },
    { except: { hosts: ["*.example.com"] } },
    { paths: ["/a", "/b"], except: { paths: ["/a"] } },
    { paths: ["/v1/*"], except: { paths: ["/v1"] } },
    { paths: ["/v1/*"], except: { paths: ["/v1", "/v1/:page"] } },
    { methods: ["POST", "PUT"], except: { methods: ["PUT"] } },
    { paths: ["/a"], except: { methods: ["GET", "OPTIONS"] } },
    { paths: ["/a"], except: { paths: ["/*"], methods: ["GET"] } },
    // What such a pattern is about cannot be told.
    { paths: ["/a/:id{[a-f]{8}}"], except: { paths: ["/*"] } },
  ])("does not where something is left: %j", (match) => {
    expect(codes([{ match }])).toEqual([]);
  });
});

describe("exempt-by-text", () => {
  test("warns of a text in the source that exempts, and not of a secret", () => {
    const headers = { "X-Internal": "let-me-pass", "x-other": { secret: "OTHER" } };
    expect(warnings([{ exempt: { headers } }])).toMatchObject([
      { code: "exempt-by-text", where: 'rules[0].exempt.headers["x-internal"]' },
    ]);
    expect(codes([{ exempt: { headers: { "x-other": { secret: "OTHER" } } } }])).toEqual([]);
    expect(codes([{ exempt: { ips: ["198.51.100.0/24"] } }])).toEqual([]);
  });

  test("quotes nothing of that text", () => {
    const found = warnings([{ exempt: { headers: { "x-internal": "let-me-pass" } } }]);
    expect(JSON.stringify(found)).not.toContain("let-me-pass");
  });
});

describe("tier-by-client", () => {
  const limits = { pro: { limit: 9, window: "1m" } };

  test.each(["header:x-plan", "cookie:plan", "query:plan", "jwt:plan | header:x-plan"])(
    "warns of tiers by %s",
    (by) => {
      const found = codes([{ tiers: { by, limits } }], { jwt: { secret: "S" } });
      expect(found).toEqual(["tier-by-client"]);
    },
  );

  test.each(["jwt:plan", "custom:plan", "country"])("does not of tiers by %s", (by) => {
    expect(codes([{ tiers: { by, limits } }], { jwt: { secret: "S" } })).toEqual([]);
  });
});

describe("ipv6-prefix", () => {
  test.each([
    [65, "2 clients"],
    [80, "65536 clients"],
    [128, "2^64 clients"],
  ])("warns of %i bits", (ipv6Prefix, says) => {
    expect(warnings([{}], { ipv6Prefix })).toMatchObject([
      { code: "ipv6-prefix", where: "ipv6Prefix", what: expect.stringContaining(says) },
    ]);
  });

  test.each([64, 56, 48])("does not of %i bits", (ipv6Prefix) => {
    expect(codes([{}], { ipv6Prefix })).toEqual([]);
  });
});
