import { describe, expect, it } from "vitest";
import { defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

type MatchInput = NonNullable<RuleInput["match"]>;

/**
 * Defines one rule for each of these conditions, with the names r0, r1, …
 *
 * @returns a function that returns the rules that match a request
 */
function matching(conditions: MatchInput[], caseSensitivePaths = false) {
  const { rules } = defineConfig({
    rules: conditions.map((match, index) => ({ name: `r${index}`, match, limit: 1, window: 1 })),
  });
  const match = createMatcher(rules, caseSensitivePaths);
  return (method: string, url: string, headers: Record<string, string> = {}) => {
    const target = url.startsWith("/") ? `https://api.example.com${url}` : url;
    const request = canonicalRequest(
      new Request(target, { method, headers }),
      caseSensitivePaths,
    ) as CanonicalRequest;
    return match(request).map(({ rule, params }) => ({ name: rule.name, params: { ...params } }));
  };
}

/** Whether a rule with these conditions matches a request. */
function matches(match: MatchInput, method: string, url: string, headers = {}) {
  return matching([match])(method, url, headers).length === 1;
}

describe("a rule's paths", () => {
  it.each([true, false])(
    "match the whole alternatives of a pattern, case-sensitive: %s",
    (byCase) => {
      const match = matching([{ paths: ["/:page{login|signin}"] }], byCase);
      for (const path of ["/login", "/signin"]) expect(match("GET", path)).toHaveLength(1);
      for (const path of ["/loginx", "/xsignin"]) expect(match("GET", path)).toEqual([]);
    },
  );

  it.each([
    ["/users/:id", "/users/7", true],
    ["/users/:id", "/users", false],
    ["/users/:id", "/users/7/posts", false],
    ["/users/:id?", "/users", true],
    ["/users/:id{[0-9]+}", "/users/7", true],
    ["/users/:id{[0-9]+}", "/users/me", false],
    ["/users/:id{[A-Z]+}", "/users/ME", true],
    ["/v1/*", "/v1/a/b", true],
    ["/v1/*", "/v1", true],
    ["/v1/*", "/v2", false],
    ["/*", "/", true],
    ["*", "/x", true],
    ["/a/*/c", "/a/b/c", true],
    ["/Login/", "/login", true],
    ["/login", "/LOGIN/", true],
    ["/caf%C3%A9", "/café", true],
    ["/a//b", "/a/b", true],
    ["/", "/", true],
    ["/", "/x", false],
  ])("%s matches %s: %s", (path, url, expected) => {
    if (path === "*") return expect(matches({}, "GET", url)).toBe(expected);
    expect(matches({ paths: [path] }, "GET", url)).toBe(expected);
  });

  it.each([
    "//login",
    "/login/",
    "/LOGIN",
    "/%6cogin",
    "/x/../login",
    "/x/%2e%2e/login",
    "/login;x=1",
    "/login%00",
    "/login%2f",
    "/./login",
    "/%256cogin",
    "/x%2f..%2flogin",
  ])("cannot be bypassed by %s", (url) => {
    expect(matches({ paths: ["/login"] }, "GET", url)).toBe(true);
  });

  it.each([
    ["/files/:name", "/files/a%2f..%2f..%2fx"],
    ["/files/:name", "/files/a%2fb"],
    ["/api/*", "/api%2f..%2fx"],
    ["/api/*", "/api/%2e%2e%2fx"],
    ["/x", "/api%2f..%2fx"],
  ])("%s matches any variant that an origin may read of %s", (path, url) => {
    expect(matches({ paths: [path] }, "GET", url)).toBe(true);
  });

  it("are case-sensitive if the configuration says so", () => {
    const match = matching([{ paths: ["/Login"] }], true);
    expect(match("GET", "/Login")).toHaveLength(1);
    expect(match("GET", "/login")).toHaveLength(0);
  });

  it("read parameters from the canonical path", () => {
    const match = matching([{ paths: ["/orgs/:org/users/:userId"] }]);
    expect(match("GET", "/orgs/ACME/users/%4A%6F")).toEqual([
      { name: "r0", params: { org: "acme", userId: "jo" } },
    ]);
  });

  it("read parameters from a path that looks like the route itself", () => {
    const match = matching([{ paths: ["/users/:id"] }]);
    expect(match("GET", "/users/:id")).toEqual([{ name: "r0", params: { id: ":id" } }]);
  });
});

describe("a path with several variants", () => {
  it.each([
    // The variants have different values for the parameter, because the client chooses the text
    // before the dots. So the parameter has no value.
    ["/files/a%2f..%2fb", {}],
    ["/files/c%2f..%2fb", {}],
    ["/files/a%2fb", { name: "a%2fb" }],
    ["/files/%2561", { name: "a" }],
    ["/files/b", { name: "b" }],
  ])("has only the parameters that are equal in all of them: %s", (url, params) => {
    const match = matching([{ paths: ["/files/:name"] }]);
    expect(match("GET", url)).toEqual([{ name: "r0", params }]);
  });

  it.each([
    ["/:locale/login", "/;x/login", {}],
    ["/:locale/login", "/%3bx/login", {}],
    ["/:locale/login", "/%20/login", { locale: " " }],
    ["/:locale/login", "/%00en/login", {}],
    ["/search/:q", "/search/;word", {}],
    ["/u/*/mails", "/u/;a/mails", {}],
    ["/otp/:n{[0-9]+}", "/otp/;1555", { n: "1555" }],
    ["/otp/:n{[0-9]+}", "/otp/%201555", { n: "1555" }],
    ["/files/:name{.+\\.txt}", "/files/a;b.txt", { name: "a;b.txt" }],
    // If the rule matches the path after path parameters and blanks are removed, the parameter is
    // read from that path.
    ["/files/:name", "/files/a;v=1", { name: "a" }],
    ["/files/:name", "/files/a%20", { name: "a" }],
  ])("matches %s to %s, for an origin that does not know path parameters", (route, url, params) => {
    expect(matching([{ paths: [route] }])("GET", url)).toEqual([{ name: "r0", params }]);
  });

  it("has the parameter of the first of two routes", () => {
    const match = matching([{ paths: ["/files/:name", "/:kind/:id"] }]);
    expect(match("GET", "/files/b")).toEqual([{ name: "r0", params: { name: "b" } }]);
  });
});

describe("a rule's hosts", () => {
  it.each([
    ["api.example.com", "https://api.example.com/", true],
    ["api.example.com", "https://API.EXAMPLE.COM/", true],
    ["api.example.com", "https://api.example.com./", true],
    ["api.example.com", "https://api.example.com:8443/", true],
    ["api.example.com", "https://example.com/", false],
    ["*.example.com", "https://a.b.example.com/", true],
    ["*.example.com", "https://example.com/", false],
    ["*.example.com", "https://myexample.com/", false],
    ["bücher.example", "https://xn--bcher-kva.example/", true],
  ])("%s matches %s: %s", (host, url, expected) => {
    expect(matches({ hosts: [host] }, "GET", url)).toBe(expected);
  });
});

describe("a rule's methods", () => {
  const preflight = { origin: "https://app.example", "access-control-request-method": "POST" };

  it.each<[string[] | undefined, string, Record<string, string>, boolean]>([
    [["POST"], "POST", {}, true],
    [["post"], "POST", {}, true],
    [["POST"], "GET", {}, false],
    [["GET"], "HEAD", {}, true],
    [["HEAD"], "HEAD", {}, true],
    [["HEAD"], "GET", {}, false],
    [["OPTIONS"], "OPTIONS", preflight, true],
    [["POST"], "OPTIONS", preflight, false],
    [undefined, "OPTIONS", preflight, false],
    [undefined, "OPTIONS", { ...preflight, "content-length": "0" }, false],
    // A browser's preflight has no body and no credentials.
    [undefined, "OPTIONS", { ...preflight, "content-length": "1" }, true],
    [undefined, "OPTIONS", { ...preflight, "transfer-encoding": "chunked" }, true],
    [undefined, "OPTIONS", { ...preflight, cookie: "a=b" }, true],
    [undefined, "OPTIONS", { ...preflight, authorization: "Bearer t" }, true],
    [["OPTIONS"], "OPTIONS", { ...preflight, cookie: "a=b" }, true],
    [undefined, "OPTIONS", {}, true],
    [undefined, "PURGE", {}, true],
    [["PATCH"], "patch", {}, true],
  ])("%j match %s %j: %s", (methods, method, headers, expected) => {
    expect(matches(methods ? { methods } : {}, method, "/", headers)).toBe(expected);
  });
});

describe("an exception", () => {
  it("removes requests that meet all of its conditions", () => {
    const match = matching([
      { paths: ["/api/*"], except: { paths: ["/api/health"], methods: ["GET"] } },
    ]);
    expect(match("GET", "/api/health")).toHaveLength(0);
    expect(match("POST", "/api/health")).toHaveLength(1);
    expect(match("GET", "/api/users")).toHaveLength(1);
  });

  it("can name a host", () => {
    const match = matching([{ except: { hosts: ["internal.example.com"] } }]);
    expect(match("GET", "https://internal.example.com/")).toHaveLength(0);
    expect(match("GET", "https://api.example.com/")).toHaveLength(1);
  });

  it.each(["/HEALTH", "/health/", "/%68ealth"])(
    "applies to %s, which every origin reads in the same way",
    (url) => {
      expect(matches({ except: { paths: ["/health"] } }, "GET", url)).toBe(false);
    },
  );

  it.each(["/login%2f..%2fhealth", "/health;login", "//health", "/%2568ealth", "/health%00login"])(
    "does not apply to %s, which an origin may read differently",
    (url) => {
      expect(matches({ except: { paths: ["/health"] } }, "GET", url)).toBe(true);
    },
  );
});

describe("several rules", () => {
  it("match in their order, each once, with and without paths", () => {
    const match = matching([
      { paths: ["/api/*"] },
      {},
      { paths: ["/other"] },
      { paths: ["/api/users", "/api/:kind", "/*"] },
      { methods: ["GET"] },
    ]);
    expect(match("GET", "/api/users").map(({ name }) => name)).toEqual(["r0", "r1", "r3", "r4"]);
  });

  it("match only if all conditions of a rule are met", () => {
    const rule = { hosts: ["api.example.com"], methods: ["POST"], paths: ["/login"] };
    expect(matches(rule, "POST", "/login")).toBe(true);
    expect(matches(rule, "GET", "/login")).toBe(false);
    expect(matches(rule, "POST", "/logout")).toBe(false);
    expect(matches(rule, "POST", "https://www.example.com/login")).toBe(false);
  });

  it("can be thousands", () => {
    const match = matching(
      Array.from({ length: 10_000 }, (_, i) => ({ paths: [`/v1/r${i}/:id`] })),
    );
    expect(match("GET", "/v1/r9876/x").map(({ name }) => name)).toEqual(["r9876"]);
  });
});

describe("a path that was matched before", () => {
  const rules: MatchInput[] = [
    { paths: ["/users/:id"], methods: ["GET"] },
    { paths: ["/users/*"], hosts: ["a.example.com"], except: { paths: ["/users/me"] } },
    {},
  ];

  it("matches by its own host, method and parameters", () => {
    const match = matching(rules);
    const names = (method: string, url: string) => match(method, url).map(({ name }) => name);
    for (let time = 0; time < 3; time++) {
      expect(names("GET", "https://a.example.com/users/7")).toEqual(["r0", "r1", "r2"]);
      expect(names("POST", "https://a.example.com/users/7")).toEqual(["r1", "r2"]);
      expect(names("POST", "https://b.example.com/users/7")).toEqual(["r2"]);
      expect(names("GET", "https://a.example.com/users/me")).toEqual(["r0", "r2"]);
      // An exception must not apply to this ambiguous path, although its canonical form is cached.
      expect(names("GET", "https://a.example.com/users//me")).toEqual(["r0", "r1", "r2"]);
      expect(match("GET", "/users/8")[0]?.params).toEqual({ id: "8" });
    }
  });

  it("matches as before after more new paths than the cache holds", () => {
    const match = matching(rules);
    expect(match("GET", "/users/first")).toHaveLength(2);
    for (let number = 0; number < 2000; number++) {
      expect(match("GET", `/users/${number}`)[0]?.params).toEqual({ id: `${number}` });
    }
    expect(match("GET", "/users/first")[0]?.params).toEqual({ id: "first" });
  });

  it("does not affect another configuration", () => {
    const [one, other] = [matching([{ paths: ["/A"] }], true), matching([{ paths: ["/a"] }])];
    for (let time = 0; time < 2; time++) {
      expect([one("GET", "/a").length, one("GET", "/A").length]).toEqual([0, 1]);
      expect([other("GET", "/a").length, other("GET", "/A").length]).toEqual([1, 1]);
    }
  });
});
