import { describe, expect, test, vi } from "vitest";
import { faultsIn } from "../../../src/config/define.ts";
import { shortFaultsOf } from "../../../src/config/faults.ts";
import { ConfigError, defineConfig } from "../../../src/config/index.ts";
import { parseRoute } from "../../../src/config/match.ts";
import { faultsOf, rule, withRule } from "./fixtures.ts";

const LIMIT = { limit: 5, window: "1m" };
const SECRET = "sk_live_SECRET9";

function errorOf(input: unknown): ConfigError {
  try {
    defineConfig(input as never);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("the configuration is valid");
}

function manyRules(count: number, fields: (index: number) => object) {
  return { rules: Array.from({ length: count }, (_, index) => fields(index)) };
}

describe("the faults of a large configuration", () => {
  test("are listed up to 500; one more element counts the others", () => {
    const { faults, message } = errorOf(
      manyRules(10_000, () => ({ name: "A", limit: -1, max: 5 })),
    );
    expect(faults).toHaveLength(501);
    expect(faults.at(-1)?.message).toMatch(/^and \d+ more; correct the listed faults first$/);
    expect(message).toContain("has more than 500 faults:");
    expect(message.length).toBeLessThan(500_000);
    const few = manyRules(500, (index) => rule({ name: `r${index}`, limit: -1 }));
    expect(errorOf(few).message).toContain("has 500 faults:");
    expect(faultsIn(few)).toHaveLength(500);
  });

  test("are listed up to 500 in a deployed Worker too", () => {
    const issue = { type: "never", message: "a", path: undefined } as never;
    expect(shortFaultsOf(Array(500).fill(issue))).toHaveLength(500);
    const faults = shortFaultsOf(Array(600).fill(issue));
    expect([faults.length, faults.at(-1)?.message]).toEqual([
      501,
      "and 100 more; correct the listed faults first",
    ]);
  });

  test("list at most 20 of the functions in custom.keys", () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `plan_${index}`);
    const keys = Object.fromEntries(names.map((name) => [name, () => "a"]));
    const rules = manyRules(10_000, (index) =>
      rule({ name: `r${index}`, key: `custom:x${index}` }),
    );
    const { faults, message } = errorOf({ ...rules, custom: { keys } });
    expect(faults[0]?.message).toContain("plan_19 and 9980 more");
    expect(message.length).toBeLessThan(500_000);
  });

  test("show at most 80 characters of a name", () => {
    const name = "n".repeat(100_000);
    for (const fields of [{ [name]: 1 }, { key: `custom:${name}` }, { key: `param:${name}` }]) {
      expect(errorOf(withRule(fields)).message.length).toBeLessThan(2000);
    }
  });

  test("come before the items of a list that is too long", () => {
    const read = vi.fn();
    const list = new Proxy(Array(10_001), {
      get(target, key) {
        if (key !== "length") read(key);
        return Reflect.get(target, key);
      },
    });
    expect(faultsOf({ rules: list })[0]?.message).toContain("there can be at most 10000 rules");
    expect(faultsOf(withRule({ match: { paths: list } }))[0]?.message).toContain(
      "at most 10000 items",
    );
    const items = read.mock.calls.filter(([key]) => /^\d+$/.test(String(key)));
    // The preview reads the first 20 items.
    expect(items.length).toBeLessThanOrEqual(2 * 20);
  });

  test("show the length of a long text, and no part of it", () => {
    const text = `https://user:${SECRET}${"/".repeat(400_000)}@a.example`;
    const { message } = errorOf({ rules: [], prefix: text });
    expect(message).toContain(`got a text of ${text.length} characters`);
    expect(message).not.toContain(SECRET);
    expect(errorOf({ rules: [], prefix: [text] }).message).toContain('got ["…"]');
  });

  test("do not include parameters of a route that is too long, which is not split", () => {
    const fields = (path: string) => withRule({ key: "param:a", match: { paths: [path] } });
    const pathsOf = (path: string) => faultsOf(fields(path)).map((fault) => fault.path);
    expect(pathsOf("/b")).toEqual(["rules[0].key"]);
    expect(pathsOf(`/${"{".repeat(100_000)}`)).toEqual(["rules[0].match.paths[0]"]);
  });

  test("include routes of more than 2048 characters", () => {
    expect(parseRoute(`/${"a".repeat(2047)}`)).toBeDefined();
    expect(parseRoute(`/${"a".repeat(2048)}`)).toBeUndefined();
    expect(parseRoute(`/${"{".repeat(100_000)}`)).toBeUndefined();
  });
});

