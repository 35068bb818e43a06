import { type ConfigInput, defineConfig } from "edge-weir/config";
import { describe, expect, test } from "vitest";
import { faultsOf, rule } from "./fixtures.ts";

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
});

describe("the functions for costs", () => {
  test("are kept in Maps by name", () => {
    const config = defineConfig({ rules: [], custom });
    expect(config.custom?.costs).toEqual(new Map(Object.entries(custom.costs)));
    expect(config.custom?.settle).toEqual(new Map(Object.entries(custom.settle)));
  });
});

describe("count", () => {
  const status = [200];
  const settle = "custom:usage";

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
});
