import { describe, expect, test } from "vitest";
import { faultsOf, rule, withRule } from "./fixtures.ts";

describe("the faults of a configuration", () => {
  test("name the first rule with a duplicate name at each later rule", () => {
    const rules = ["a", "b", "a", "a"].map((name) => rule({ name }));
    const message = 'got "a"; rules[0] has the same name, and each rule needs a different one';
    expect(faultsOf({ rules })).toEqual([
      { path: "rules[2].name", code: "duplicate", message },
      { path: "rules[3].name", code: "duplicate", message },
    ]);
  });

  test("report each unknown field at its own path", () => {
    const faults = faultsOf({ ...withRule({ lease: 1, burst: 2 }), bogus: 1, "a b": 2 });
    expect(faults.map(({ path }) => path)).toEqual([
      "rules[0].lease",
      "rules[0].burst",
      "bogus",
      '["a b"]',
    ]);
  });

  test("report only a misspelt field, and not that the correct field is missing", () => {
    expect(faultsOf({ rules: [{ nam: "api", limt: 5, widow: "1m" }] })).toMatchObject([
      { path: "rules[0].nam", message: expect.stringContaining('did you mean "name"?') },
      { path: "rules[0].limt", message: expect.stringContaining('did you mean "limit"?') },
      { path: "rules[0].widow", message: expect.stringContaining('did you mean "window"?') },
    ]);
  });

  test("include faults within a rule and faults between rules", () => {
    const rules = [rule({ limit: -1 }), rule({ key: "param:id" })];
    const paths = faultsOf({ rules, clock: "local" }).map(({ path }) => path);
    expect(paths.sort()).toEqual(["clock", "rules[0].limit", "rules[1].key", "rules[1].name"]);
  });
});

describe("the faults between the fields of a rule", () => {
  test("are reported together with the faults of its fields", () => {
    const fields = {
      limit: 3,
      window: "1x",
      key: ["param:id", "nobody"],
      match: { paths: ["/users/:name"], methods: [5] },
      shards: 4,
      ban: "1 hour",
      capacity: 2,
      localShare: 0.5,
    };
    const paths = faultsOf({ rules: [rule(fields)], jwt: { secret: "A", jwks: "b", algs: [] } });
    expect(paths.map(({ path }) => path).sort()).toEqual([
      "jwt",
      "jwt.algs",
      "jwt.jwks",
      "rules[0].ban",
      "rules[0].capacity",
      "rules[0].key",
      "rules[0].key[1]",
      "rules[0].localShare",
      "rules[0].match.methods[0]",
      "rules[0].shards",
      "rules[0].window",
    ]);
  });

  test("are not reported if they follow from a fault of a field", () => {
    const paths = (fields: object) => faultsOf(withRule(fields)).map(({ path }) => path);
    expect(paths({ key: "param:id", match: { paths: "/users/:id" } })).toEqual([
      "rules[0].match.paths",
    ]);
    expect(paths({ onError: "Local", localShare: 0.5 })).toEqual(["rules[0].onError"]);
    expect(paths({ limit: "10", shards: 4 })).toEqual(["rules[0].limit"]);
    expect(paths({ limit: "10", capacity: 4 })).toEqual(["rules[0].limit"]);
  });
});

describe("the message of a fault shows the given value", () => {
  test.for<[string, object, string]>([
    [
      "the text of a repeated window",
      { limits: [1, 2].map((limit) => ({ limit, window: "60s" })) },
      '"60s"',
    ],
    ["the whole key", { key: "ip | jwt:sub" }, '"ip | jwt:sub"'],
    ["a method as written", { match: { methods: ["get "] } }, '"get "'],
  ])("as the user wrote it: %s", ([, fields, given]) => {
    expect(faultsOf(withRule(fields))[0]?.message).toContain(`got ${given}`);
  });

  const got = (limit: unknown) => faultsOf(withRule({ limit }))[0]?.message;

  test("shortened if it is long", () => {
    expect(got("x".repeat(10_000))?.length).toBeLessThan(200);
  });

  test.for<[string, unknown]>([
    ["a function of several lines", new Function("return 1;\n// and a comment\n")],
    ["a text", "a\nb"],
    ["a symbol", Symbol("a\nb")],
  ])("on one line: %s", ([, limit]) => {
    expect(got(limit)).not.toContain("\n");
  });

  test.for<[string, unknown]>([
    ["a list with a bigint", [1n]],
    ["a circular list", circular()],
    ["a list of objects without a prototype", [Object.create(null)]],
  ])("even when JSON cannot: %s", ([, limit]) => {
    expect(got(limit)).toContain("allowed: a whole number");
  });
});

function circular(): unknown[] {
  const list: unknown[] = [];
  list.push(list);
  return list;
}
