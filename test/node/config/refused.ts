import type { FaultCode } from "edge-weir/config";
import { pathOf } from "../../../src/config/faults.ts";
import { rule, withValue } from "./fixtures.ts";

/** An input that Weir refuses, and the path and the code of its first fault. refused.txt has the messages. */
export interface Refused {
  readonly input: unknown;
  readonly path: string;
  readonly code: FaultCode;
}

/** A fault of each of these inputs. */
function inputs(path: string, code: FaultCode, ...inputs: readonly unknown[]): Refused[] {
  return inputs.map((input) => ({ input, path, code }));
}

/** A fault of the top level with each of these fields. */
function tops(path: string, code: FaultCode, ...fields: readonly object[]): Refused[] {
  return inputs(path, code, ...fields.map((each) => ({ rules: [], ...each })));
}

/** A fault of a rule with each of these fields, beside its name, limit and window. */
function rules(path: string, code: FaultCode, ...fields: readonly object[]): Refused[] {
  return inputs(`rules[0].${path}`, code, ...fields.map((each) => ({ rules: [rule(each)] })));
}

/** A fault of a rule that has only a name and these fields. */
function bare(path: string, code: FaultCode, ...fields: readonly object[]): Refused[] {
  const all = fields.map((each) => ({ rules: [{ name: "api", ...each }] }));
  return inputs(`rules[0].${path}`, code, ...all);
}

/** A fault of each of these values at the path. */
function values(path: string, code: FaultCode, ...values: readonly unknown[]): Refused[] {
  const base = path.startsWith("rules") ? { rules: [rule()] } : { rules: [] };
  return inputs(path, code, ...values.map((value) => withValue(base, path, value)));
}

/** A fault of each of these values at the path in a rule. */
function inRule(path: string, code: FaultCode, ...all: readonly unknown[]): Refused[] {
  return values(`rules[0].${path}`, code, ...all);
}

