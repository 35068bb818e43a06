import { type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { faultsOf, type Refused, refuses, rule } from "./fixtures.ts";

const MAX = 999_999_999_999_999;
const custom = { costs: { depth: () => 5 }, settle: { usage: () => 5 } };

function withCost(cost: unknown, fields: object = {}): object {
  return { rules: [rule({ cost, ...fields })], custom };
}

describe("the cost of a rule", () => {
  const depth = { kind: "custom", name: "depth" };
  const body = { kind: "body" };
  const tokens = { kind: "header", name: "x-tokens-used" };
  const usage = { kind: "custom", name: "usage" };

  test.each<[unknown, unknown]>([
    [undefined, 1],
    [0, 0],
    [MAX, MAX],
    ["header:X-Tokens-Used", { settle: tokens }],
    ["custom:depth", { before: depth }],
    ["body:bytes", { before: body }],
    [{ from: "custom:depth" }, { before: depth }],
    [
      { from: "body:bytes", max: MAX, default: 0 },
      { before: body, max: MAX, default: 0 },
    ],
    [
      { from: "custom:depth", max: 1, default: 1 },
      { before: depth, max: 1, default: 1 },
    ],
    [{ settle: "header:x-Tokens-used" }, { settle: tokens }],
    [
      { settle: "custom:usage", default: MAX },
      { settle: usage, default: MAX },
    ],
    [
      { reserve: 1, settle: "custom:usage", max: 1 },
      { before: 1, settle: usage, max: 1 },
    ],
    [
      { reserve: MAX, settle: "header:x-tokens-used" },
      { before: MAX, settle: tokens },
    ],
    [
      { reserve: "custom:depth", settle: "custom:usage" },
      { before: depth, settle: usage },
    ],
    [
      { reserve: "body:bytes", settle: "custom:usage" },
      { before: body, settle: usage },
    ],
  ])("%o is parsed", (cost, parsed) => {
    const [defined] = defineConfig(withCost(cost) as ConfigInput).rules;
    const none = { before: undefined, settle: undefined, max: undefined, default: undefined };
    const isNumber = typeof parsed === "number";
    expect(defined?.cost).toEqual(isNumber ? parsed : { ...none, ...(parsed as object) });
  });

  const cost = (value: unknown, path: string, ...says: string[]): Refused => [
    JSON.stringify(value),
    withCost(value),
    `rules[0].cost${path}`,
    ...says,
  ];
  const from = "custom:depth";
  const reserved = { reserve: 5, settle: "header:x-a" };
  refuses([
    cost("custom:", "", '"custom:NAME" or "body:bytes" of the request, "header:NAME" of the'),
    cost("custom:a-b", "", "allowed: a whole number from 0"),
    cost("Custom:depth", "", "allowed: a whole number from 0"),
    cost("body:length", "", "allowed: a whole number from 0"),
    cost({}, "", "a cost needs from, or settle, or reserve and settle"),
    cost({ max: 5 }, "", "a cost needs from, or settle, or reserve and settle"),
    cost({ from, other: 1 }, ".other", "unknown field", "from, reserve, settle, max, default"),
    cost({ from: 5 }, ".from", 'allowed: "custom:NAME" or "body:bytes"'),
    cost({ from: "header:x-a" }, ".from", 'allowed: "custom:NAME" or "body:bytes"'),
    cost({ from, reserve: 5 }, ".reserve", "a cost has either from, or reserve and settle"),
    cost({ from, settle: "header:x-a" }, ".from", "with settle, write reserve in place of from"),
    cost({ reserve: 5 }, ".settle", "reserve needs settle. Without settle, write the cost itself"),
    ...[0, -1, 1.5, MAX + 1, "5", "header:x-a", null].map((reserve) =>
      cost({ ...reserved, reserve }, ".reserve", "allowed: a whole number from 1 to 999999999"),
    ),
    ...[5, "header:", "body:bytes", "x-a", "custom:", "header:a\nb", null].map((settle) =>
      cost({ settle }, ".settle", 'allowed: "header:NAME" or "custom:NAME" of the response'),
    ),
    ...[0, -1, 1.5, MAX + 1, "5", null].map((max) =>
      cost({ from, max }, ".max", "allowed: a whole number from 1 to 999999999999999"),
    ),
    ...[-1, 1.5, MAX + 1, "5", null].map((given) =>
      cost({ from, default: given }, ".default", "allowed: a whole number from 0 to 99999999999"),
    ),
    cost({ from, max: 5, default: 6 }, ".default", "got 6; default must be at most max, 5"),
    cost({ ...reserved, max: 4 }, ".reserve", "got 5; reserve must be at most max, 4"),
  ]);

  test("reports all faults of its fields at once", () => {
    const value = { from: "ip", reserve: 0, settle: "ip", max: 0, default: -1 };
    expect(faultsOf(withCost(value)).map(({ path }) => path)).toEqual(
      ["from", "reserve", "settle", "max", "default"].map((field) => `rules[0].cost.${field}`),
    );
  });
});

describe("a cost custom:NAME without its function", () => {
  const missing = (value: unknown, functions: unknown, ...says: string[]): Refused => [
    `${JSON.stringify(value)}, with ${JSON.stringify(functions)}`,
    { rules: [rule({ cost: value })], custom: functions },
    "rules[0].cost",
    ...says,
  ];
  const missingIn = (field: string, value: unknown, functions: unknown, ...says: string[]) => {
    const [title, config, path, ...words] = missing(value, functions, ...says);
    return [title, config, `${path}.${field}`, ...words] as const satisfies Refused;
  };
  const ofRequest = "Add custom: { costs: { depth: (request) => … } } beside rules";
  const ofResponse = "Add custom: { settle: { usage: (response) => … } } beside rules";
  refuses([
    missing("custom:depth", undefined, "custom:depth needs a function in custom.costs", ofRequest),
    missing("custom:depth", { keys: { depth: () => "a" } }, "depth is in custom.keys"),
    missing({ from: "custom:depth" }, { costs: {} }, ofRequest),
    missing("custom:depth", { costs: { Depth: () => 1 } }, "which has only Depth"),
    missingIn("settle", { settle: "custom:usage" }, undefined, "needs a function", ofResponse),
    missingIn(
      "settle",
      { settle: "custom:usage" },
      { settle: { used: () => 1 } },
      "which has only used",
    ),
    missingIn(
      "reserve",
      { reserve: "custom:depth", settle: "custom:usage" },
      { settle: { usage: () => 1 } },
      ofRequest,
    ),
  ]);

  test("is reported for each function of a cost at its own field", () => {
    const cost = { reserve: "custom:depth", settle: "custom:usage" };
    const faults = faultsOf({ rules: [rule({ cost })] });
    expect(faults.map(({ path }) => path)).toEqual([
      "rules[0].cost.reserve",
      "rules[0].cost.settle",
    ]);
  });

  test("is reported together with other faults of the rule", () => {
    const faults = faultsOf({ rules: [rule({ cost: "custom:depth", limit: -1 })] });
    expect(faults.map(({ path }) => path).sort()).toEqual(["rules[0].cost", "rules[0].limit"]);
  });
});

describe("the functions for costs", () => {
  const functions = (group: string, value: unknown, path: string, ...says: string[]): Refused => [
    `custom.${group}: ${JSON.stringify(value)}`,
    { rules: [], custom: { [group]: value } },
    `custom.${group}${path}`,
    ...says,
  ];
  refuses([
    functions("costs", null, "", "allowed: an object of functions, such as { depth: async (re"),
    functions("costs", { depth: 5 }, ".depth", "allowed: a function, such as async (request)"),
    functions("costs", { "a-b": () => 5 }, '["a-b"]', "the NAME in custom:NAME: one or more of"),
    functions("settle", [], "", "allowed: an object of functions, such as { usage: async (resp"),
    functions("settle", { usage: "a" }, ".usage", "allowed: a function, such as async (response)"),
  ]);

  test("are kept in Maps by name", () => {
    const config = defineConfig({ rules: [], custom });
    expect(config.custom?.costs).toEqual(new Map(Object.entries(custom.costs)));
    expect(config.custom?.settle).toEqual(new Map(Object.entries(custom.settle)));
  });
});

describe("count", () => {
  const count = (value: unknown, cost: unknown, path: string, ...says: string[]): Refused => [
    `${JSON.stringify(value)}, with the cost ${JSON.stringify(cost)}`,
    withCost(cost, { count: value }),
    `rules[0].count${path}`,
    ...says,
  ];
  const status = [200];
  const settle = "custom:usage";
  refuses([
    count({ status, reserve: 1 }, 1, ".reserve", "got 1; allowed: true or false"),
    count({ reserve: true }, 1, ".status", "missing; allowed: a list of HTTP statuses"),
    count({ status, reserve: true }, "header:x-a", "", "only the response determines the cost"),
    count({ status, reserve: true }, { settle }, "", "remove reserve: only the response"),
    count({ status }, { reserve: 5, settle }, "", "add reserve: true, because cost.reserve is"),
  ]);

  test.each<[object, unknown]>([
    [{ status, reserve: true }, 5],
    [{ status, reserve: true }, "custom:depth"],
    [
      { status, reserve: true },
      { reserve: 5, settle },
    ],
    [{ status }, "body:bytes"],
    [{ status }, { settle }],
  ])("may be %o with the cost %o", (value, cost) => {
    expect(faultsOf(withCost(cost, { count: value }))).toEqual([]);
  });
});

describe("the cost of a rule for programs", () => {
  const programs = (cost: unknown) => withCost(cost, { for: "programs" });

  test.each([0, 5])("may be the number %d", (cost) => {
    expect(faultsOf(programs(cost))).toEqual([]);
  });

  test.each([
    { reserve: 5 },
    { reserve: 5, settle: "header:x-a" },
    { reserve: 5, settle: "custom:missing" },
  ])("may be a reserve that is a number: %o", (cost) => {
    expect(faultsOf(programs(cost))).toEqual([]);
  });

  refuses([
    [
      "has no max",
      programs({ reserve: 5, max: 9 }),
      "rules[0].cost.max",
      "remove max: a program states its costs itself",
    ],
    [
      "has no default",
      programs({ reserve: 5, default: 9 }),
      "rules[0].cost.default",
      "remove default: a program states its costs itself",
    ],
    ["has no reserve of 0", programs({ reserve: 0 }), "rules[0].cost.reserve", "from 1"],
  ]);

  refuses(
    [
      "custom:depth",
      "custom:missing",
      "body:bytes",
      { from: "body:bytes" },
      { settle: "header:x-a" },
      { reserve: "custom:depth", settle: "custom:usage" },
    ].map(
      (cost): Refused => [
        `is no other value: ${JSON.stringify(cost)}`,
        programs(cost),
        "rules[0].cost",
        'write a whole number, or { reserve: 1200 }: a rule with for: "programs" counts no HTTP request',
      ],
    ),
  );
});
