import { ConfigError, type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { toConfig } from "../../../src/config/define.ts";
import { faultsOf, type Refused, refuses, rule } from "./fixtures.ts";

const plan = () => "pro";
const byPlan = { by: "custom:plan", limits: { pro: { limit: 50, window: "1m" } } };

function withCustom(custom: unknown, fields: object = {}): object {
  return { rules: [rule(fields)], custom };
}

describe("the field custom", () => {
  test.each<[string, object]>([
    ["has a function for a key", withCustom({ keys: { plan } }, { key: "custom:plan" })],
    ["has a function for tiers", withCustom({ keys: { plan } }, { tiers: byPlan })],
    ["has a function that no rule uses", withCustom({ keys: { plan } })],
    ["has no functions", withCustom({ keys: {} })],
    ["is empty", withCustom({})],
    [
      "has a function that is a method",
      withCustom({ keys: { plan() {} } }, { key: "custom:plan" }),
    ],
    ["has an async function", withCustom({ keys: { async plan() {} } }, { key: "custom:plan" })],
    ["has a function named after an inherited property", withCustom({ keys: { toString: plan } })],
    [
      "has a function named __proto__",
      withCustom({ keys: Object.fromEntries([["__proto__", plan]]) }, { key: "custom:__proto__" }),
    ],
  ])("is accepted if it %s", (_, input) => {
    expect(faultsOf(input)).toEqual([]);
  });

  test("keeps the functions, in a Map by name", () => {
    const { custom } = defineConfig({ rules: [], custom: { keys: { plan } } });
    expect([...(custom?.keys ?? [])]).toEqual([["plan", plan]]);
  });

  const keys = (value: unknown, path: string, ...says: string[]): Refused => [
    `custom.keys: ${JSON.stringify(value)}`,
    withCustom({ keys: value }),
    path,
    ...says,
  ];
  refuses([
    ["custom: a function", withCustom(plan), "custom", "got a function; allowed: { keys: {"],
    ["custom: null", withCustom(null), "custom", "got null; allowed: { keys: { plan: (request)"],
    ["custom: a list", withCustom([]), "custom", "got []"],
    [
      "custom: the functions without keys",
      withCustom({ plan }),
      "custom.plan",
      "unknown field; allowed: keys, costs, settle, responses",
    ],
    ["custom: key", withCustom({ key: { plan } }), "custom.key", 'did you mean "keys"?'],
    keys(null, "custom.keys", "allowed: an object of functions, such as { plan: (request) => … }"),
    keys([], "custom.keys", "an object of functions"),
    keys({ plan: "pro" }, "custom.keys.plan", "got a text (not shown); allowed: a function"),
    keys({ plan: undefined }, "custom.keys.plan", "missing; allowed: a function"),
    ...["a-b", "", "é", "a b", "custom:plan"].map(
      (name): Refused => [
        `custom.keys, with the name ${JSON.stringify(name)}`,
        withCustom({ keys: { [name]: plan } }),
        `custom.keys[${JSON.stringify(name)}]`,
        `got ${JSON.stringify(name)}; allowed: the NAME in custom:NAME: one or more of A-Z`,
      ],
    ),
  ]);
});

describe("a key custom:NAME without its function", () => {
  const cure = "Add custom: { keys: { plan: (request) => … } } beside rules";
  const place = (path: string, custom: unknown, fields: object, ...says: string[]): Refused => [
    `${path}, with ${JSON.stringify(custom)}`,
    withCustom(custom, fields),
    path,
    "custom:plan needs a function in custom.keys, which has ",
    cure,
    'or, if only programs use the rule, for: "programs"',
    ...says,
  ];
  refuses([
    place("rules[0].key", undefined, { key: "custom:plan" }, "which has none"),
    place("rules[0].key", {}, { key: "custom:plan | ip" }, "which has none"),
    place(
      "rules[0].key",
      { keys: { user: plan } },
      { key: ["ip", "custom:plan"] },
      "has only user.",
    ),
    place("rules[0].tiers.by", { keys: {} }, { tiers: byPlan }, "which has none"),
    place("rules[0].key", { keys: { Plan: plan } }, { key: "custom:plan" }, "has only Plan."),
    [
      "a key that is named like an inherited property",
      withCustom({ keys: { plan } }, { key: "custom:toString" }),
      "rules[0].key",
      'got "custom:toString"',
    ],
  ]);

  test("is reported together with the other faults of the rule and of the configuration", () => {
    const rules = [
      rule({ key: "custom:plan", limit: -1 }),
      rule({ name: "b", key: "custom:user" }),
    ];
    const paths = faultsOf({ rules, prefix: "a b" }).map(({ path }) => path);
    expect(paths.sort()).toEqual(["prefix", "rules[0].key", "rules[0].limit", "rules[1].key"]);
  });

  test("is not reported if the function itself has a fault, which is reported instead", () => {
    const paths = (custom: unknown) =>
      faultsOf(withCustom(custom, { key: "custom:plan" })).map(({ path }) => path);
    expect(paths({ keys: { plan: "pro" } })).toEqual(["custom.keys.plan"]);
    expect(paths({ keys: [] })).toEqual(["custom.keys"]);
    expect(paths(5)).toEqual(["custom"]);
  });
});

describe("a function in any other field", () => {
  test.each<[string, object]>([
    ["rules[0].key", { key: plan }],
    ["rules[0].limit", { limit: plan }],
    ["rules[0].match.paths[0]", { match: { paths: [plan] } }],
    ["rules[0].cost", { cost: plan }],
    ["rules[0].count", { count: plan }],
    ["rules[0].exempt", { exempt: plan }],
    ["rules[0].response", { response: plan }],
    ["rules[0].response.body", { response: { body: plan } }],
    ["rules[0].response.body", { response: { body: { error: { text: plan } } } }],
    ["rules[0].for", { for: plan }],
  ])("is a fault: %s", (path, fields) => {
    expect(faultsOf({ rules: [rule(fields)] }).map((fault) => fault.path)).toEqual([path]);
  });

  test.each(["origin", "store", "prefix", "timeoutMs", "jwt", "nativeLimiter"])(
    "is a fault: %s",
    (field) => {
      expect(faultsOf({ rules: [], [field]: plan })).toEqual([
        { path: field, code: "not-allowed", message: expect.stringContaining("got a function; ") },
      ]);
    },
  );
});

describe("a rule for programs", () => {
  const programs = (fields: object) => ({ rules: [rule({ for: "programs", ...fields })] });

  test.each<[string, object]>([
    ["a key custom:NAME without a function", { key: "custom:account" }],
    ["tiers by custom:NAME without a function", { tiers: byPlan }],
    ["a key jwt:CLAIM without jwt", { key: "jwt:sub" }],
    ["an empty match", { match: {} }],
    ["a cost that is a number", { cost: 5 }],
    ["a cost with a reserve that is a number", { cost: { reserve: 5 } }],
    ["the word request in count", { count: "request" }],
    ["fields of all rules", { ban: "1h", mode: "shadow", onError: "local", lease: false }],
  ])("may have %s", (_, fields) => {
    expect(faultsOf(programs(fields))).toEqual([]);
  });

  const counts = 'a rule with for: "programs" counts no HTTP request';
  const noEffect = (field: string) => `remove ${field}: ${counts}`;
  const field = (name: string, value: unknown, ...says: string[]): Refused => [
    `${name}: ${JSON.stringify(value)}`,
    programs({ [name]: value }),
    `rules[0].${name}`,
    ...says,
  ];
  refuses([
    field("match", { paths: ["/a"] }, 'got {"paths":["/a"]}', noEffect("match")),
    field("match", { except: { paths: ["/a"] } }, noEffect("match")),
    field("exempt", { headers: { "x-a": "secret" } }, "got an object", noEffect("exempt")),
    field("response", { status: 503 }, noEffect("response")),
    field("retryJitter", "10s", noEffect("retryJitter")),
    field(
      "cost",
      "header:x-cost",
      `got "header:x-cost"; write a whole number, or { reserve: 1200 }: ${counts}`,
    ),
    field("count", { status: [401] }, `got {"status":[401]}; ${noEffect("count")}`),
    field(
      "key",
      "param:id",
      'got "param:id"; a rule for programs has no paths, so write custom:id',
    ),
    ["for: an unknown word", programs({ for: "program" }), "rules[0].for", 'mean "programs"?'],
    ["for: http", programs({ for: "http" }), "rules[0].for", 'allowed: "all", "programs"'],
  ]);
});

describe("a copy of a configuration that defineConfig returned", () => {
  const config = defineConfig({
    rules: [{ name: "api", key: "custom:plan", limit: 5, window: "1m" }],
    jwt: { secret: "JWT" },
    custom: { keys: { plan } },
  });
  const { rules, jwt, custom } = config;
  const plain = [{ name: "b", limit: 5, window: "1m" }];

  test.each<[string, object]>([
    ["a spread", { ...config }],
    ["a spread with another prefix", { ...config, prefix: "b" }],
    ["a spread with one more rule", { ...config, rules: [...rules, ...plain] }],
    ["a spread with changed rules", { ...config, rules: rules.map((each) => ({ ...each })) }],
    ["a spread with plain rules", { ...config, rules: plain }],
    ["its rules", { rules }],
    ["its field jwt", { rules: plain, jwt }],
    ["its field custom", { rules: plain, custom }],
  ])("is refused: %s", (_, input) => {
    expect(faultsOf(input)).not.toEqual([]);
  });

  test("is accepted if all its values are valid input with the same meaning", () => {
    const simple = defineConfig({ rules: [], prefix: "a", timeoutMs: 50 });
    expect(defineConfig({ ...simple, rules: [] } as ConfigInput)).toEqual(simple);
  });

  test("is refused, but defineConfig returns the configuration itself unchanged", () => {
    expect(defineConfig(config as never)).toBe(config);
  });
});

describe("toConfig", () => {
  const input: ConfigInput = { rules: [{ name: "api", limit: 5, window: "1m" }] };

  test("returns a checked configuration unchanged", () => {
    const config = defineConfig(input);
    expect(toConfig(config)).toBe(config);
  });

  test("checks a plain object once", () => {
    expect(toConfig(input)).toBe(toConfig(input));
    expect(toConfig(input)).toEqual(defineConfig(input));
    expect(toConfig({ ...input })).not.toBe(toConfig(input));
  });

  test.each([undefined, null, 5, "rules", [], () => input, new Map()])(
    "throws a ConfigError for %o",
    (value) => {
      expect(() => toConfig(value as never)).toThrow(ConfigError);
    },
  );
});