/** A fault of each of these names in the object at the path. Each name has the same value. */
function names(path: string, code: FaultCode, value: unknown, ...names: string[]): Refused[] {
  return names.flatMap((name) =>
    values(path, code, Object.fromEntries([[name, value]])).map((each) => ({
      ...each,
      path: path + pathOf([name]).replace(/^(?!\[)/, "."),
    })),
  );
}

const MAX = 999_999_999_999_999;
const LONG = "a".repeat(65);
const unset = undefined;
const noNumber = [Number.NaN, Number.POSITIVE_INFINITY];
const plan = (): string => "pro";
const SECOND = { limit: 5, window: "1s" } as const;
const SOURCE = { from: "custom:quota", max: 100, default: 10 } as const;

const config = [
  ...inputs("", "not-allowed", null, 5, "rules", true, () => ({}), []),
  ...inputs("", "missing", unset),
  ...inputs("rules", "missing", {}),
  ...values(
    "rules",
    "not-allowed",
    null,
    {},
    { login: rule() },
    { login: {} },
    rule({ limits: [] }),
  ),
  ...values(
    "rules",
    "too-many",
    Array.from({ length: 10_001 }, (_, index) => rule({ name: `r${index}` })),
  ),
  ...names("rules", "not-allowed", [], "7", "", "a\nb"),
  ...inputs(`rules["${"x".repeat(80)}…"]`, "not-allowed", { rules: { ["x".repeat(201)]: [] } }),
  ...inputs("rules.b", "not-allowed", { rules: { a: [], b: Promise.resolve() } }),
  ...inputs('rules["b.ts"]', "not-allowed", { rules: { "a.ts": [], "b.ts": { rules: [] } } }),
  ...values("rules[0]", "not-allowed", null, new Map([["name", "a"]]), []),
  ...values("rules[0]", "missing", unset),
  ...inputs("rules[1]", "not-allowed", { rules: [rule(), 5] }),
  ...inputs("rules[2].name", "duplicate", {
    rules: ["a", "b", "a", "a"].map((name) => rule({ name })),
  }),
  ...["constructor", "__proto__", "prototype"].flatMap((name) =>
    inputs("rules[0]", "not-allowed", {
      rules: [JSON.parse(`{"name":"api","limit":5,"window":"1m","${name}":{}}`)],
    }),
  ),
  ...tops("stor", "unknown-field", { stor: "memory" }),
  ...tops("timeoutMS", "unknown-field", { timeoutMS: 5 }),
  ...tops("bogus", "unknown-field", { bogus: 1 }),
  ...tops("timeout", "unknown-field", { timeout: 500 }),
  ...tops("keys", "unknown-field", { keys: {} }),
  ...tops("onError", "unknown-field", { onError: "open" }),
  ...tops("url", "unknown-field", { url: "https://a.example" }),
  ...tops("redis", "unknown-field", { redis: { token: "s3cr3t" } }),
  ...tops("logger", "unknown-field", { logger: null }),
  ...values("store", "not-allowed", "kv", null, "upstah", plan),
  ...values("clock", "not-allowed", "local", "redis"),
  ...values("prefix", "not-allowed", "a:b", "", "a b", LONG, 5, plan),
  ...values("timeoutMs", "not-allowed", 0, -1, 1.5, 30_001, "1s", null, plan),
  ...values("headers", "not-allowed", "draft-10", true),
  ...values("ipv6Prefix", "not-allowed", 0, 129, 64.5, "64", "/64"),
  ...values("caseSensitivePaths", "not-allowed", 1, "yes"),
  ...values(
    "quotaPath",
    "not-allowed",
    "",
    "/",
    "quota",
    "/a/",
    "/a//b",
    "/a/../b",
    "/a?b",
    "/*",
    "/_weir/a",
    5,
  ),
  ...values("quotaPath", "not-allowed", `/${"a".repeat(256)}`),
  ...values("denialLog", "not-allowed", -1, 1001, 0.5, true, "5"),
  ...values("nativeLimiter", "not-allowed", "NATIVE", null, [], plan),
  ...values("nativeLimiter.binding", "not-allowed", "", "my limiter", "2nd", 5),
  ...tops("nativeLimiter.binding", "missing", { nativeLimiter: {} }),
  ...values("usage", "not-allowed", "USAGE"),
  ...values("usage.binding", "not-allowed", "my usage"),
  ...tops("usage.binding", "missing", { usage: {} }),
  ...tops("nativeLimiter.limit", "unknown-field", { nativeLimiter: { binding: "A", limit: 5 } }),
];

const url = "https://origin.example.com";
const twoOrigins = (...hosts: string[]) => ({
  origins: Object.fromEntries(hosts.map((host) => [host, { binding: "ORIGIN" }])),
});
const origins = [
  ...values("origin", "missing", {}),
  ...values("origin", "conflict", { url, binding: "ORIGIN" }),
  ...values("origin", "not-allowed", url, "https://a.example", "API", null, [], plan),
  ...tops("origin.uri", "unknown-field", { origin: { uri: url } }),
  ...tops('origin["a.example"]', "unknown-field", { origin: { "a.example": {} } }),
  ...values(
    "origin.url",
    "not-allowed",
    ...["", 5, "origin.example.com", "a.example", "/base", " https://origin.example.com"],
    ...["https:origin.example.com", "https:\\\\origin.example.com", "ftp://origin.example.com"],
    ...["https://user:secret@origin.example.com", "https://token@origin.example.com"],
    ...["https://origin.example.com/?a=1", "https://origin.example.com/#a"],
  ),
  ...values("origin.binding", "not-allowed", "", "1A", "a-b", 5),
  ...tops('origins["api.example"]', "duplicate", twoOrigins("API.example.", "api.example")),
  ...tops('origins["*.a"]', "duplicate", twoOrigins("*.A", "*.a")),
  ...values("origins", "not-allowed", {}),
  ...values("forwarded", "not-allowed", "false", 0, null),
  ...values("origins.a", "not-allowed", "SHOP"),
  ...names("origins", "not-allowed", { binding: "API" }, "*", "a.example:80", "https://a.example/"),
  ...names("origins", "not-allowed", { binding: "API" }, "a.*.example"),
];

const jwks = "https://issuer.example.com/jwks.json";
const jwt = [
  ...values("jwt", "missing", {}),
  ...values("jwt", "conflict", { secret: "JWT", jwks }),
  ...values("jwt", "not-allowed", "JWT", null, [], plan),
  ...tops("jwt.algs", "conflict", { jwt: { secret: "JWT", algs: ["RS256"] } }),
  ...tops("jwt.alg", "conflict", { jwt: { jwks, alg: "HS256" } }),
  ...values("jwt.secret", "not-allowed", "a-b", "not a name"),
  ...["RS256", "none"].flatMap((alg) =>
    tops("jwt.alg", "not-allowed", { jwt: { secret: "JWT", alg } }),
  ),
  ...["HS256", "none", "rs256"].flatMap((alg) =>
    tops("jwt.algs[0]", "not-allowed", { jwt: { jwks, algs: [alg] } }),
  ),
  ...tops("jwt.algs", "not-allowed", { jwt: { jwks, algs: [] } }),
  ...values("jwt.jwks", "not-allowed", "http://a.example/", "http://a.example/k", "/jwks", 5),
  ...values("jwt.jwks", "not-allowed", "https://u:p@a.example/", "https://a.example/#x"),
  ...tops("jwt.header", "not-allowed", { jwt: { jwks, header: "a b" } }),
  ...tops("jwt.issuer", "not-allowed", { jwt: { jwks, issuer: "" } }),
  ...tops("jwt.audience", "not-allowed", { jwt: { jwks, audience: 5 } }),
  ...tops("jwt.jwsk", "unknown-field", { jwt: { jwsk: jwks } }),
];

const byPlan = { tiers: { by: "custom:plan", limits: { pro: { limit: 50, window: "1m" } } } };
const withCustom = (custom: unknown, fields: object) => ({ rules: [rule(fields)], custom });
const custom = [
  ...values("custom", "not-allowed", plan, null, []),
  ...tops("custom.plan", "unknown-field", { custom: { plan } }),
  ...tops("custom.key", "unknown-field", { custom: { key: { plan } } }),
  ...values("custom.keys", "not-allowed", null, []),
  ...values("custom.keys.plan", "not-allowed", "pro"),
  ...values("custom.keys.plan", "missing", unset),
  ...names("custom.keys", "not-allowed", plan, "a-b", "", "é", "a b", "custom:plan"),
  ...values("custom.costs", "not-allowed", null),
  ...values("custom.costs.depth", "not-allowed", 5, Promise.resolve(1)),
  ...names("custom.costs", "not-allowed", plan, "a-b"),
  ...values("custom.events", "not-allowed", {}, "send", null),
  ...values("custom.settle", "not-allowed", []),
  ...values("custom.settle.usage", "not-allowed", "a"),
  ...inputs(
    "rules[0].key",
    "needs",
    withCustom(unset, { key: "custom:plan" }),
    withCustom({}, { key: "custom:plan | ip" }),
    withCustom({ keys: { user: plan } }, { key: ["ip", "custom:plan"] }),
    withCustom({ keys: { Plan: plan } }, { key: "custom:plan" }),
    withCustom({ keys: { plan } }, { key: "custom:toString" }),
  ),
  ...inputs("rules[0].tiers.by", "needs", withCustom({ keys: {} }, byPlan)),
  ...inputs(
    "rules[0].cost",
    "needs",
    withCustom(unset, { cost: "custom:depth" }),
    withCustom({ keys: { depth: plan } }, { cost: "custom:depth" }),
    withCustom({ costs: {} }, { cost: { from: "custom:depth" } }),
    withCustom({ costs: { Depth: plan } }, { cost: "custom:depth" }),
    withCustom({ settle: { usage: plan } }, { cost: "custom:usage" }),
  ),
  ...inputs(
    "rules[0].cost.settle",
    "needs",
    withCustom(unset, { cost: { settle: "custom:usage" } }),
    withCustom({ settle: { used: plan } }, { cost: { settle: "custom:usage" } }),
    withCustom(
      { costs: { estimate: plan }, settle: { usage: plan } },
      { cost: { reserve: "custom:estimate", settle: "custom:estimate" } },
    ),
  ),
  ...inputs(
    "rules[0].cost.reserve",
    "needs",
    withCustom(
      { settle: { usage: plan } },
      { cost: { reserve: "custom:depth", settle: "custom:usage" } },
    ),
    withCustom(
      { costs: { estimate: plan }, settle: { usage: plan } },
      { cost: { reserve: "custom:usage", settle: "custom:usage" } },
    ),
  ),
];

const ruleNames = [
  ...inRule("name", "not-allowed", "", "Login", "Log In", "_a", "-a", "log in", "a/b"),
  ...inRule("name", "not-allowed", "é", LONG, 5, null),
];

const limits = [
  ...inRule("limit", "not-allowed", -1, 1.5, 2.5, 1e15, 1e20, true, null, ...noNumber),
  ...inRule("limit", "not-allowed", "5", "100", "1,000", "1k", "10r/s", "100/minute"),
  ...inRule("limit", "not-allowed", "100 per hour", "unlimited", () => 5),
  ...rules("limit", "not-allowed", { window: "month", limit: "100/month" }),
  ...inRule("capacity", "not-allowed", -1, 1.5, "5", "20", "2x", null),
  ...inRule("capacity", "conflict", 2, 4),
  ...rules("capacity", "conflict", { limit: 0, capacity: 5 }),
  ...inRule("maxReserved", "not-allowed", -1, 1.5, "5", null),
  ...rules("maxReserved", "conflict", { limit: 0, maxReserved: 1 }),
  ...inRule("shards", "not-allowed", 0, 101, 1.5, "2", null),
  ...inRule("shards", "conflict", 6),
  ...rules(
    "shards",
    "conflict",
    {
      limits: [
        { limit: 50, window: "1m" },
        { limit: 2, window: "1s" },
      ],
      shards: 3,
    },
    { tiers: { by: "header:plan", limits: { a: { limit: 1, window: 1 } } }, shards: 2 },
    { limit: 0, shards: 2 },
  ),
  ...rules("limits", "not-allowed", { limits: null }, { limits: [] }),
  ...bare("limits", "not-allowed", { limits: {} }, { limits: { limit: 5, window: "1m" } }),
  ...bare("limits[0]", "not-allowed", { limits: [5] }, { limits: ["5/minute"] }),
  ...bare("limits[0].limit", "missing", { limits: [{ window: 5 }] }),
  ...bare("limits[1].window", "missing", { limits: [{ limit: 5, window: "1m" }, { limit: 5 }] }),
  ...bare("limits[0].widow", "unknown-field", { limits: [{ limit: 5, widow: "1m" }] }),
  ...bare("limits[0].cost", "unknown-field", { limits: [{ limit: 5, window: "1m", cost: 1 }] }),
  ...bare("limits[1].window", "duplicate", {
    limits: [
      { limit: 5, window: "1m" },
      { limit: 9, window: 60 },
    ],
  }),
  ...bare("limits", "too-many", {
    limits: Array.from({ length: 9 }, (_, index) => ({ limit: 1, window: index + 1 })),
  }),
  ...bare("limits[0].capacity", "conflict", {
    limits: [{ limit: 50, window: "1m", capacity: 49 }],
  }),
  ...bare("limits[0].maxReserved", "conflict", {
    limits: [{ limit: 0, window: "1m", maxReserved: 1 }],
  }),
  ...inRule("sliding", "not-allowed", 0, 1, 61, 2.5, -10, "10", "true", null, {}, ...noNumber),
  ...inRule("sliding", "conflict", 7, 11, 59),
  ...rules(
    "sliding",
    "conflict",
    ...(["day", "week", "month", "year"] as const).map((window) => ({ window, sliding: true })),
    { window: "1s", sliding: 3 },
    { limits: [{ limit: 5, window: "1m" }], sliding: true },
    { limits: [{ limit: 5, window: "1m" }], sliding: 10 },
  ),
  ...rules(
    "capacity",
    "conflict",
    { capacity: 5, sliding: true },
    { capacity: 9, sliding: 2 },
    { limit: SOURCE, capacity: { ...SOURCE, max: 200 }, sliding: true },
  ),
  ...rules("maxReserved", "conflict", { maxReserved: 1, sliding: true }),
  ...rules(
    "shards",
    "conflict",
    { shards: 2, sliding: true },
    { limits: [{ limit: 5, window: "1m", sliding: 6 }], shards: 5 },
    { tiers: { by: "header:plan", limits: { a: { ...SECOND, sliding: true } } }, shards: 2 },
  ),
  ...rules(
    "start",
    "conflict",
    { start: "spread", sliding: true },
    { limits: [{ ...SECOND, sliding: true }], start: "spread" },
    { tiers: { by: "header:plan", limits: { a: { ...SECOND, sliding: 2 } } }, start: "spread" },
  ),
  ...bare("limits[0].sliding", "not-allowed", { limits: [{ ...SECOND, sliding: 1 }] }),
  ...bare("limits[1].sliding", "conflict", {
    limits: [SECOND, { limit: 9, window: "1m", sliding: 7 }],
  }),
  ...bare("limits[0].sliding", "conflict", {
    limits: [{ limit: 9, window: "day", sliding: true }],
  }),
  ...bare("limits[0].capacity", "conflict", { limits: [{ ...SECOND, capacity: 9, sliding: 5 }] }),
  ...bare("limits[1].window", "duplicate", { limits: [SECOND, { ...SECOND, sliding: true }] }),
  ...rules(
    "tiers.limits.a.sliding",
    "not-allowed",
    { tiers: { by: "header:plan", limits: { a: { ...SECOND, sliding: "10" } } } },
    { tiers: { by: "header:plan", limits: { a: { ...SECOND, sliding: 61 } } } },
  ),
  ...rules(
    "tiers.limits.a.sliding",
    "conflict",
    { tiers: { by: "header:plan", limits: { a: { ...SECOND, sliding: 7 } } } },
    { tiers: { by: "header:plan", limits: { a: { limits: [SECOND], sliding: true } } } },
  ),
  ...bare("sliding", "needs", { concurrent: 4, sliding: true }),
  ...bare("window", "missing", { limit: 5 }, { limit: 5, window: unset }),
  ...bare("limit", "missing", {}, { window: "1m" }, { limit: unset, window: "1m" }),
  ...rules("limit", "conflict", { limits: [{ limit: 5, window: "1m" }], limit: 5 }),
  ...rules("limit", "conflict", { limits: [{ limit: 5, window: "1m" }], limit: 5, window: "1m" }),
  ...rules("window", "conflict", { limits: [{ limit: 5, window: "1m" }], window: 60 }),
  ...rules("capacity", "conflict", { limits: [{ limit: 5, window: "1m" }], capacity: 9 }),
  ...rules("maxReserved", "conflict", { limits: [{ limit: 5, window: "1m" }], maxReserved: 0 }),
];

const windows = [
  ...inRule("window", "not-allowed", "", "1x", "1M", "1.5m", "1 m", " 1m", "1m30s", "60"),
  ...inRule("window", "not-allowed", "0s", "53w", "500ms", 0, -1, 1.5, 31_449_601, null),
  ...inRule("window", "not-allowed", true, ["1m"], { minutes: 1 }, 86_400_000, "60.0"),
  ...inRule("window", "not-allowed", "1 minute", "1 min", "60 s", "minute", "per hour"),
  ...inRule("window", "not-allowed", "1h30m", "PT1M", "60000ms", "1 year and a day", "2y"),
  ...inRule("window", "not-allowed", "1m 10m 1h", "monthly", "1mo", "1 month", "Year"),
  ...inRule("window", "not-allowed", "annually", "daily", "quarter"),
  ...inRule("start", "not-allowed", "Spread", "", "2026-01-01", "2026-01-01T09:00:00"),
  ...inRule("start", "not-allowed", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", 0, null),
  ...inRule("start", "not-allowed", "2026-01-01T09:00:00+24:00", "1767225600", new Date(0)),
  ...rules(
    "start",
    "not-allowed",
    { window: "month", start: 15 },
    { window: "month", start: "15th" },
  ),
  ...rules("start", "not-allowed", { window: "month", start: { day: 15 } }),
  ...rules("start", "not-allowed", { window: "year", start: "02-30" }),
  ...rules("start", "not-allowed", { window: "year", start: "00-15" }),
  ...rules("start", "conflict", { window: "month", start: "spread" }),
  ...rules(
    "start",
    "needs",
    { window: "month", start: "04-06" },
    { window: "month", start: "monday" },
  ),
  ...rules("start", "needs", { window: "day", start: "15 09:00" }, { window: "year", start: "15" }),
  ...rules("start", "needs", { start: "monday" }),
  ...["Europe/Berln", "europe/berlin ", "+01:00", 1].flatMap((timeZone) =>
    rules("timeZone", "not-allowed", { window: "month", timeZone }),
  ),
  ...rules("timeZone", "needs", { timeZone: "Europe/Berlin" }),
];

const withPath = (key: unknown) => ({ key, match: { paths: ["/users/:id"] } });
const keys = [
  ...[
    ...["", "IP", "user", "jwt:", "jwt:a b", "jwt:a/b", "jwt:/", "jwt://a", "jwt:/a/", "jwt:/a//b"],
    ...["jwt:/a~", "jwt:/a~2", "jwt:/a b", "jwt:/a,ip", "jwt:/a\u0000", "jwt:/1/2/3/4/5/6/7/8/9"],
    ...["custom", "custom:a-b", "ip |", "| ip", "header", "header:", "header:a b", "cookie:a;b"],
    ...["query:", "param:a-b", "ip:1", 5, null, {}, [], [5], [["ip"]], `jwt:/${"a".repeat(256)}`],
  ].flatMap((key) => rules("key", "not-allowed", withPath(key))),
  ...inRule("key", "not-allowed", "x-api-key", "IP", "x-forwarded-for", "header", ":id"),
  ...inRule("key", "not-allowed", "header:x-api-key:SECRET", "headr:x-api-key", "contry"),
  ...inRule("key", "not-allowed", "custom:user-id", "ip|", "ip || path", "IP | x-api-key"),
  ...inRule("key", "not-allowed", "apikey", "api_key | ip", "userAgent"),
  ...inRule("key", "not-allowed", "ip,path", "userId", "login", [], plan, { header: "x-api-key" }),
  ...inRule("key", "not-allowed", "jwt:app_metadata/plan", "jwt:https://example.com/plan"),
  ...rules("key[1]", "not-allowed", { key: ["ip", "user:sub"] }),
  ...["param:name", "param:i", "header:a | param:name"].flatMap((key) =>
    rules("key", "needs", withPath(key)),
  ),
  ...inRule("key", "needs", "param:id", "custom:plan", "jwt:/app_metadata/plan"),
  ...inRule("key", "needs", "jwt:sub", "ip | jwt:sub", ["ip", "jwt:sub"]),
];

const conditions = "hosts methods paths".split(" ");
const matches = [
  ...inRule("match", "not-allowed", null, "/login", [], new Date(0)),
  ...rules(
    "match.path",
    "unknown-field",
    { match: { path: ["/a"] } },
    { match: { path: "/login" } },
  ),
  ...rules("match.cookies", "unknown-field", { match: { cookies: ["a"] } }),
  ...rules("match.cookies", "unknown-field", { match: { cookies: { a: "b" } } }),
  ...["method", "host", "asn", "geo", "verifiedBots", "ip", "userAgent"].flatMap((name) =>
    rules(`match.${name}`, "unknown-field", { match: { [name]: ["POST"] } }),
  ),
  ...conditions.flatMap((name) => [
    ...inRule(`match.${name}`, "not-allowed", [], "x", null, {}),
    ...inRule(`match.${name}[0]`, "not-allowed", 5, ""),
    ...inRule(`match.except.${name}`, "not-allowed", []),
  ]),
  ...inRule("match.hosts[0]", "not-allowed", "example.com:443", "https://example.com"),
  ...inRule("match.hosts[0]", "not-allowed", "example.com/a", "a b", "*", "*.", ".", "[::1]"),
  ...inRule("match.hosts[0]", "not-allowed", "a.*.example", "*.*.example", "a@example.com"),
  ...inRule("match.methods", "not-allowed", "post"),
  ...inRule("match.paths", "not-allowed", "/api/**"),
  ...inRule("match.hosts", "not-allowed", "API.example.com", "https://api.example.com"),
  ...inRule("match.except.paths[0]", "not-allowed", "/health/**"),
  ...inRule("match.methods[0]", "not-allowed", "G T", "GET,POST", "GET\n", "*"),
  ...[
    ...[
      "login",
      "*",
      "/a*",
      "/a?b=1",
      "/a#b",
      "/a b",
      "/a\\b",
      "/:",
      "/:id?/b",
      "/:a:b",
      "/:id{[}",
    ],
    ...["/:id{", "/:id{a}{b}", "/:id{a{2}/b}", "/a/../b", "/./a", "/a{b", "https://example.com/a"],
  ].flatMap((path) => rules("match.paths[1]", "not-allowed", { match: { paths: ["/ok", path] } })),
  ...inRule("match.paths[0]", "not-allowed", "login", "https://api.example.com/login"),
  ...inRule(
    "match.paths[0]",
    "not-allowed",
    "/search?q=1",
    "/api/**",
    "/api*",
    "/api/**/x",
    "/:id(\\d+)",
    /login/,
    plan,
  ),
  ...inRule("match.countries[0]", "not-allowed", "Germany", "de", "UK", "EU", "XX"),
  ...inRule("match.countries", "not-allowed", "DE"),
  ...inRule("match.asns[0]", "not-allowed", "AS13335"),
  ...inRule("match.bots", "not-allowed", true),
  ...inRule("match.headers", "not-allowed", ["x-a"]),
  ...inRule("match.headers.a", "not-allowed", 1, null, "", " a", { startsWith: "a" }),
  ...inRule("match.headers.a", "not-allowed", { secret: "A" }, { prefix: "" }),
  ...inRule("match.query.a", "not-allowed", /b/),
  ...inRule("match.ips[0]", "not-allowed", "10.0.0.*"),
  ...rules('match.headers["x-plan"]', "duplicate", {
    match: { headers: { "X-Plan": "free", "x-plan": "trial" } },
  }),
  ...inRule("match.except", "not-allowed", {}, { paths: unset }, null, "/api/health"),
  ...rules("match.except.except", "unknown-field", { match: { except: { except: {} } } }),
  ...rules("match.except.pths", "unknown-field", { match: { except: { pths: ["/a"] } } }),
];

const depth = "custom:depth";
const settle = "header:x-a";
const costs = [
  ...inRule("cost", "not-allowed", -1, 1.5, 1e15, "1", "5", "header", "header:", "header:a b"),
  ...inRule("cost", "not-allowed", "cookie:a", null, [], "custom:", "custom:a-b", () => 5),
  ...inRule("cost", "not-allowed", "Custom:depth", "body:length", "x-cost", "content-length"),
  ...inRule("cost", "missing", {}, { max: 5 }),
  ...rules("cost.other", "unknown-field", { cost: { from: "body:bytes", other: 1 } }),
  ...rules("cost.maxx", "unknown-field", { cost: { from: "body:bytes", maxx: 5 } }),
  ...rules("cost.header", "unknown-field", { cost: { header: "X-Cost" } }),
  ...inRule("cost.from", "not-allowed", 5, "header:x-a", "header:x-cost", () => 5),
  ...rules("cost.reserve", "conflict", { cost: { from: "body:bytes", reserve: 5 } }),
  ...rules("cost.from", "conflict", { cost: { from: "body:bytes", settle } }),
  ...rules("cost.settle", "missing", { cost: { reserve: 5 } }, { cost: { reserve: depth } }),
  ...[0, -1, 1.5, MAX + 1, "5", "1,200", "header:x-a", null].flatMap((reserve) =>
    rules("cost.reserve", "not-allowed", { cost: { reserve, settle } }),
  ),
  ...inRule("cost.settle", "not-allowed", 5, "header:", "body:bytes", "x-a", "custom:"),
  ...inRule("cost.settle", "not-allowed", "header:a\nb", null, "x-tokens", () => 5),
  ...[0, -1, 1.5, MAX + 1, "5", null].flatMap((max) =>
    rules("cost.max", "not-allowed", { cost: { from: "body:bytes", max } }),
  ),
  ...[-1, 1.5, MAX + 1, "5", null].flatMap((given) =>
    rules("cost.default", "not-allowed", { cost: { from: "body:bytes", default: given } }),
  ),
  ...rules("cost.default", "conflict", { cost: { from: "body:bytes", max: 5, default: 6 } }),
  ...rules("cost.reserve", "conflict", { cost: { reserve: 5, settle, max: 4 } }),
  ...rules("reserve", "unknown-field", { reserve: "custom:estimate", settle: "header:x" }),
  ...rules("settle", "unknown-field", { settle: "header:x" }),
  ...inRule("count", "not-allowed", "response", 401, [401], [401, 403], null, plan),
  ...inRule("count.status", "not-allowed", [], 401),
  ...inRule("count.status[0]", "not-allowed", 600, "401"),
  ...rules("count.statuses", "unknown-field", { count: { statuses: [1] } }),
  ...rules("count.status", "missing", { count: {} }, { count: { reserve: true } }),
  ...rules("count.reserve", "not-allowed", { count: { status: [200], reserve: 1 } }),
  ...rules(
    "count",
    "conflict",
    { cost: settle, count: { status: [200], reserve: true } },
    { cost: { settle }, count: { status: [200], reserve: true } },
    { cost: { reserve: 5, settle }, count: { status: [200] } },
  ),
];

const pro = { limit: 50, window: "1m" };
const tiersOf = (limits: unknown, by: unknown = "header:plan") => ({ tiers: { by, limits } });
const exemptions = [
  ...inRule("tiers", "not-allowed", 5, "pro", null, []),
  ...rules("tiers.by", "missing", { tiers: { limits: { pro } } }),
  ...[["header:a"], ["custom:plan"], "plan"].flatMap((by) =>
    rules("tiers.by", "not-allowed", tiersOf({ pro }, by)),
  ),
  ...rules("tiers.by", "needs", tiersOf({ pro }, "param:plan"), tiersOf({ pro }, "ip | jwt:plan")),
  ...rules("tiers.limits", "not-allowed", tiersOf({}), tiersOf([pro])),
  ...rules('tiers.limits["a b"]', "not-allowed", tiersOf({ "a b": pro })),
  ...rules('tiers.limits[""]', "not-allowed", tiersOf({ "": pro })),
  ...["A.example", "a.example.", ".a", "*.a.example", "bücher.example", "b.example:80"].flatMap(
    (host) => rules(`tiers.limits["${host}"]`, "not-allowed", tiersOf({ [host]: pro }, "host")),
  ),
  ...rules("tiers.limits.pro", "not-allowed", tiersOf({ pro: 5 })),
  ...rules(
    "tiers.limits.pro.limit",
    "not-allowed",
    tiersOf({ pro: { ...pro, limit: -1 } }, "host"),
  ),
  ...rules("tiers.limits.pro.window", "missing", tiersOf({ pro: { limit: 5 } })),
  ...rules("tiers.limits.pro.limit", "conflict", tiersOf({ pro: { limits: [pro], limit: 5 } })),
  ...rules("tiers.limits.pro.capacity", "conflict", tiersOf({ pro: { ...pro, capacity: 9 } })),
  ...rules("tiers.limits.pro.cost", "unknown-field", tiersOf({ pro: { ...pro, cost: 1 } })),
  ...rules("tiers.bye", "unknown-field", { tiers: { limits: { pro }, bye: "ip" } }),
  ...inRule("exempt", "not-allowed", {}, [], ["10.0.0.1"], 5, null, plan),
  ...inRule("exempt.ips", "not-allowed", [], "::1"),
  ...inRule("exempt.ips[0]", "not-allowed", "", "10.0.0", "10.0.0.0/33", "010.0.0.1", 5),
  ...inRule("exempt.ips[0]", "not-allowed", "0x7f.0.0.1", "10.0.0.0/", "::/129", "10.0.0.*"),
  ...inRule("exempt.ips[0]", "not-allowed", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104"),
  ...inRule("exempt.ips[0]", "not-allowed", "64:ff9b::/96", "2002:a00::/24"),
  ...inRule("exempt.ips[0]", "not-allowed", "::10.0.0.1", "::10.0.0.0/104"),
  ...inRule("exempt.ips", "too-many", Array(50_001).fill("10.0.0.1")),
  ...inRule("exempt.headers", "not-allowed", {}),
  ...names("rules[0].exempt.headers", "not-allowed", "x", "a b"),
  ...inRule("exempt.headers.a", "not-allowed", "", " a", "a ", "a\nb", "é", 5, null, {}),
  ...inRule("exempt.headers.a", "not-allowed", { secret: "a-b" }, { secret: "" }),
  ...inRule("exempt.headers.a", "not-allowed", { secret: "s3cr3t-value" }),
  ...rules('exempt.headers["x-a"]', "duplicate", {
    exempt: { headers: { "X-A": { secret: "A" }, "x-a": { secret: "B" } } },
  }),
  ...rules("exempt.ip", "unknown-field", { exempt: { ip: ["::1"] } }),
];

const bans = [
  ...inRule("ban", "not-allowed", "1x", 0, null, true, false, [], {}, "month", "1m 10m 1h"),
  ...inRule("ban", "not-allowed", { duration: "1h" }),
  ...inRule("ban", "too-many", Array(11).fill("1h")),
  ...rules("ban", "conflict", { shards: 2, ban: "1h" }, { shards: 2, ban: ["1m", "1h"] }),
  ...inRule("ban[0]", "not-allowed", "1 minute"),
  ...inRule("ban[0]", "not-allowed", 86_400_000),
  ...rules("ban[1]", "not-allowed", { ban: ["1m", "1x"] }, { ban: [60_000, 86_400_000] }),
  ...rules("ban[1]", "conflict", { ban: ["1h", "1m"] }, { ban: ["1h", "10m"] }),
  ...inRule("ban.lengths", "not-allowed", "1h", "1m, 1h"),
  ...rules("ban.lengths[1]", "conflict", { ban: { lengths: ["1h", "1m"] } }),
  ...rules("ban.lengths", "missing", { ban: { forgetAfter: "1h" } }),
  ...rules("ban.forgetAfter", "needs", { ban: { lengths: ["1h"], forgetAfter: "1h" } }),
  ...[0, "1 day"].flatMap((forgetAfter) =>
    rules("ban.forgetAfter", "not-allowed", { ban: { lengths: ["1m", "1h"], forgetAfter } }),
  ),
  ...rules("ban.forgetafter", "unknown-field", {
    ban: { lengths: ["1m", "1h"], forgetafter: "1d" },
  }),
  ...inRule("retryJitter", "not-allowed", "1x", 0, null, true),
];

const responses = [
  ...inRule("response", "not-allowed", null, 429, "no", [], plan),
  ...rules("response.header", "unknown-field", { response: { header: {} } }),
  ...inRule("response.status", "not-allowed", 200, 399, 600, 429.5, "429"),
  ...inRule("response.body", "not-allowed", 5, true, null, ["no"], plan, { a: { plan } }),
  ...inRule("response.headers", "not-allowed", null, "x", []),
  ...inRule('response.headers["x-a"]', "not-allowed", 5, null, "a\r\nset-cookie: b", "é"),
  ...inRule('response.headers["x-a"]', "not-allowed", "a\nb", "a\0b"),
  ...names("rules[0].response.headers", "not-allowed", "1", "", "a b", "a:b", "a\r\nb"),
  ...names(
    "rules[0].response.headers",
    "not-allowed",
    "1",
    ...["Retry-After", "cache-control", "CDN-Cache-Control", "Cloudflare-CDN-Cache-Control"],
    ...["Surrogate-Control", "Edge-Control", "x-accel-expires", "Last-Modified", "vary", "etag"],
    ...["RateLimit", "RateLimit-Policy", "x-ratelimit-limit", "content-length", "connection"],
    ...["Transfer-Encoding", "access-control-allow-origin"],
  ),
];

const local = { onError: "local" };
const modes = [
  ...inRule("mode", "not-allowed", "dry-run", "Shadow", null),
  ...inRule("tellOrigin", "not-allowed", "yes", 1, null),
  ...rules("ban", "conflict", { mode: "mark", ban: "1m" }),
  ...rules("retryJitter", "conflict", { mode: "mark", retryJitter: "10s" }),
  ...rules("response", "conflict", { mode: "mark", response: { status: 402 } }),
  ...rules("onError", "conflict", { mode: "mark", onError: "closed" }),
  ...rules("tellOrigin", "conflict", { mode: "shadow", tellOrigin: true }),
  ...inRule("lease", "not-allowed", true, "false", "Auto", "off", 0, 8, null, {}),
  ...inRule("onError", "not-allowed", "Local", "close", "opne", "fail", true),
  ...[0, -0.5, 1.01, "0.5", "25%", null, true].flatMap((localShare) =>
    rules("localShare", "not-allowed", { ...local, localShare }),
  ),
  ...rules("localShare", "conflict", { localShare: 0.5 }, { localShare: 0.5, onError: "open" }),
  ...rules("localShare", "conflict", { localShare: 0.5, onError: "closed" }),
  ...inRule("notify", "not-allowed", 0.8, [], [0], [1.1], [0.8, 0.8], ["80%"], [NaN], null, true),
  ...inRule("notify", "not-allowed", [0.1, 0.2, 0.3, 0.4, 0.5]),
  ...rules("notify", "conflict", { notify: [1], window: "59s" }),
  ...rules(
    "notify",
    "conflict",
    { notify: [1], window: undefined, limit: undefined, limits: [{ limit: 1, window: "1s" }] },
    {
      notify: [1],
      tiers: { by: "header:x-plan", limits: { pro: { limit: 9, window: "30s" } } },
    },
  ),
  ...rules("notify", "needs", { notify: [1], limit: undefined, window: undefined, concurrent: 4 }),
  ...rules("shards", "conflict", { notify: [1], limit: 9, shards: 2 }),
  ...inRule("for", "not-allowed", "program", "http", plan),
  ...rules("tellOrigin", "conflict", { for: "programs", tellOrigin: true }),
  ...rules("match", "conflict", { for: "programs", match: { paths: ["/a"] } }),
  ...rules("match", "conflict", { for: "programs", match: { except: { paths: ["/a"] } } }),
  ...rules("exempt", "conflict", { for: "programs", exempt: { headers: { "x-a": "secret" } } }),
  ...rules("response", "conflict", { for: "programs", response: { status: 503 } }),
  ...rules("retryJitter", "conflict", { for: "programs", retryJitter: "10s" }),
  ...rules("count", "conflict", { for: "programs", count: { status: [401] } }),
  ...rules("key", "needs", { for: "programs", key: "param:id" }),
  ...[
    ...["header:x-cost", "custom:depth", "body:bytes", { from: "body:bytes" }, { settle }],
    { reserve: "custom:depth", settle: "custom:usage" },
  ].flatMap((cost) => rules("cost", "conflict", { for: "programs", cost })),
  ...rules("cost.max", "conflict", { for: "programs", cost: { reserve: 5, max: 9 } }),
  ...rules("cost.default", "conflict", { for: "programs", cost: { reserve: 5, default: 9 } }),
  ...rules("cost.reserve", "not-allowed", { for: "programs", cost: { reserve: 0 } }),
];

/** Fields of a rule that other limiters have, or that stand at another place in Weir. */
const fieldsOfOthers = [
  ...["tokens", "burst", "points", "skip", "blockDuration"].flatMap((name) =>
    rules(name, "unknown-field", { [name]: 1 }),
  ),
  ...bare("max", "unknown-field", { max: 5, windowMs: 60_000 }),
  ...bare("windowMs", "unknown-field", { windowMs: 60_000, max: 5 }),
  ...bare("points", "unknown-field", { points: 5, duration: 60 }),
  ...bare("duration", "unknown-field", { duration: 60, points: 5 }),
  ...bare("quota", "unknown-field", { quota: 5, period: "1 minute" }),
  ...bare("period", "unknown-field", { period: "1 minute", quota: 5 }),
  ...bare("minute", "unknown-field", { minute: 5 }),
  ...bare("month", "unknown-field", { month: 5 }),
  ...bare("rate", "unknown-field", { rate: "10r/s" }),
  ...Object.entries({
    onerror: "open",
    on_error: "open",
    limt: 5,
    timezone: "Europe/Berlin",
    leases: false,
    paths: ["/a"],
    path: "/login",
    methods: ["POST"],
    except: ["/health"],
    keys: ["ip"],
    keyGenerator: plan,
    skip: (): boolean => true,
    failOpen: true,
    failure_mode_deny: true,
    dryRun: true,
    softLimit: true,
    enabled: false,
    statusCode: 503,
    weight: 2,
    retryAfter: 5,
    algorithm: "sliding",
    store: "memory",
    timeout: 9,
    burst: 20,
    deny: true,
    bans: ["1m", "1h"],
    utcOffset: 60,
    analytics: true,
    blockDuration: 900,
  }).flatMap(([name, value]) => rules(name, "unknown-field", { [name]: value })),
];

const four = { limits: { pro: { concurrent: 4 } }, by: "header:plan" };
const slots = [
  ...inRule("concurrent", "not-allowed", 0, -1, 1.5, 1001, "4", "5m", true, null, ...noNumber),
  ...rules("maxDuration", "not-allowed", { concurrent: 4, maxDuration: 0 }),
  ...rules("maxDuration", "not-allowed", { concurrent: 4, maxDuration: "month" }),
  ...rules("maxDuration", "not-allowed", { concurrent: 4, maxDuration: "53w" }),
  ...rules("maxDuration", "not-allowed", { concurrent: 4, maxDuration: "5 minutes" }),
  ...rules("maxDuration", "needs", { maxDuration: "5m" }),
  ...rules("shards", "conflict", { concurrent: 4, shards: 2 }, { tiers: four, shards: 2 }),
  ...bare("ban", "needs", { concurrent: 4, ban: "1h" }, { concurrent: 4, ban: ["1m", "1h"] }),
  ...bare("cost", "needs", { concurrent: 4, cost: 2 }, { concurrent: 4, cost: "body:bytes" }),
  ...bare("cost", "needs", { concurrent: 4, cost: "header:x-cost" }),
  ...bare("count", "needs", { concurrent: 4, count: { status: [401] } }),
  ...bare("window", "missing", { concurrent: 4, limit: 5 }),
  ...bare("limit", "missing", { concurrent: 4, window: "1m" }),
  ...bare("capacity", "needs", { concurrent: 4, capacity: 9 }),
  ...bare("maxReserved", "needs", { concurrent: 4, wait: "2s", maxReserved: 10 }),
  ...bare("limits[0].concurrent", "unknown-field", {
    limits: [{ limit: 5, window: "1m", concurrent: 4 }],
  }),
  ...rules("tiers.limits.pro.concurrent", "not-allowed", {
    tiers: { by: "header:plan", limits: { pro: { concurrent: 0 } } },
  }),
  ...rules("tiers.limits.pro.maxDuration", "unknown-field", {
    tiers: { by: "header:plan", limits: { pro: { concurrent: 4, maxDuration: "1m" } } },
  }),
  ...["concurrency", "maxConcurrent", "maxConnections", "inFlight", "Concurrent"].flatMap((name) =>
    rules(name, "unknown-field", { [name]: 4 }),
  ),
];

const waiting = { wait: "2s" };
const waits = [
  ...["61s", "500ms", 0, 61, 2000, 1.5, "2 seconds", "day", "", null, true].flatMap((wait) =>
    rules("wait", "not-allowed", { wait }),
  ),
  ...rules("wait", "conflict", { wait: "2s", ban: "1m" }),
  ...rules("wait", "conflict", { ...waiting, mode: "mark" }),
  ...rules("wait", "conflict", { ...waiting, for: "programs" }),
  ...rules("wait", "conflict", { ...waiting, count: { status: [401] } }),
  ...rules("wait", "conflict", { ...waiting, cost: "header:x-cost" }),
  ...rules("tiers.limits.pro.wait", "unknown-field", {
    ...waiting,
    ...tiersOf({ pro: { ...pro, wait: "2s" } }),
  }),
];

const CLAIM = { ...SOURCE, from: "jwt:/limits/rpm" } as const;
const withFunctions = (custom: unknown) => withCustom(custom, { limit: SOURCE });
const sources = [
  ...inRule("limit", "not-allowed", "custom:quota", "jwt:/limits/rpm", "header:x-quota", [SOURCE]),
  ...inRule("concurrent", "not-allowed", "custom:slots", () => 5),
  ...rules("max", "unknown-field", { max: async () => 5 }),
  ...rules("dynamicLimit", "unknown-field", { dynamicLimit: async () => 5 }),
  ...inRule("limit", "not-allowed", (): number => 5),
  ...rules("limit.from", "missing", { limit: {} }, { limit: { max: 100, default: 10 } }),
  ...rules("limit.max", "missing", { limit: { from: "custom:quota", default: 10 } }),
  ...rules("limit.default", "missing", { limit: { from: "custom:quota", max: 100 } }),
  ...["quota", "header:x-quota", "ip", "custom:a | jwt:b", "", 5, () => 5].flatMap((from) =>
    rules("limit.from", "not-allowed", { limit: { ...SOURCE, from } }),
  ),
  ...[0, -1, 1.5, MAX + 1, "100", null].flatMap((max) =>
    rules("limit.max", "not-allowed", { limit: { ...SOURCE, max } }),
  ),
  ...[-1, 1.5, MAX + 1, "10", null].flatMap((given) =>
    rules("limit.default", "not-allowed", { limit: { ...SOURCE, default: given } }),
  ),
  ...["2h", 3601, -1, 0.5, "1 minute", 60_000, "month", null].flatMap((cacheFor) =>
    rules("limit.cacheFor", "not-allowed", { limit: { ...SOURCE, cacheFor } }),
  ),
  ...["cache", "ttl", "fallback", "cachefor", "min"].flatMap((name) =>
    rules(`limit.${name}`, "unknown-field", { limit: { ...SOURCE, [name]: 5 } }),
  ),
  ...rules("concurrent.max", "not-allowed", { concurrent: { ...SOURCE, max: 1001 } }),
  ...rules("limit.default", "conflict", { limit: { ...SOURCE, default: 101 } }),
  ...rules("limit.cacheFor", "conflict", { limit: { ...CLAIM, cacheFor: "1m" } }),
  ...rules(
    "capacity",
    "conflict",
    { limit: SOURCE, capacity: 100 },
    { limit: SOURCE, capacity: { ...SOURCE, max: 200 } },
    { limit: SOURCE, capacity: { ...SOURCE, default: 20 } },
    { limit: { ...SOURCE, default: 0 }, capacity: 200 },
  ),
  ...rules("maxReserved", "conflict", { limit: { ...SOURCE, default: 0 }, maxReserved: 1 }),
  ...rules("shards", "conflict", { limit: SOURCE, shards: 11 }),
  ...inputs(
    "rules[0].limit",
    "needs",
    withFunctions(unset),
    withFunctions({ limits: {} }),
    withFunctions({ limits: { Quota: plan } }),
    withFunctions({ keys: { quota: plan } }),
  ),
  ...rules("limits", "needs", {
    limits: [
      { limit: SOURCE, window: "1m" },
      { limit: 50, window: "1h" },
    ],
  }),
  ...rules("limit", "needs", { limit: SOURCE, concurrent: 5 }),
  ...rules("capacity", "needs", { capacity: SOURCE }),
  ...rules("concurrent", "needs", { concurrent: SOURCE, ...tiersOf({ pro }) }),
  ...rules("tiers.limits.pro.limit", "needs", tiersOf({ pro: { ...pro, limit: SOURCE } })),
  ...rules("limit", "needs", { limit: CLAIM }, { for: "programs", limit: SOURCE }),
  ...rules("limit", "conflict", { for: "programs", limit: CLAIM }),
  ...rules("tiers.limits.pro.limit", "conflict", {
    for: "programs",
    ...tiersOf({ pro: { ...pro, limit: CLAIM } }),
  }),
  ...values("custom.limits", "not-allowed", null, plan),
  ...values("custom.limits.quota", "not-allowed", 5),
  ...names("custom.limits", "not-allowed", plan, "a-b"),
  ...tops("custom.limit", "unknown-field", { custom: { limit: { quota: plan } } }),
];

const ahead = [
  ...inRule("async", "not-allowed", "true", 1, null, {}),
  ...rules("async", "conflict", { async: true, ban: "1m" }, { async: true, ban: ["1m", "1h"] }),
  ...rules("async", "conflict", { async: true, wait: "2s" }),
  ...rules("async", "conflict", { async: true, concurrent: 4 }, { async: true, tiers: four }),
  ...rules("async", "conflict", { async: true, onError: "closed" }),
  ...rules("async", "conflict", { async: true, cost: "header:x-cost" }),
  ...rules("async", "conflict", { async: true, cost: { settle } }),
  ...rules("async", "conflict", { async: true, count: { status: [401] } }),
  ...rules("async", "conflict", { async: true, mode: "mark" }),
  ...rules("async", "conflict", { async: true, for: "programs" }),
  ...rules("tiers.limits.pro.async", "unknown-field", tiersOf({ pro: { ...pro, async: true } })),
  ...["optimistic", "nonBlocking", "asynchronous"].flatMap((name) =>
    rules(name, "unknown-field", { [name]: true }),
  ),
];

/** Each field with values that it does not take, and with fields that it contradicts or needs. */
export const REFUSED: readonly Refused[] = [
  ...config,
  ...origins,
  ...jwt,
  ...custom,
  ...ruleNames,
  ...limits,
  ...windows,
  ...keys,
  ...matches,
  ...costs,
  ...exemptions,
  ...bans,
  ...responses,
  ...modes,
  ...fieldsOfOthers,
  ...slots,
  ...waits,
  ...sources,
  ...ahead,
];
