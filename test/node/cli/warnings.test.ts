import { describe, expect, test } from "vitest";
import { configFindings } from "../../../cli/warnings/rules.ts";
import { defineConfig } from "../../../src/config/index.ts";

type RuleFields = Record<string, unknown>;

const CUSTOM = { keys: { tenant: () => "a", plan: () => "pro" } };

/**
 * Gives each of these rules a name and a limit, and returns the codes of the warnings about them.
 */
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
  return configFindings(
    defineConfig({ rules: named, custom: CUSTOM, ...options } as Parameters<
      typeof defineConfig
    >[0]),
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
  ])("warns if a login is counted only by %j", (key) => {
    expect(warnings([login("/login", { key })])).toEqual([
      {
        code: "no-address-limit",
        severity: "warning",
        path: "rules[0].key",
        message: expect.stringContaining('"r0"'),
        cure: expect.stringContaining('key: "ip"'),
      },
    ]);
  });

  test.each(["ip", "global", "jwt:sub", ["ip", "host"]])(
    "does not warn if the key is %j",
    (key) => {
      const jwt = { secret: "S" };
      expect(codes([login("/login", { key })], { jwt })).toEqual([]);
    },
  );

  test.each([
    ["for the same path", { match: { paths: ["/login"] } }, []],
    ["for every request", {}, []],
    ["for a part of the site that includes the path", { match: { paths: ["/*"] } }, []],
    ["for its method", { match: { methods: ["POST"] } }, []],
    ["for another method", { match: { methods: ["GET"] } }, ["no-address-limit"]],
    ["for another path", { match: { paths: ["/login/x"] } }, ["no-address-limit"]],
    ["for one of its hosts", { match: { hosts: ["a.example"] } }, ["no-address-limit"]],
    [
      "with an exception for the path",
      { match: { except: { paths: ["/login"] } } },
      ["no-address-limit"],
    ],
    [
      "with an exception for paths that include the path",
      { match: { except: { paths: ["/login/:step{[a-z]+}", "/:page{l.*}"] } } },
      ["no-address-limit"],
    ],
    ["with an exception for another path", { match: { except: { paths: ["/health"] } } }, []],
    ["with an exception for another method", { match: { except: { methods: ["GET"] } } }, []],
    ["by one counter for each host", { key: "host" }, ["no-address-limit"]],
    ["by address and any host", { key: ["ip", "host"] }, ["no-address-limit"]],
    ["by the TLS client", { key: "ja4" }, ["no-address-limit"]],
    ["by network and country", { key: ["asn", "country"] }, []],
    [
      "that exempts all clients",
      { exempt: { ips: ["0.0.0.0/0", "::/0"] } },
      ["no-address-limit", "exempts-everybody", "exempts-everybody"],
    ],
    ["that exempts a network", { exempt: { ips: ["198.51.100.0/24"] } }, []],
    ["that counts failed log-ins", { count: { status: [401, 403] } }, []],
    ["that counts something else", { count: { status: [500] } }, ["no-address-limit"]],
    ["in shadow mode", { mode: "shadow" }, ["no-address-limit"]],
    [
      "by something else that clients choose",
      { key: "header:b" },
      ["no-address-limit", "made-up-keys"],
    ],
  ] as const)("takes into account another rule by address %s", (_, fields, expected) => {
    expect(codes([login("/login", { key: "header:a" }), { onError: "closed", ...fields }])).toEqual(
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
    "/login/:step{[a-z]+}",
    "/:page{login(\\..*)?}",
    "/:page{[Ll]og-?in}",
    "/:page{\\bsign(?:in|up)\\b}",
  ])("treats %s as a path where clients send credentials", (path) => {
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
    "/:page{[a-z]+}",
  ])("does not treat %s as a path where clients send credentials", (path) => {
    expect(codes([login(path, { key: "header:a" })])).toEqual(["made-up-keys"]);
  });

  test("does not warn about a rule for reading methods", () => {
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
  ])("warns about a rule that counts only by %j", (key) => {
    expect(warnings([{ ...search, key }], { jwt })).toEqual([
      {
        code: "made-up-keys",
        severity: "warning",
        path: "rules[0].key",
        message: expect.stringContaining('"r0"'),
        cure: expect.stringContaining('key: "ip"'),
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
  ])("does not warn if the key is %j", (key) => {
    const match = { paths: ["/search/:id"] };
    expect(codes([{ match, key }], { jwt })).toEqual([]);
  });

  test.each([
    ["by address", {}, []],
    ["for every client", { key: "global" }, []],
    ["by a verified claim", { key: "jwt:sub | ip" }, []],
    ["by a function", { key: "custom:tenant" }, []],
    ["by address, for a part of the site that includes the path", { match: { paths: ["/*"] } }, []],
    ["by address, for another path", { match: { paths: ["/other"] } }, ["made-up-keys"]],
    ["by address, for another method", { match: { methods: ["POST"] } }, ["made-up-keys"]],
    ["by address, for one of its hosts", { match: { hosts: ["a.example"] } }, ["made-up-keys"]],
    ["by address, in shadow mode", { mode: "shadow" }, ["made-up-keys"]],
    [
      "by address and a key that clients can make up",
      { key: ["ip", "header:b"] },
      ["made-up-keys", "made-up-keys"],
    ],
    [
      "by address and path, which clients can make up too",
      { match: { paths: ["/*"] }, key: ["ip", "path"] },
      ["made-up-keys"],
    ],
  ] as const)("takes into account another rule %s", (_, beside, expected) => {
    expect(codes([{ ...search, key: "header:a | ip" }, beside], { jwt })).toEqual(expected);
  });

  test.each([
    ["/users/:id{[a-z]+}", ["/items/*"], false],
    ["/users/:id{[a-z]+}", ["/users/:name{[a-z]+}"], false],
    ["/users/:id{[a-z]+}", ["/users/:id"], false],
    // A pattern with `.` matches slashes, so it matches several segments.
    ["/users/:id{.+}", ["/users/:id"], false],
    ["/users/:id{[^x]+}", ["/users/:id"], false],
    ["/users/:id{.+}", ["/users/*"], true],
    ["/users/:id{a+|b/c}", ["/users/:id"], false],
    ["/:id{[a-z]*}", ["/:id"], false],
    ["/items/:id", ["/items/:id{[0-9]+}"], false],
    ["/items/7", ["/items/:id{[0-9]+}"], false],
    ["/items/x", ["/items/:id{[0-9]+}"], false],
    ["/items/:id?", ["/items/:id"], false],
    ["/items/:id?", ["/items", "/items/:id"], false],
    ["/items/:id?", ["/items/*"], true],
    ["/v1/*", ["/v1", "/v1/:x{[0-9]+}"], false],
    ["/v1/*", ["/v1/*"], true],
    ["/v1/*", ["/v1/:x"], false],
    ["/v1/*", ["/*/*"], false],
    ["/v1/*", ["/:version/*"], false],
    ["/v1/x", ["/*/x"], false],
    ["/*/x", ["/:version/x"], false],
    ["/V1/X", ["/v1/x"], true],
    [undefined, ["/"], false],
    [undefined, ["/*"], true],
    [undefined, ["/:a", "/:a/*"], false],
  ] as const)("treats %j as covered by a rule for %j: %s", (path, paths, bounded) => {
    const found = codes([
      { key: "header:a", ...(path && { match: { paths: [path] } }) },
      { match: { paths } },
    ]);
    expect(found).toEqual(bounded ? [] : ["made-up-keys"]);
  });

  test.each([
    [{ methods: ["REPORT"] }, {}, true],
    [{ methods: ["HEAD"] }, { methods: ["GET"] }, true],
    [{ methods: ["GET"] }, { methods: ["HEAD"] }, false],
    [{}, { methods: ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] }, false],
    // A rule that names no methods does not apply to preflight requests.
    [{ methods: ["OPTIONS"] }, {}, false],
    [{ methods: ["OPTIONS"] }, { methods: ["OPTIONS"] }, true],
    [{ hosts: ["*.example.com"] }, { hosts: ["any.example.com"] }, false],
    [{ hosts: ["*.a.example.com"] }, { hosts: ["*.example.com"] }, true],
    [{ hosts: ["example.com"] }, { hosts: ["*.example.com"] }, false],
    [{ paths: ["/a/*"] }, { except: { paths: ["/a/special"] } }, false],
    [{ paths: ["/a/*"] }, { except: { paths: ["/:any{a(/b)?}"] } }, false],
    [{ paths: ["/a/*"] }, { except: { paths: ["/b/*", "/c"] } }, true],
    [{ paths: ["/a"] }, { except: { paths: ["/a/:b"] } }, false],
    [{ paths: ["/a"] }, { except: { paths: ["/a/:b?"] } }, false],
    [{ paths: ["/a"] }, { except: { hosts: ["b.example"] } }, false],
    [{ hosts: ["a.example"] }, { except: { hosts: ["b.example"] } }, true],
    [{ methods: ["GET"] }, { except: { methods: ["HEAD"] } }, false],
    [{ except: { paths: ["/health"] } }, { except: { paths: ["/health"] } }, true],
    [{ except: { paths: ["/public/*"] } }, { except: { paths: ["/public/a"] } }, false],
    [{ except: { paths: ["/public/a"] } }, { except: { paths: ["/public/*"] } }, false],
  ])("treats requests for %j as covered by a rule for %j: %s", (match, other, bounded) => {
    const found = codes([{ key: "header:a", match }, { match: other }]);
    expect(found).toEqual(bounded ? [] : ["made-up-keys"]);
  });

  test.each([
    ["host", {}, ["made-up-keys"]],
    ["host", { hosts: ["*.example.com"] }, ["made-up-keys"]],
    [["ip", "host"], { hosts: ["a.example.com"] }, []],
    ["ja4", {}, ["made-up-keys"]],
    ["ja4 | ip", {}, ["made-up-keys"]],
    ["asn", {}, []],
    ["country", {}, []],
    [["ip", "method"], {}, []],
  ])("another rule with the key %j and the match %j leads to %j", (key, match, expected) => {
    const hosts = { hosts: ["a.example.com"] };
    expect(
      codes([
        { match: hosts, key: "header:a" },
        { match, key },
      ]),
    ).toEqual(expected);
  });

  test("does not warn about a rule that denies nobody", () => {
    expect(codes([{ ...search, key: "header:a", mode: "shadow" }, {}])).toEqual([]);
  });

  test.each([
    ["header:cf-ipcountry", 'Write key: "country"'],
    ["header:x-forwarded-for", 'Write key: "ip"'],
  ])("has the cure for a header with the client's address or country: %s", (key, cure) => {
    expect(warnings([{ key }])).toMatchObject([
      { code: "made-up-keys", path: "rules[0].key", cure },
    ]);
  });
});

describe("fails-open", () => {
  test("warns if undecided logins pass", () => {
    expect(warnings([login("/login", { onError: "open" })])).toMatchObject([
      { code: "fails-open", path: "rules[0].onError", cure: expect.stringContaining("closed") },
    ]);
  });

  test.each(["closed", "local"])("does not warn if onError is %s", (onError) => {
    expect(codes([login("/login", { onError })])).toEqual([]);
  });

  test("does not warn if another rule for the same requests is closed", () => {
    expect(codes([login("/login", { onError: "open" }), { onError: "closed" }])).toEqual([]);
    const other = { match: { paths: ["/other"] }, onError: "closed" };
    expect(codes([login("/login", { onError: "open" }), other])).toEqual(["fails-open"]);
  });

  test.each([
    { match: { paths: ["/search"] } },
    {},
    { match: { paths: ["/login"] }, mode: "shadow" },
  ])("does not warn about %j", (rule) => {
    expect(codes([rule, { match: { paths: ["/other"] } }])).toEqual([]);
  });
});

describe("exempt-by-text", () => {
  test("warns about an exemption by a text, but not about an exemption by a secret", () => {
    const headers = { "X-Internal": "let-me-pass", "x-other": { secret: "OTHER" } };
    expect(warnings([{ exempt: { headers } }])).toMatchObject([
      { code: "exempt-by-text", path: 'rules[0].exempt.headers["x-internal"]' },
    ]);
    expect(codes([{ exempt: { headers: { "x-other": { secret: "OTHER" } } } }])).toEqual([]);
    expect(codes([{ exempt: { ips: ["198.51.100.0/24"] } }])).toEqual([]);
  });

  test("does not quote the text", () => {
    const found = warnings([{ exempt: { headers: { "x-internal": "let-me-pass" } } }]);
    expect(JSON.stringify(found)).not.toContain("let-me-pass");
  });
});

describe("tier-by-client", () => {
  const limits = { pro: { limit: 9, window: "1m" } };

  test.each(["header:x-plan", "cookie:plan", "query:plan", "jwt:plan | header:x-plan"])(
    "warns about tiers by %s",
    (by) => {
      const found = codes([{ tiers: { by, limits } }], { jwt: { secret: "S" } });
      expect(found).toEqual(["tier-by-client"]);
    },
  );

  test.each(["jwt:plan", "custom:plan", "country"])("does not warn about tiers by %s", (by) => {
    expect(codes([{ tiers: { by, limits } }], { jwt: { secret: "S" } })).toEqual([]);
  });
});

describe("dotted-claim", () => {
  const jwt = { secret: "S" };
  const limits = { pro: { limit: 9, window: "1m" } };

  test("warns about claims that look nested, and names the pointer", () => {
    const by = "jwt:app_metadata.plan | ip";
    expect(warnings([{ key: ["jwt:user.id", "jwt:sub"], tiers: { by, limits } }], { jwt })).toEqual(
      [
        expect.objectContaining({
          code: "dotted-claim",
          path: "rules[0].key",
          cure: expect.stringContaining('"jwt:/user/id"'),
        }),
        expect.objectContaining({
          path: "rules[0].tiers.by",
          cure: 'Write "jwt:/app_metadata/plan" for a nested claim, or "jwt:/app_metadata.plan" if the name contains the dot',
        }),
      ],
    );
  });

  test("warns about the source of a limit, also in a tier", () => {
    const limit = { from: "jwt:limits.rpm", max: 9, default: 1 } as const;
    const tiers = { by: "jwt:plan", limits: { pro: { limit, window: "1h" } } } as const;
    const rule = { key: "jwt:sub", limit, tiers } as const;
    expect(warnings([rule], { jwt })).toEqual([
      expect.objectContaining({
        code: "dotted-claim",
        path: "rules[0]",
        cure: expect.stringContaining('"jwt:/limits/rpm"'),
      }),
    ]);
  });

  test.each(["jwt:sub", "jwt:/a/b", "jwt:/a.b", "jwt:..", "custom:plan"])(
    "does not warn about %s",
    (key) => {
      expect(codes([{ key }], { jwt })).toEqual([]);
    },
  );
});

describe("client-header", () => {
  const IP_RULE = { key: "ip" };

  test.each([
    "cf-connecting-ip",
    "CF-Connecting-IPv6",
    "cf-pseudo-ipv4",
    "x-forwarded-for",
    "x-real-ip",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "fastly-client-ip",
    "forwarded",
  ])("warns of %s in a key, beside a rule that covers its requests", (name) => {
    expect(warnings([{ key: `header:${name}` }, IP_RULE])).toEqual([
      {
        code: "client-header",
        severity: "warning",
        path: "rules[0].key",
        message: expect.stringContaining(name.toLowerCase()),
        cure: 'Write key: "ip"',
      },
    ]);
  });

  test.each<[string, RuleFields]>([
    ["as an alternative", { key: "jwt:sub | header:x-real-ip" }],
    ["in a combination", { key: ["header:x-real-ip", "path"] }],
    ["in shadow mode", { key: "header:x-real-ip", mode: "shadow" }],
    ["of a log-in", login("/login", { key: "header:x-real-ip" })],
  ])("warns of such a header %s", (_, rule) => {
    const covering = { ...IP_RULE, onError: "closed" };
    expect(codes([rule, covering], { jwt: { secret: "S" } })).toEqual(["client-header"]);
  });

  test("does not warn of another header beside a rule that covers its requests", () => {
    expect(codes([{ key: "header:x-api-key" }, IP_RULE])).toEqual([]);
  });
});

describe("exact-path", () => {
  const at = (...paths: string[]) => ({ match: { paths } });

  test.each([
    ["/api", '"/api/*"'],
    ["/API/", '"/API/*"'],
    ["/v1", '"/v1/*"'],
    ["/api/v2", '"/api/v2/*"'],
    ["/api/v2.1", '"/api/v2.1/*"'],
    ["/:tenant/api", '"/:tenant/api/*"'],
    ["/admin", '"/admin/*"'],
    ["/auth", '"/auth/*"'],
    ["/", '"/*"'],
  ])("warns that %s does not match the paths below it", (path, cure) => {
    expect(warnings([{ ...at(path), onError: "closed" }])).toEqual([
      {
        code: "exact-path",
        severity: "warning",
        path: "rules[0].match.paths",
        message: expect.stringContaining('"r0"'),
        cure: expect.stringContaining(cure),
      },
    ]);
  });

  test.each<[string, RuleFields["match"]]>([
    ["a log-in", { methods: ["POST"], paths: ["/api/v1/auth"] }],
    ["a path beside one below it", { paths: ["/v1", "/v1/:a", "/v1/:a/*"] }],
    [
      "a path whose lower ones are an exception",
      { paths: ["/api"], except: { paths: ["/api/*"] } },
    ],
  ])("does not warn about %s", (_, match) => {
    expect(codes([{ match }])).not.toContain("exact-path");
  });

  test.each(["/login", "/search", "/graphql", "/api/users", "/rpc", "/exports", "/a.php", "/v"])(
    "does not warn about %s, which is usually a whole path",
    (path) => {
      expect(codes([{ ...at(path), onError: "closed" }])).toEqual([]);
    },
  );

  test("warns of an exception below an exact path", () => {
    const match = { paths: ["/shop"], except: { paths: ["/shop/health", "/about"] } };
    expect(codes([{ match }])).toEqual(["exact-path"]);
    expect(codes([{ match: { ...match, paths: ["/shop/*"] } }])).toEqual([]);
    expect(codes([{ match: { ...match, except: { paths: ["/shops/a"] } } }])).toEqual([]);
  });

  test.each<[string, RuleFields[], string[]]>([
    ["in the same rule", [at("/api", "/api/*")], []],
    ["in another rule", [at("/api"), at("/api/*")], []],
    ["in a rule for every request", [at("/api"), {}], []],
    ["in a rule for some requests", [at("/api"), at("/api/users")], ["exact-path"]],
    ["in shadow mode", [at("/api"), { ...at("/api/*"), mode: "shadow" }], ["exact-path"]],
  ])("looks for a rule that covers the paths below: %s", (_, rules, expected) => {
    expect(codes(rules)).toEqual(expected);
  });
});

describe("late-charge", () => {
  const count = { status: [401] };

  test.each<[string, RuleFields, string]>([
    ["count and cost", { count, cost: "header:x-cost" }, "rules[0].count"],
    ["cost", { cost: "header:x-cost" }, "rules[0].cost"],
  ])("warns if only the response determines the %s of log-ins", (_, fields, path) => {
    expect(warnings([login("/login", fields)])).toMatchObject([
      { code: "late-charge", path, cure: expect.stringContaining("charges each request") },
    ]);
  });

  test("warns if failed log-ins are charged only after their responses", () => {
    expect(warnings([login("/login", { count })])).toEqual([
      {
        code: "late-charge",
        severity: "warning",
        path: "rules[0].count",
        message: expect.stringContaining('"r0"'),
        cure: expect.stringContaining("reserve: true"),
      },
    ]);
  });

  test.each<[string, RuleFields]>([
    ["that charges first", login("/login", { count: { ...count, reserve: true } })],
    ["that limits open requests", login("/login", { count, concurrent: 2 })],
    ["in shadow mode", login("/login", { count, mode: "shadow" })],
    ["for other paths", login("/search", { count })],
    ["for requests that only read", { match: { methods: ["GET"], paths: ["/login"] }, count }],
    ["without count", login("/login")],
  ])("does not warn about a rule %s", (_, rule) => {
    expect(codes([rule, {}]).filter((code) => code === "late-charge")).toEqual([]);
  });

  test.each<[string, RuleFields, string[]]>([
    ["for all its requests", login("/login"), []],
    ["for some of its requests", login("/login/x"), ["late-charge"]],
    ["for the whole site", { onError: "closed" }, ["late-charge"]],
    ["that charges after the response too", login("/login", { count }), ["late-charge"]],
    ["that costs what the response says", login("/login", { cost: "header:x" }), ["late-charge"]],
    ["in shadow mode", login("/login", { mode: "shadow" }), ["late-charge"]],
  ])("accepts a rule for log-ins that charges at once: %s", (_, other, expected) => {
    const [first] = warnings([login("/login", { count }), other]).filter(
      ({ path }) => path === "rules[0].count",
    );
    expect(first ? [first.code] : []).toEqual(expected);
  });
});

describe("ipv6-prefix", () => {
  test.each([
    [65, "2 clients"],
    [80, "65536 clients"],
    [128, "2^64 clients"],
  ])("warns about %i bits", (ipv6Prefix, says) => {
    expect(warnings([{}], { ipv6Prefix })).toMatchObject([
      { code: "ipv6-prefix", path: "ipv6Prefix", message: expect.stringContaining(says) },
    ]);
  });

  test.each([
    [31, "2 operators"],
    [16, "65536 operators"],
    [1, "2147483648 operators"],
  ])("warns about %i bits, which unite the networks of many operators", (ipv6Prefix, says) => {
    expect(warnings([{}], { ipv6Prefix })).toMatchObject([
      { code: "ipv6-prefix", path: "ipv6Prefix", message: expect.stringContaining(says) },
    ]);
  });

  test.each([64, 56, 48, 32])("does not warn about %i bits", (ipv6Prefix) => {
    expect(codes([{}], { ipv6Prefix })).toEqual([]);
  });
});

describe("a rule for programs", () => {
  test.each([
    ["whose key a client could make up", { key: "header:x-api-key" }],
    [
      "whose tiers a client could choose",
      { tiers: { by: "header:plan", limits: { pro: { limit: 9, window: "1m" } } } },
    ],
  ])("has no warning about HTTP requests: %s", (_, fields) => {
    expect(codes([{ for: "programs", ...fields }])).toEqual([]);
  });

  test("does not limit the HTTP requests of another rule", () => {
    const made = { match: { paths: ["/search"] }, key: "header:x-api-key" };
    expect(codes([made, { key: "ip" }])).toEqual([]);
    expect(codes([made, { key: "ip", for: "programs" }])).toEqual(["made-up-keys"]);
  });
});
