import { describe } from "vitest";
import { type Refused, refuses, withRule } from "./fixtures.ts";

describe("refuses a match", () => {
  const match = (value: unknown, path: string, ...says: string[]): Refused => [
    JSON.stringify(value),
    withRule({ match: value }),
    `rules[0].match${path}`,
    ...says,
  ];
  const LISTS = {
    hosts: "host names",
    methods: "HTTP methods",
    paths: "paths in Hono's route syntax",
  };
  refuses([
    ...[null, "/login", []].map((value) =>
      match(value, "", "allowed: an object with hosts, methods, paths, headers, query"),
    ),
    match(
      { path: ["/a"] },
      ".path",
      "write paths instead",
      "hosts, methods, paths, headers, query, ips, countries, asns, bots, except",
    ),
    match({ cookies: ["a"] }, ".cookies", "unknown field"),
    ...Object.entries(LISTS).flatMap(([name, allowed]) => [
      ...[[], "x", null, {}].map((value) =>
        match({ [name]: value }, `.${name}`, `allowed: a list of ${allowed}`),
      ),
      match({ [name]: [5] }, `.${name}[0]`, "got 5", `allowed: ${allowed}`),
      match({ [name]: [""] }, `.${name}[0]`, 'got ""', `allowed: ${allowed}`),
      match({ except: { [name]: [] } }, `.except.${name}`, `allowed: a list of ${allowed}`),
    ]),
    ...[
      "example.com:443",
      "https://example.com",
      "example.com/a",
      "a b",
      "*",
      "*.",
      ".",
      "a.*.example",
      "*.*.example",
      "a@example.com",
      "[::1]",
    ].map((host) =>
      match(
        { hosts: [host] },
        ".hosts[0]",
        'without a port, such as "api.example.com" or "*.example.com"',
      ),
    ),
    ...["G T", "GET,POST", "GET\n", "*"].map((method) =>
      match({ methods: [method] }, ".methods[0]", 'such as "POST"'),
    ),
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
      "/:id{",
      "/:id{a}{b}",
      "/:id{a{2}/b}",
      "/a/../b",
      "/./a",
      "/a{b",
      "https://example.com/a",
    ].map((path) =>
      match(
        { paths: ["/ok", path] },
        ".paths[1]",
        `got ${JSON.stringify(path)}`,
        "a leading slash",
        "no query",
      ),
    ),
    match({ except: {} }, ".except", "got {}", "allowed: at least one of hosts, methods, paths"),
    [
      "except with a list that is undefined",
      withRule({ match: { except: { paths: undefined } } }),
      "rules[0].match.except",
      "allowed: at least one of hosts, methods, paths",
    ],
    match({ except: null }, ".except", "allowed: an object with hosts, methods, paths"),
    match({ except: { except: {} } }, ".except.except", "unknown field"),
    match({ except: { pths: ["/a"] } }, ".except.pths", 'did you mean "paths"?'),
  ]);
});
