import { describe, expect, test } from "vitest";
import { faultsOf, type Refused, refuses, withRule } from "./fixtures.ts";

const MAX = "999999999999999";
const DURATION = 'allowed: "10s", "1m", "1h", "1d", "1w" or a number of whole seconds';

const named = (name: string, value: unknown) => `${name}: ${JSON.stringify(value)}`;

describe("refuses a rule's field", () => {
  const field = (name: string, value: unknown, ...says: string[]): Refused => [
    named(name, value),
    withRule({ [name]: value }),
    `rules[0].${name}`,
    ...says,
  ];
  refuses([
    ...[-1, 1.5, "5", null].flatMap((value) => [
      field("capacity", value, `allowed: a whole number from 0 to ${MAX}`),
      field("maxReserved", value, `allowed: a whole number from 0 to ${MAX}`),
    ]),
    field("capacity", 4, "got 4; capacity must be at least the limit, 5"),
    ...[0, 101, 1.5, "2", null].map((value) =>
      field("shards", value, "allowed: a whole number from 1 to 100"),
    ),
    field("shards", 6, "got 6", "shards can be at most the smallest limit, 5"),
    ...[-1, 1.5, 1e15, "1", "header", "header:", "header:a b", "cookie:a", null, []].map((value) =>
      field("cost", value, `allowed: a whole number from 0 to ${MAX}, "custom:NAME" or "body:byt`),
    ),
    ...["response", 401, [401], null].map((value) =>
      field("count", value, 'allowed: "request", or { status: [401, 403] }'),
    ),
    ...["1x", 0, null, true].flatMap((value) => [
      field("ban", value, DURATION),
      field("retryJitter", value, DURATION),
    ]),
    field("ban", [], "got []; allowed: a list of 1 to 10 lengths of time"),
    field("ban", Array(11).fill("1h"), "at most 10 lengths"),
    field("ban", {}, DURATION),
    ...[5, "pro", null, []].map((value) =>
      field("tiers", value, "allowed: an object with by, limits"),
    ),
    ...[{}, [], 5, null].map((value) =>
      field("exempt", value, "allowed: at least one of ips, headers"),
    ),
  ]);
});

describe("refuses the fields of a rule", () => {
  const within = (fields: object, path: string, ...says: string[]): Refused => [
    JSON.stringify(fields),
    withRule(fields),
    `rules[0].${path}`,
    ...says,
  ];
  const pro = { limit: 50, window: "1m" };
  const tiers = (limits: unknown, by: unknown = "header:plan") => ({ tiers: { by, limits } });
  refuses([
    within({ limit: 0, capacity: 5 }, "capacity", "got 5", "remove capacity: with a limit of 0"),
    within(
      { limit: 0, maxReserved: 1 },
      "maxReserved",
      "got 1",
      "remove maxReserved: with a limit of 0",
    ),
    within(
      { limits: [{ ...pro, capacity: 49 }] },
      "limits[0].capacity",
      "capacity must be at least the limit, 50",
    ),
    within(
      { limits: [{ ...pro, limit: 0, maxReserved: 1 }] },
      "limits[0].maxReserved",
      "remove maxReserved: with a limit of 0",
    ),
    within(
      { limits: [pro], capacity: 60 },
      "capacity",
      "with limits, write capacity in each element",
    ),
    within(
      { limits: [pro, { limit: 2, window: "1s" }], shards: 3 },
      "shards",
      "shards can be at most the smallest limit, 2",
    ),
    within(
      { ...tiers({ a: { limit: 1, window: 1 } }), shards: 2 },
      "shards",
      "shards can be at most the smallest limit, 1",
    ),
    within({ limit: 0, shards: 2 }, "shards", "shards can be at most the smallest limit, 0"),
    within({ shards: 2, ban: "1h" }, "ban", "a rule with shards can have no ban"),
    within({ shards: 2, ban: ["1m", "1h"] }, "ban", "a rule with shards can have no ban"),
    within({ ban: ["1m", "1x"] }, "ban[1]", DURATION),
    within({ ban: ["1h", "1m"] }, "ban[1]", 'got "1m"; no ban can be shorter than the one before'),
    within({ ban: { lengths: "1h" } }, "ban.lengths", "a list of 1 to 10 lengths of time"),
    within({ ban: { lengths: ["1h", "1m"] } }, "ban.lengths[1]", "no ban can be shorter"),
    within({ ban: { forgetAfter: "1h" } }, "ban.lengths", "missing", "a list of 1 to 10 lengths"),
    within(
      { ban: { lengths: ["1h"], forgetAfter: "1h" } },
      "ban.forgetAfter",
      "remove forgetAfter, or write at least two lengths",
    ),
    within({ ban: { lengths: ["1m", "1h"], forgetAfter: 0 } }, "ban.forgetAfter", DURATION),
    within(
      { ban: { lengths: ["1m", "1h"], forgetafter: "1d" } },
      "ban.forgetafter",
      'did you mean "forgetAfter"?',
    ),
    within({ count: { status: [] } }, "count.status", "allowed: a list of HTTP statuses"),
    within({ count: { status: 401 } }, "count.status", "allowed: a list of HTTP statuses"),
    within({ count: { status: [600] } }, "count.status[0]", "a whole number from 100 to 599"),
    within(
      { count: { status: ["401"] } },
      "count.status[0]",
      'got "401"',
      "allowed: a whole number",
    ),
    within({ count: { statuses: [1] } }, "count.statuses", 'did you mean "status"?'),
    within({ count: {} }, "count.status", "missing", "allowed: a list of HTTP statuses"),
    within({ tiers: { limits: { pro } } }, "tiers.by", "missing", "allowed: ip, host"),
    within(tiers({ pro }, ["header:a"]), "tiers.by", '"a | b" for the first one present'),
    within(tiers({ pro }, "plan"), "tiers.by", 'got "plan"', "allowed: ip, host"),
    within(
      tiers({ pro }, "param:plan"),
      "tiers.by",
      "param:plan is no parameter of match.paths, which has no parameters",
    ),
    within(tiers({}), "tiers.limits", "allowed: an object of tiers, each { limit, window }"),
    within(tiers([pro]), "tiers.limits", "allowed: an object of tiers"),
    within(
      tiers({ "a b": pro }),
      'tiers.limits["a b"]',
      "allowed: 1 to 64 characters of A-Z, a-z, 0-9",
    ),
    within(tiers({ "": pro }), 'tiers.limits[""]', "allowed: 1 to 64 characters of"),
    within(tiers({ pro: 5 }), "tiers.limits.pro", "got 5", "allowed: { limit, window }"),
    within(
      tiers({ pro: { limit: 5 } }),
      "tiers.limits.pro.window",
      "missing",
      "a rule or tier has either limit and window, or limits",
    ),
    within(
      tiers({ pro: { limits: [pro], limit: 5 } }),
      "tiers.limits.pro.limit",
      "a rule or tier has either limit and window, or limits",
    ),
    within(
      tiers({ pro: { ...pro, capacity: 9 } }),
      "tiers.limits.pro.capacity",
      "capacity must be at least the limit, 50",
    ),
    within(tiers({ pro: { ...pro, cost: 1 } }), "tiers.limits.pro.cost", "unknown field"),
    within({ tiers: { limits: { pro }, bye: "ip" } }, "tiers.bye", 'did you mean "by"?'),
    ...["", "10.0.0", "10.0.0.0/33", "010.0.0.1", "0x7f.0.0.1", "10.0.0.0/", "::/129", 5].map(
      (ip) =>
        within({ exempt: { ips: [ip] } }, "exempt.ips[0]", "allowed: an address or a network"),
    ),
    ...["::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "64:ff9b::/96", "2002:a00::/24"].map((ip) =>
      within({ exempt: { ips: [ip] } }, "exempt.ips[0]", "IPv4 in its own notation"),
    ),
    within({ exempt: { ips: [] } }, "exempt.ips", "allowed: a list of one or more"),
    within({ exempt: { ips: "::1" } }, "exempt.ips", "allowed: a list of one or more"),
    within({ exempt: { headers: {} } }, "exempt.headers", "allowed: an object of header names"),
    within({ exempt: { headers: { "a b": "x" } } }, 'exempt.headers["a b"]', "name of a header"),
    ...["", " a", "a ", "a\nb", "é", 5, null, { secret: "a-b" }, { secret: "" }, {}].map((value) =>
      within({ exempt: { headers: { a: value } } }, "exempt.headers.a"),
    ),
    within({ exempt: { ip: ["::1"] } }, "exempt.ip", 'did you mean "ips"?'),
  ]);
});

