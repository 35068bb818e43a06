import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import type { Override } from "../../../src/overrides/override.ts";
import { MINUTE, NOW } from "../../suite/driver.ts";
import { EVERY_STORE } from "../../suite/every-store.ts";
import { randomOf } from "../../suite/random.ts";
import { runs } from "../../suite/runs.ts";
import { comparing } from "./comparing.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  vi.spyOn(Math, "random").mockReturnValue(0.4);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const DAY_IN_PARIS = { timeZone: "Europe/Paris" } as const;

/** Rules with tiers whose windows have the same lengths, so that they share counters in the store. */
const RULES: readonly RuleInput[] = [
  shared("rising", [1, 4], { more: [2, 6], most: [5, 30] }),
  shared("falling", [5, 30], { less: [2, 6], least: [1, 4] }),
  shared("mixed", [1, 4], { plain: [3, 3], same: [1, 9] }),
  { ...shared("daily", [1, 4], { most: [5, 30] }, "day"), ...DAY_IN_PARIS },
  { ...shared("parts", [4, 16], { most: [40, 80] }), shards: 4 },
  { ...shared("quiet", [1, 3], { most: [5, 30] }), mode: "shadow" },
  { ...shared("banned", [1, 3], { most: [5, 30] }), ban: "1m" },
];

const NAMES = RULES.map(({ name }) => name);

type Numbers = readonly [limit: number, capacity: number];

/** Returns a rule whose tiers have a limit and a capacity of their own. */
function shared(
  name: string,
  own: Numbers,
  tiers: Readonly<Record<string, Numbers>>,
  window: "1m" | "day" = "1m",
): RuleInput {
  const limitsOf = ([limit, capacity]: Numbers) => ({ limit, window, capacity });
  const limits = Object.fromEntries(
    Object.entries(tiers).map(([tier, each]) => [tier, limitsOf(each)]),
  );
  const match = { paths: [`/${name}`] };
  return {
    name,
    ...limitsOf(own),
    cost: "custom:size",
    match,
    tiers: { by: "header:x-plan", limits },
  } as RuleInput;
}

const CUSTOM: ConfigInput["custom"] = {
  costs: { size: ({ headers }) => Number(headers.get("x-cost")) },
};
const PLANS = ["", "more", "most", "less", "least", "plain", "same"];

describe.each(Object.keys(EVERY_STORE))("an explanation over %s", (storeName) => {
  it.each<[effect: string, overrides: Override[]]>([
    ["without an override", []],
    [
      "with overrides",
      NAMES.map((rule) => ({
        rule,
        effect: { factor: 2 },
        reason: "sale",
        by: "ops",
        setAt: NOW,
        expiresAt: NOW + 10_000 * MINUTE,
      })),
    ],
  ])("reckons a counter that tiers share by the client's own tier: %s", async (_, overrides) => {
    const random = randomOf(36);
    const compare = comparing(
      { rules: RULES, custom: CUSTOM, denialLog: 0 },
      { storeName, overrides },
    );
    const seen = new Set<string>();
    for (let index = 0; index < runs(600); index++) {
      const name = NAMES[random(NAMES.length)];
      const { outcome } = await compare({
        method: "GET",
        url: `https://api.example.com/${name}`,
        headers: {
          "cf-connecting-ip": `203.0.113.${random(2)}`,
          "x-plan": PLANS[random(PLANS.length)] as string,
          "x-cost": String(1 + random(4)),
        },
        cf: {},
      });
      seen.add(outcome);
      if (random(3) === 0) vi.setSystemTime(Date.now() + random(4) * MINUTE);
      if (random(40) === 0) vi.setSystemTime(Date.now() + random(3) * 1440 * MINUTE);
    }
    expect([...seen].sort()).toEqual(["allowed", "limited"]);
  });
});
