import { describe, expect, it } from "vitest";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import { explaining, explainRule } from "./explaining.ts";

it("calls each function once, and verifies the token once", async () => {
  let calls = 0;
  const rule = { limit: 1, window: "1m", key: "custom:tenant", cost: "custom:size" } as const;
  const explain = explaining({
    rules: [
      { name: "a", ...rule },
      { name: "b", ...rule },
    ],
    custom: {
      keys: { tenant: () => `t${++calls}` },
      costs: { size: () => ++calls },
    },
  });
  const { rules } = await explain();
  expect(calls).toBe(2);
  expect(rules[0]?.client).toBe(rules[1]?.client);
});

describe("the tier and the cost", () => {
  const limits = { pro: { limit: 50, window: "1m" }, free: { limit: 2, window: "1m" } } as const;

  it.each([
    ["header:x-plan", { "x-plan": "pro" }, "pro"],
    ["header:x-key", { "x-key": "free" }, "#2"],
    ["header:x-plan", { "x-plan": "other" }, undefined],
  ])("is named unless its name may be a credential: %s", async (by, headers, tier) => {
    const explained = await explainRule({ tiers: { by, limits } }, { headers });
    expect(explained.tier).toBe(tier);
  });

  it.each<[RuleInput["cost"], Record<string, string>, number, string]>([
    [3, {}, 3, "cost: 3"],
    ["custom:size", { "x-size": "4" }, 4, "custom:size"],
    ["custom:size", {}, 1, "custom:size is unknown, because it is no whole number"],
    ["body:bytes", { "content-length": "9" }, 9, "body:bytes"],
    ["body:bytes", { "transfer-encoding": "chunked" }, 5, "the request does not have it"],
    [{ reserve: 2, settle: "header:x-cost" }, {}, 2, "reserve: 2; settled by header:x-cost"],
    ["header:x-cost", {}, 1, "nothing is charged before the response"],
  ])("has its source: %j %j", async (cost, headers, expected, source) => {
    const custom: ConfigInput["custom"] = {
      costs: { size: (request) => Number(request.headers.get("x-size") ?? "x") },
    };
    const explained = await explainRule({ cost }, { headers }, { custom });
    expect(explained.cost).toBe(expected);
    expect(explained.costSource).toContain(source);
  });
});