describe("refuses jwt", () => {
  const jwt = (value: unknown, path: string, ...says: string[]): Refused => [
    JSON.stringify(value),
    { rules: [], jwt: value },
    path,
    ...says,
  ];
  const either = 'either { secret: "NAME", alg } or { jwks: "https://…", algs }';
  const jwks = "https://issuer.example.com/jwks.json";
  refuses([
    ...["JWT", null, [], {}, { secret: "JWT", jwks }].map((value) => jwt(value, "jwt", either)),
    jwt({ secret: "JWT", algs: ["RS256"] }, "jwt.algs", "with secret, write alg, one algorithm"),
    jwt({ jwks, alg: "HS256" }, "jwt.alg", "with jwks, write algs, a list"),
    jwt({ secret: "a-b" }, "jwt.secret", "allowed: the name of a secret or var"),
    jwt({ secret: "JWT", alg: "RS256" }, "jwt.alg", 'allowed: "HS256", "HS384", "HS512"'),
    jwt({ secret: "JWT", alg: "none" }, "jwt.alg", 'allowed: "HS256", "HS384", "HS512"'),
    ...["HS256", "none", "rs256"].map((alg) =>
      jwt({ jwks, algs: [alg] }, "jwt.algs[0]", 'allowed: "RS256", "RS384"'),
    ),
    jwt({ jwks, algs: [] }, "jwt.algs", "allowed: a list of RS256"),
    ...["http://a.example/", "/jwks", "https://u:p@a.example/", "https://a.example/#x", 5].map(
      (url) => jwt({ jwks: url }, "jwt.jwks", "allowed: an absolute https URL"),
    ),
    jwt({ jwks, header: "a b" }, "jwt.header", "allowed: the name of a header"),
    jwt({ jwks, issuer: "" }, "jwt.issuer", "allowed: a text"),
    jwt({ jwks, audience: 5 }, "jwt.audience", "allowed: a text"),
    jwt({ jwsk: jwks }, "jwt.jwsk", 'did you mean "jwks"?'),
  ]);
});

test("reports all faults of a rule, including the faults between its fields", () => {
  const faults = faultsOf(withRule({ capacity: 1, cost: -1, count: {}, exempt: {} }));
  expect(faults.map(({ path }) => path).sort()).toEqual([
    "rules[0].capacity",
    "rules[0].cost",
    "rules[0].count.status",
    "rules[0].exempt",
  ]);
});
