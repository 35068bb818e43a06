import { ConfigError, type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { toConfig } from "../../../src/config/define.ts";
import { faultsOf, rule } from "./fixtures.ts";

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
