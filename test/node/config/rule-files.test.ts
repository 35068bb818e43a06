import { defineConfig, defineRules } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { shortFaultsOf } from "../../../src/config/faults.ts";
import { faultsOf, rule } from "./fixtures.ts";

const loginRules = defineRules([
  { name: "login", limit: 5, window: "1m" },
  { name: "reset", limit: 5, window: "1h" },
]);
const searchRules = defineRules([{ name: "search", limit: 33, window: "1m" }]);

describe("rules in several files", () => {
  test("are the rules of one list, in the order of the files", () => {
    const files = { "rules/search.ts": searchRules, "rules/login.ts": loginRules };
    const list = { rules: [...searchRules, ...loginRules] };
    expect(defineConfig({ rules: files })).toEqual(defineConfig(list));
  });

  test("may be a list without rules", () => {
    expect(defineConfig({ rules: { "rules/none.ts": [], login: loginRules } }).rules).toHaveLength(
      2,
    );
  });

  test("report every fault at once, each with its file and its position in the file", () => {
    const input = {
      rules: {
        "rules/login.ts": [rule({ limt: 5 }), rule({ name: "b", window: "soon" })],
        search: [rule({ name: "c", key: "jwt:sub" }), rule({ name: "d", key: "custom:plan" }), 5],
        "rules/search.ts": [rule({ name: "b" })],
      },
    };
    expect(faultsOf(input).map(({ path }) => path)).toEqual([
      'rules["rules/login.ts"][0].limt',
      'rules["rules/login.ts"][1].window',
      "rules.search[2]",
      'rules["rules/search.ts"][0].name',
      "rules.search[0].key",
      "rules.search[1].key",
    ]);
    expect(faultsOf(input)[0]?.message).toContain('did you mean "limit"?');
    expect(faultsOf(input)[3]?.message).toContain('rules["rules/login.ts"][1] has the same name');
  });

  test("get the hints that the rules of one list get, also if a file has the name of a field", () => {
    const faulty = [
      rule({ window: "1 minute", match: "/login", retries: 3 }),
      rule({ name: "B", tiers: { by: "jwt:plan", limits: { pro: { limit: 5, windw: "1m" } } } }),
      rule({ name: "c", exempt: { headers: { "x-key": "s3cret " } } }),
    ];
    const list = faultsOf({ rules: faulty });
    for (const file of ["rules/a.ts", "exempt", "tiers", "custom", "limits", "match", "headers"]) {
      const start = /^\w+$/.test(file) ? `rules.${file}` : `rules[${JSON.stringify(file)}]`;
      expect(faultsOf({ rules: { [file]: faulty } })).toEqual(
        list.map(({ path, ...others }) => ({ ...others, path: path.replace(/^rules/, start) })),
      );
    }
  });

  test("can be 10,000 in all files together", () => {
    const rules = (from: number, count: number) =>
      Array.from({ length: count }, (_, index) => rule({ name: `r${from + index}` }));
    const files = { a: rules(0, 6000), b: rules(6000, 4000) };
    expect(faultsOf({ rules: files })).toEqual([]);
    expect(faultsOf({ rules: { ...files, c: [5] } })).toEqual([
      {
        path: "rules",
        code: "too-many",
        message: expect.stringContaining("there can be at most 10000 rules"),
      },
    ]);
  });
});

const byHost = (name: string, by = "host") => ({
  rules: [rule({ tiers: { by, limits: { [name]: { limit: 5, window: "1m" } } } })],
});
test.for([
  ["a.example", "host"],
  ["xn--bcher-kva.example", "host"],
  ["203.0.113.7", "host"],
  ["Pro", "jwt:plan"],
  ["Pro", "host | jwt:plan"],
])("accepts the tier %s by %s", ([name = "", by]) => {
  const jwt = { jwks: "https://issuer.example/jwks" };
  expect(faultsOf({ ...byHost(name, by), jwt })).toEqual([]);
});

test("the short faults of a deployed Worker name the file", () => {
  const issue = {
    kind: "schema",
    type: "custom",
    message: "a text",
    path: ["rules", "rules/a.ts", 0, "name"].map((key) => ({ key })),
  };
  expect(shortFaultsOf([issue as never])[0]?.path).toBe('rules["rules/a.ts"][0].name');
});
