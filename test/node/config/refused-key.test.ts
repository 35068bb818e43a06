import { describe, expect, test } from "vitest";
import { faultsOf, type Refused, refuses, rule, withRule } from "./fixtures.ts";

describe("refuses a key", () => {
  const key = (value: unknown, ...says: string[]): Refused => [
    JSON.stringify(value),
    withRule({ key: value, match: { paths: ["/users/:id"] } }),
    "rules[0].key",
    ...says,
  ];
  refuses([
    ...[
      "",
      "IP",
      "user",
      "jwt:",
      "jwt:a b",
      "jwt:a/b",
      "jwt:/",
      "jwt://a",
      "jwt:/a/",
      "jwt:/a//b",
      "jwt:/a~",
      "jwt:/a~2",
      "jwt:/a b",
      "jwt:/a,ip",
      "jwt:/a\u0000",
      "jwt:/1/2/3/4/5/6/7/8/9",
      "custom",
      "custom:a-b",
      "ip |",
      "| ip",
      "header",
      "header:",
      "header:a b",
      "cookie:a;b",
      "query:",
      "param:a-b",
      "ip:1",
      5,
      null,
      {},
      [],
      [5],
      [["ip"]],
    ].map((value) =>
      key(
        value,
        `got ${JSON.stringify(value)}`,
        "allowed: ip, host, path, method, country, asn, ja4, global, header:NAME, cookie:NAME, query:NAME, param:NAME, jwt:CLAIM, custom:NAME",
        '"a | b" for the first one present',
        "a list for all of them together",
      ),
    ),
    key(`jwt:/${"a".repeat(256)}`, 'got "jwt:/aaa', "jwt:CLAIM"),
    [
      "an element of a list",
      withRule({ key: ["ip", "user:sub"] }),
      "rules[0].key[1]",
      'got "user:sub"',
      "allowed: ip, host",
    ],
    key(
      "param:name",
      'got "param:name"; param:name is no parameter of match.paths, which has only id',
    ),
    key("param:i", "param:i is no parameter of match.paths, which has only id"),
    key("header:a | param:name", 'got "header:a | param:name"; param:name is no parameter'),
    [
      "param:id without a path",
      withRule({ key: "param:id" }),
      "rules[0].key",
      "param:id is no parameter of match.paths, which has no parameters",
    ],
  ]);
});

describe("refuses a claim as a key if jwt is not set", () => {
  const says = "a key that reads a claim needs the top-level field jwt";
  const tiers = { by: "header:plan | jwt:plan", limits: { pro: { limit: 9, window: 60 } } };
  refuses([
    ["as a key", withRule({ key: "jwt:sub" }), "rules[0].key", `got "jwt:sub"; ${says}`],
    ["as an alternative", withRule({ key: "ip | jwt:sub" }), "rules[0].key", says],
    ["in a list", withRule({ key: ["ip", "jwt:sub"] }), "rules[0].key", says],
    ["of tiers", withRule({ tiers }), "rules[0].tiers.by", `got "header:plan | jwt:plan"; ${says}`],
  ]);

  test("together with other faults of the same rule and of other rules", () => {
    const rules = [rule({ name: "a", key: "jwt:sub", limit: -1 }), rule({ name: "b", window: 0 })];
    const paths = faultsOf({ rules }).map(({ path }) => path);
    expect(paths.sort()).toEqual(["rules[0].key", "rules[0].limit", "rules[1].window"]);
  });

  test("but not if jwt is set and has a fault", () => {
    const config = { ...withRule({ key: "jwt:sub" }), jwt: { secret: "a-b" } };
    expect(faultsOf(config).map(({ path }) => path)).toEqual(["jwt.secret"]);
  });
});