test.for<[string, unknown]>([
  ["toJSON throws", { toJSON: () => fail() }],
  ["toJSON returns undefined", { toJSON: () => undefined }],
  ["toString throws", { toString: () => fail(), toJSON: () => undefined }],
  ["there is no prototype", Object.assign(Object.create(null), { toJSON: () => undefined })],
  ["it is a list of symbols", [Symbol("a")]],
])("a value leads to a fault even if %s", ([, value]) => {
  expect(errorOf({ rules: [], prefix: value }).faults).toHaveLength(1);
});

test.for<[string, unknown]>([
  ["a limit is a symbol", withRule({ shards: 2, limit: Symbol("a") })],
  ["a limit has no prototype", withRule({ shards: 2, limit: Object.create(null) })],
  ["a limit cannot become a number", withRule({ shards: 2, limit: { valueOf: () => fail() } })],
  ["a cost is a symbol", withRule({ cost: { from: "body:bytes", max: 5, default: Symbol("a") } })],
])("only a ConfigError is thrown if %s", ([, input]) => {
  expect(errorOf(input).faults.length).toBeGreaterThan(0);
  expect(faultsIn(input).length).toBeGreaterThan(0);
});

test("a rule with shards may have 150,000 tiers", { timeout: 120_000 }, () => {
  const limits = Object.fromEntries(Array.from({ length: 150_000 }, (_, at) => [`t${at}`, LIMIT]));
  const input = withRule({ shards: 6, tiers: { by: "jwt:plan", limits } });
  expect(faultsIn({ ...input, jwt: { jwks: "https://a.example" } })).toMatchObject([
    { path: "rules[0].shards", code: "conflict" },
  ]);
});

function fail(): never {
  throw new Error("thrown by the configuration");
}

describe("a fault does not show a secret", () => {
  test.for<[string, unknown]>([
    ["in the second alternative of a key", withRule({ key: `ip | header:x:${SECRET}` })],
    ["in place of jwt", { rules: [], jwt: SECRET }],
    ["in a list in place of jwt", { rules: [], jwt: [SECRET] }],
    ["as an algorithm", { rules: [], jwt: { secret: "A", alg: SECRET } }],
    ["as an issuer", { rules: [], jwt: { secret: "A", issuer: [SECRET] } }],
    ["in an object in place of the store", { rules: [], store: { token: SECRET } }],
    ["in an object of rules", { rules: { api: { adminToken: SECRET } } }],
    ["as a field of exempt", withRule({ exempt: { [SECRET]: true } })],
    ["in the name of a header", withRule({ exempt: { headers: { [`x-a ${SECRET}`]: "a" } } })],
    ["as an address", withRule({ exempt: { ips: [SECRET] } })],
    ["in place of a function", { rules: [], custom: { keys: { x: SECRET } } }],
    ["in place of custom", { rules: [], custom: SECRET }],
    ["as the name of a function", { rules: [], custom: { keys: { [`a-${SECRET}`]: () => "a" } } }],
    ["as a field of a tier", withRule(tiers({ a: { ...LIMIT, [SECRET]: 1 } }))],
    ["as a window of a tier", withRule(tiers({ a: { limit: 1, window: SECRET } }))],
    ["in place of the key of tiers", withRule({ tiers: { by: SECRET, limits: { a: LIMIT } } })],
  ])("%s", ([, input]) => {
    expect(errorOf(input).message).not.toContain("SECRET9");
  });

  test.for<[string, unknown]>([
    ['got "198.51.100.0/33"', withRule({ exempt: { ips: ["198.51.100.0/33"] } })],
    ['got "none"', { rules: [], jwt: { secret: "A", alg: "none" } }],
    ['got "1 minute"', withRule(tiers({ a: { limit: 1, window: "1 minute" } }))],
    ['got "plan"', withRule({ tiers: { by: "plan", limits: { a: LIMIT } } })],
  ])("but shows %s", ([given, input]) => {
    expect(errorOf(input).message).toContain(given);
  });
});

function tiers(limits: object) {
  return { tiers: { by: "header:x-plan", limits } };
}
