import { describe, expect, test } from "vitest";
import { faultsOf, rule, withRule } from "./fixtures.ts";

describe("the faults of a configuration", () => {
  test("name the first rule with a duplicate name at each later rule", () => {
    const rules = ["a", "b", "a", "a"].map((name) => rule({ name }));
    const message = 'got "a"; rules[0] has the same name, and each rule needs a different one';
    expect(faultsOf({ rules })).toEqual([
      { path: "rules[2].name", message },
      { path: "rules[3].name", message },
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

describe("the message of a fault shows the given value", () => {
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
