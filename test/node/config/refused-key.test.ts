import { describe } from "vitest";
import { type Refused, refuses, withRule } from "./fixtures.ts";

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
      "jwt:sub",
      "custom:x",
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
        "allowed: ip, host, path, method, country, asn, ja4, global, header:NAME, cookie:NAME, query:NAME, param:NAME",
        '"a | b" for the first one present',
        "a list for all of them together",
      ),
    ),
    [
      "one of a list",
      withRule({ key: ["ip", "jwt:sub"] }),
      "rules[0].key[1]",
      'got "jwt:sub"; allowed: ip, host',
    ],
    key("param:name", 'got "param:name"; allowed: a parameter of match.paths, which has id'),
    key("param:i", "allowed: a parameter of match.paths, which has id"),
    key("header:a | param:name", "allowed: a parameter of match.paths, which has id"),
    [
      "param:id without a path",
      withRule({ key: "param:id" }),
      "rules[0].key",
      "allowed: a parameter of match.paths, which has none",
    ],
  ]);
});
