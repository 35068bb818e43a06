import { describe, expect, test } from "vitest";
import { faultsOf, type Refused, refuses, withRule } from "./fixtures.ts";

describe("refuses limits", () => {
  const MISSING = "missing; a rule or tier has either limit and window, or limits";
  const quota = { limit: 5, window: "1m" };
  const limits = (fault: string, value: unknown, path: string, ...says: string[]): Refused => [
    fault,
    withRule({ limits: value }),
    `rules[0].limits${path}`,
    ...says,
  ];
  const rule = (fault: string, fields: object, path: string, says: string): Refused => [
    fault,
    { rules: [{ name: "api", ...fields }] },
    `rules[0].${path}`,
    says,
  ];
  refuses([
    limits("that are null", null, "", "allowed: a list of { limit, window }"),
    limits(
      "that are one quota instead of a list",
      quota,
      "",
      "allowed: a list of { limit, window }",
    ),
    limits("that are an empty list", [], "", "got []", "allowed: a list of { limit, window }"),
    limits("of a number", [5], "[0]", "got 5", "allowed: an object with limit, window"),
    limits("without a window", [quota, { limit: 5 }], "[1].window", 'missing; allowed: "10s"'),
    limits("without a limit", [{ window: 5 }], "[0].limit", "missing", "allowed: a whole number"),
    limits(
      "with a misspelt field",
      [{ limit: 5, widow: "1m" }],
      "[0].widow",
      'did you mean "window"?',
    ),
    limits("with an unknown field", [{ ...quota, cost: 1 }], "[0].cost", "allowed: limit, window"),
    limits(
      "with the same window twice",
      [quota, { limit: 9, window: 60 }],
      "[1].window",
      "got 60",
      "limits[0] has the same window",
    ),
    limits(
      "with 9 windows",
      Array.from({ length: 9 }, (_, index) => ({ limit: 1, window: index + 1 })),
      "",
      "a rule can have at most 8 limits",
    ),
    rule("of a limit alone", { limit: 5 }, "window", MISSING),
    rule("of a window alone", { window: "1m" }, "limit", MISSING),
    rule("of a limit that is undefined", { ...quota, limit: undefined }, "limit", MISSING),
    rule("of a window that is undefined", { ...quota, window: undefined }, "window", MISSING),
    rule(
      "together with a limit",
      { limits: [quota], limit: 5 },
      "limit",
      "got 5; a rule or tier has either limit and window, or limits",
    ),
    rule(
      "together with a window",
      { limits: [quota], window: 60 },
      "window",
      "got 60; a rule or tier has either limit and window, or limits",
    ),
    rule(
      "together with a capacity",
      { limits: [quota], capacity: 9 },
      "capacity",
      "got 9; with limits, write capacity in each element",
    ),
    rule(
      "together with maxReserved",
      { limits: [quota], maxReserved: 0 },
      "maxReserved",
      "got 0; with limits, write maxReserved in each element",
    ),
  ]);

  test("that are missing, and reports both missing fields", () => {
    expect(faultsOf({ rules: [{ name: "api" }] })).toEqual([
      { path: "rules[0].limit", code: "missing", message: MISSING },
      { path: "rules[0].window", code: "missing", message: MISSING },
    ]);
  });

  test("of more than 8 windows, with the same window twice, and with another fault, all at once", () => {
    const many = Array.from({ length: 9 }, (_, index) => ({ limit: 1, window: index || 1 }));
    const faults = faultsOf(withRule({ limits: [...many, { limit: -1, window: "1m" }] }));
    expect(faults.map(({ path }) => path).sort()).toEqual([
      "rules[0].limits",
      "rules[0].limits[1].window",
      "rules[0].limits[9].limit",
    ]);
  });

  test("together with limit and window, and reports a fault at both", () => {
    const faults = faultsOf(withRule({ limits: [quota], ...quota }));
    expect(faults.map(({ path }) => path)).toEqual(["rules[0].limit", "rules[0].window"]);
  });
});
