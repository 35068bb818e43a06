import { type ConfigInput, defineConfig, type KeyInput } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { definedRule } from "./fixtures.ts";

describe("a key", () => {
  const UNNAMED = ["ip", "host", "path", "method", "country", "asn", "ja4", "global"];

  test.for<[unknown, unknown]>([
    ...UNNAMED.map((kind): [string, unknown] => [kind, [[{ kind }]]]),
    ["header:X-API-Key", [[{ kind: "header", name: "x-api-key" }]]],
    ["cookie:Session", [[{ kind: "cookie", name: "Session" }]]],
    ["query:user id", [[{ kind: "query", name: "user id" }]]],
    ["query:a:b", [[{ kind: "query", name: "a:b" }]]],
    ["param:id", [[{ kind: "param", name: "id" }]]],
    ["custom:tenant_id", [[{ kind: "custom", name: "tenant_id" }]]],
    [
      "header:a | cookie:b | ip",
      [[{ kind: "header", name: "a" }, { kind: "cookie", name: "b" }, { kind: "ip" }]],
    ],
    ["header:a|ip", [[{ kind: "header", name: "a" }, { kind: "ip" }]]],
    [
      ["ip", "path"],
      [[{ kind: "ip" }], [{ kind: "path" }]],
    ],
    [
      ["header:a | ip", "host"],
      [[{ kind: "header", name: "a" }, { kind: "ip" }], [{ kind: "host" }]],
    ],
  ])("parses %o", ([key, expected]) => {
    const custom = { keys: { tenant_id: () => "a" } };
    const rules = [
      {
        name: "api",
        key: key as KeyInput,
        match: { paths: ["/users/:id"] },
        limit: 5,
        window: "1m",
      },
    ];
    expect(defineConfig({ rules, custom }).rules[0]?.key).toEqual(expected);
  });

  test.for([
    "/users/:id",
    "/users/:id?",
    "/users/:id{[0-9]+}",
    "/on/:id{\\d{4}-\\d{2}}",
    "/:tenant/users/:id/*",
  ])("may name a parameter of the path %s", (path) => {
    const key = [[{ kind: "param", name: "id" }]];
    expect(definedRule({ key: "param:id", match: { paths: ["/", path] } }).key).toEqual(key);
  });
});

describe("match", () => {
  test.for<[string, string]>([
    ["api.example.com", "api.example.com"],
    ["API.Example.COM", "api.example.com"],
    ["*.Example.com", "*.example.com"],
    ["example.com.", "example.com"],
    ["münchen.example", "xn--mnchen-3ya.example"],
    ["*.MÜNCHEN.example", "*.xn--mnchen-3ya.example"],
    ["localhost", "localhost"],
    ["192.0.2.1", "192.0.2.1"],
  ])("converts the host %s to the form in URLs: %s", ([host, expected]) => {
    expect(definedRule({ match: { hosts: [host] } }).match.hosts).toEqual([expected]);
    expect(definedRule({ match: { except: { hosts: [host] } } }).match.except?.hosts).toEqual([
      expected,
    ]);
  });

  test("converts all methods to upper case", () => {
    const methods = ["get", "Post", "PURGE", "M-Search"];
    const expected = ["GET", "POST", "PURGE", "M-SEARCH"];
    expect(definedRule({ match: { methods } }).match.methods).toEqual(expected);
    expect(definedRule({ match: { except: { methods } } }).match.except?.methods).toEqual(expected);
  });

  test.for([
    "/",
    "/*",
    "/login",
    "/Login",
    "/v1/*",
    "/a/*/b",
    "/users/:id",
    "/users/:id?",
    "/users/:id{[0-9]+}",
    "/files/:name{.+\\.png}",
    "/:year{\\d{4}}",
    "/a.b-c_d~e+f",
    "/straße",
  ])("keeps the path %s unchanged", (path) => {
    expect(definedRule({ match: { paths: [path] } }).match.paths).toEqual([path]);
    expect(definedRule({ match: { except: { paths: [path] } } }).match.except?.paths).toEqual([
      path,
    ]);
  });

  test("defaults to every request", () => {
    expect(definedRule({}).match).toEqual({});
    expect(definedRule({ match: {} }).match).toEqual({});
  });
});

describe("a response", () => {
  test.for<[string, object]>([
    ["may be empty", {}],
    ["may have only a status", { status: 503 }],
    ["may have a text", { body: "Slow down." }],
    ["may have an empty text", { body: "" }],
    ["may have an object", { body: { error: { code: 17 } } }],
    ["may have headers", { headers: { "content-type": "text/html", "x-reason": "a\tb" } }],
    ["may have all of them", { status: 400, body: "no", headers: { "x-a": "" } }],
  ])("%s", ([, response]) => {
    expect(definedRule({ response }).response).toEqual(response);
  });
});

describe("a top-level field", () => {
  test.for<[Partial<ConfigInput>]>([
    [{ store: "upstash" }],
    [{ store: "durable-object" }],
    [{ store: "memory" }],
    [{ clock: "edge" }],
    [{ prefix: "My.app-1_x" }],
    [{ timeoutMs: 1 }],
    [{ timeoutMs: 30_000 }],
    [{ headers: "legacy" }],
    [{ headers: "both" }],
    [{ headers: "none" }],
    [{ ipv6Prefix: 1 }],
    [{ ipv6Prefix: 128 }],
    [{ caseSensitivePaths: true }],
    [{ quotaPath: "/rate-limit" }],
    [{ quotaPath: `/V1/.well-known/~me/${"a".repeat(236)}` }],
    [{ denialLog: 0 }],
    [{ denialLog: 1000 }],
    [{ origin: { binding: "ORIGIN" } }],
    [{ nativeLimiter: { binding: "NATIVE_2" } }],
    [{ usage: { binding: "USAGE_2" } }],
    [{ origin: { url: "https://origin.example.com" } }],
  ])("is accepted unchanged: %o", ([fields]) => {
    expect(defineConfig({ rules: [], ...fields })).toMatchObject(fields);
  });

  test.for<[string, string]>([
    ["https://origin.example.com/", "https://origin.example.com"],
    ["https://example.com/base/", "https://example.com/base"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
  ])("origin.url %s becomes %s", ([url, expected]) => {
    expect(defineConfig({ rules: [], origin: { url } }).origin).toEqual({ url: expected });
  });
});

test.for<[string, object, object]>([
  ["onError", { onError: "closed" }, { onError: "closed" }],
  ["mode", { mode: "shadow" }, { mode: "shadow" }],
  ["a name of one digit", { name: "1" }, { name: "1" }],
  ["a name of 64 characters", { name: "a_-4".repeat(16) }, { name: "a_-4".repeat(16) }],
])("a rule accepts %s", ([, fields, expected]) => {
  expect(definedRule(fields)).toMatchObject(expected);
});
