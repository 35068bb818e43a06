import { describe, expect, test } from "vitest";
import { faultsOf, rule, withRule } from "./fixtures.ts";

const minute = { limit: 5, window: "1m" };
const many = Array.from({ length: 9 }, (_, index) => ({ limit: 1, window: index || 1 }));

/** Inputs with several faults, and the paths of all of them. */
const SEVERAL: readonly (readonly [faults: string, input: unknown, paths: string[]])[] = [
  [
    "unknown fields, each at its own path",
    { ...withRule({ lease: 1, burst: 2 }), bogus: 1, "a b": 2 },
    ['["a b"]', "bogus", "rules[0].burst", "rules[0].lease"],
  ],
  [
    "misspelt fields, and not that the correct fields are missing",
    { rules: [{ nam: "api", limt: 5, widow: "1m" }] },
    ["rules[0].limt", "rules[0].nam", "rules[0].widow"],
  ],
  [
    "faults within a rule and faults between rules",
    { rules: [rule({ limit: -1 }), rule({ key: "param:id" })], clock: "local" },
    ["clock", "rules[0].limit", "rules[1].key", "rules[1].name"],
  ],
  [
    "each later rule with a duplicate name",
    { rules: ["a", "b", "a", "a"].map((name) => rule({ name })) },
    ["rules[2].name", "rules[3].name"],
  ],
  [
    "faults of a rule's fields and between its fields",
    withRule({ capacity: 1, cost: -1, count: {}, exempt: {} }),
    ["rules[0].capacity", "rules[0].cost", "rules[0].count.status", "rules[0].exempt"],
  ],
  [
    "many faults of a rule and of jwt",
    {
      rules: [
        rule({
          limit: 3,
          window: "1x",
          key: ["param:id", "nobody"],
          match: { paths: ["/users/:name"], methods: [5] },
          shards: 4,
          ban: "1 hour",
          capacity: 2,
          localShare: 0.5,
        }),
      ],
      jwt: { secret: "A", jwks: "b", algs: [] },
    },
    [
      ...["jwt", "jwt.algs", "jwt.jwks", "rules[0].ban", "rules[0].capacity", "rules[0].key"],
      ...["rules[0].key[1]", "rules[0].localShare", "rules[0].match.methods[0]"],
      ...["rules[0].shards", "rules[0].window"],
    ],
  ],
  [
    "too many windows, the same window twice, and another fault",
    withRule({ limits: [...many, { limit: -1, window: "1m" }] }),
    ["rules[0].limits", "rules[0].limits[1].window", "rules[0].limits[9].limit"],
  ],
  [
    "limit and window beside limits",
    withRule({ limits: [minute], ...minute }),
    ["rules[0].limit", "rules[0].window"],
  ],
  [
    "a missing limit and window",
    { rules: [{ name: "api" }] },
    ["rules[0].limit", "rules[0].window"],
  ],
  [
    "claims without jwt and other faults",
    { rules: [rule({ name: "a", key: "jwt:sub", limit: -1 }), rule({ name: "b", window: 0 })] },
    ["rules[0].key", "rules[0].limit", "rules[1].window"],
  ],
  [
    "keys without their functions and other faults",
    {
      rules: [rule({ key: "custom:plan", limit: -1 }), rule({ name: "b", key: "custom:user" })],
      prefix: "a b",
    },
    ["prefix", "rules[0].key", "rules[0].limit", "rules[1].key"],
  ],
  [
    "costs without their functions and other faults",
    { rules: [rule({ cost: { reserve: "custom:depth", settle: "custom:usage" }, limit: -1 })] },
    ["rules[0].cost.reserve", "rules[0].cost.settle", "rules[0].limit"],
  ],
  [
    "all fields of a cost",
    withRule({ cost: { from: "ip", reserve: 0, settle: "ip", max: 0, default: -1 } }),
    ["default", "from", "max", "reserve", "settle"].map((field) => `rules[0].cost.${field}`),
  ],
];

/** Inputs whose second fault would follow from their first fault, and the path of the first one. */
const FOLLOWING: readonly (readonly [path: string, input: unknown])[] = [
  ["rules[0].match.paths", withRule({ key: "param:id", match: { paths: "/users/:id" } })],
  ["rules[0].onError", withRule({ onError: "Local", localShare: 0.5 })],
  ["rules[0].limit", withRule({ limit: "10", shards: 4 })],
  ["rules[0].limit", withRule({ limit: "10", capacity: 4 })],
  ["jwt.secret", { ...withRule({ key: "jwt:sub" }), jwt: { secret: "a-b" } }],
  ["custom.keys.plan", { ...withRule({ key: "custom:plan" }), custom: { keys: { plan: "pro" } } }],
  ["custom.keys", { ...withRule({ key: "custom:plan" }), custom: { keys: [] } }],
  ["custom", { ...withRule({ key: "custom:plan" }), custom: 5 }],
];

describe("the faults of a configuration", () => {
  test.for(SEVERAL)("include %s", ([, input, paths]) => {
    const found = faultsOf(input).map(({ path }) => path);
    expect(found.toSorted()).toEqual(paths.toSorted());
  });

  test.for(FOLLOWING)("include %s, and not what follows from it", ([path, input]) => {
    expect(faultsOf(input).map((fault) => fault.path)).toEqual([path]);
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
