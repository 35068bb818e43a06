import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, inject, it, vi } from "vitest";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createStore } from "../../../src/stores/create-store.ts";
import { StoreError } from "../../../src/stores/store.ts";
import { shadowResultsOf } from "../../verdicts.ts";

const HOUR = 3_600_000;

beforeEach(() => {
  // No window ends during a test.
  vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / HOUR) * HOUR });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The bindings of each store, with leases and remembered denials, except for the memory store. */
const STORES = {
  memory: () => ({ kind: "memory" }) as const,
  "Durable Objects": () => ({ kind: "durable-object", namespace: env.COUNTERS }) as const,
  Redis: () => {
    const { restUrl, restToken } = inject("redis");
    return { kind: "upstash", url: restUrl, token: restToken } as const;
  },
};
type StoreName = keyof typeof STORES;
const REMOTE = ["Durable Objects", "Redis"] as const satisfies StoreName[];

/** Creates an isolate, and counts the calls to its store. */
function isolateOf(name: StoreName, rules: readonly RuleInput[]) {
  const calls = vi.fn();
  const prefix = crypto.randomUUID();
  const meter = { recordStoreCall: calls };
  const options = { clock: "store", prefix, timeoutMs: 10_000, meter } as const;
  const config = defineConfig({ rules: rules as ConfigInput["rules"] });
  const store = createStore(STORES[name](), options);
  const limiter = new Limiter(options, store);
  /** Decides a request of a client. @param keys the client's identity under a rule, if it differs */
  const decide = (keys: Readonly<Record<string, string>> = {}, tier = "") => {
    const applied = config.rules.map((rule): AppliedRule => {
      const windows = rule.tiers?.windows.get(tier) ?? rule.windows;
      return { rule, windows, identity: keys[rule.name] ?? "client" };
    });
    return limiter.decide(applied);
  };
  return { decide, calls, limiter, rules: config.rules, store };
}

const ONE_DAY = { limit: 3, window: "1d" } as const;
const OWN = { name: "own", ...ONE_DAY } as const;
const KEY = { name: "key", key: "header:x-api-key", limit: 99, window: "1d" } as const;

describe.each(REMOTE)("a denied client that makes up keys, over %s", (name) => {
  it.each<[string, RuleInput[]]>([
    ["with one window", [OWN, KEY]],
    ["after the other rule", [KEY, OWN]],
    [
      "without leases",
      [
        { ...OWN, lease: false },
        { ...KEY, lease: false },
      ],
    ],
    ["with several windows", [{ name: "own", limits: [ONE_DAY, { limit: 9, window: "1h" }] }, KEY]],
    ["with shards", [{ ...OWN, limit: 4, shards: 2 }, KEY]],
    ["with shards of the other rule", [OWN, { ...KEY, shards: 4 }]],
    [
      "with rollover",
      [
        { ...OWN, capacity: 5 },
        { ...KEY, capacity: 200 },
      ],
    ],
    ["with a cost", [{ ...OWN, cost: 2 }, KEY]],
    ["with a cost of 0 of the other rule", [OWN, { ...KEY, cost: 0 }]],
    ["with a ban", [{ ...OWN, ban: "1d" }, KEY]],
    ["with a ban of the other rule", [OWN, { ...KEY, ban: "1d" }]],
    ["with a rule that is charged by the response", [OWN, { ...KEY, count: { status: [401] } }]],
    ["with a mark", [OWN, { ...KEY, mode: "mark" }]],
    ["with several other rules", [KEY, OWN, { ...KEY, name: "second" }]],
  ])("causes no call to the store: %s", async (_, rules) => {
    const { decide, calls } = isolateOf(name, rules);
    const made = () => ({ key: crypto.randomUUID(), second: crypto.randomUUID() });
    // With shards, so many requests exhaust each of them, whatever they draw.
    for (let sent = 0; sent < 40; sent++) await decide(made());
    expect(await decide(made())).toMatchObject({
      outcome: "limited",
      deniedBy: { appliedRule: { rule: { name: "own" } } },
    });
    calls.mockClear();
    for (let sent = 0; sent < 360; sent++) {
      const decision = await decide(made());
      expect(decision).toMatchObject({ outcome: "limited", fromMemory: true });
    }
    expect(calls).not.toHaveBeenCalled();
  });

  it("causes few calls for a rule in shadow mode, and none after them", async () => {
    for (const own of [OWN, { ...OWN, limit: 0 }]) {
      vi.setSystemTime(Math.ceil(Date.now() / HOUR) * HOUR + HOUR);
      const { decide, calls } = isolateOf(name, [own, { ...KEY, mode: "shadow" }]);
      const send = async () => {
        const decision = await decide({ key: crypto.randomUUID() });
        await shadowResultsOf(decision);
        return decision.outcome;
      };
      for (let sent = 0; sent < 5; sent++) await send();
      calls.mockClear();
      for (let sent = 0; sent < 360; sent++) expect(await send()).toBe("limited");
      expect(calls.mock.calls.length).toBeLessThanOrEqual(20);
      expect(calls.mock.calls.length).toBeGreaterThan(0);
      calls.mockClear();
      vi.setSystemTime(Date.now() + 9999);
      for (let sent = 0; sent < 9; sent++) await send();
      expect(calls.mock.calls.length).toBeLessThanOrEqual(1);
    }
  });
});

describe.each(REMOTE)("a rule in shadow mode, over %s", (name) => {
  it("goes on counting requests that an enforced rule denies from memory", async () => {
    const { decide } = isolateOf(name, [OWN, { ...OWN, name: "trial", limit: 8, mode: "shadow" }]);
    const denials: boolean[] = [];
    for (let sent = 0; sent < 12; sent++) {
      const decision = await decide();
      denials.push((await shadowResultsOf(decision)).length > 0);
    }
    expect(denials).toEqual(Array.from({ length: 12 }, (_, index) => index >= 8));
  });
});

/** Two tiers with the same window, of which one rolls over, so that they have separate counters. */
const TIERS = {
  name: "plan",
  limit: 4,
  window: "1d",
  tiers: {
    by: "header:x-plan",
    limits: {
      plain: { limit: 400_000, window: "1d" },
      small: { limit: 2, window: "1d" },
      rolling: { limit: 1, window: "1d", capacity: 4 },
      slow: { limit: 2, window: "1d", capacity: 6 },
    },
  },
} as const satisfies RuleInput;
const ROLLING = ["rolling", "slow"];
const NAMES = ["plain", "small", "rolling", "slow"] as const;
const PAIRS = NAMES.flatMap((from) => NAMES.filter((to) => to !== from).map((to) => [from, to]));

describe.each(Object.keys(STORES) as StoreName[])("two tiers over %s", (name) => {
  describe.each<[string, Partial<RuleInput>]>([
    ["with leases", {}],
    ["without leases", { lease: false }],
    ["with a cost", { cost: 2 }],
  ])("%s", (_, fields) => {
    it.each(PAIRS)("have separate counters unless both roll over: %s and %s", async (from, to) => {
      const { decide, limiter, rules } = isolateOf(name, [{ ...TIERS, ...fields } as RuleInput]);
      const [rule] = rules;
      const windows = rule?.tiers?.windows.get(from as string) as AppliedRule["windows"];
      const applied = { rule, windows, identity: "client" } as AppliedRule;
      const usedUp = windows[0]?.capacity as number;
      // Uses up the tier's quota, so that its denials are remembered.
      await limiter.decide([applied], { cost: usedUp });
      for (let sent = 0; sent < 3; sent++) await decide({}, from);
      expect((await decide({}, from)).outcome).toBe("limited");
      const isSeparate = ROLLING.includes(from as string) !== ROLLING.includes(to as string);
      const capacity = rule?.tiers?.windows.get(to as string)?.[0]?.capacity as number;
      const cost = typeof rule?.cost === "number" ? rule.cost : 1;
      const decision = await decide({}, to);
      const isAdmitted = isSeparate || usedUp + cost <= capacity;
      expect(decision.outcome).toBe(isAdmitted ? "allowed" : "limited");
      if (isSeparate && "quotas" in decision) {
        expect(decision.quotas[0]?.remaining).toBe(capacity - cost);
      }
    });
  });

  it.each(PAIRS)(
    "leave each other's counters after a reset or refund: %s and %s",
    async (from, to) => {
      if (ROLLING.includes(from as string) === ROLLING.includes(to as string)) return;
      const { decide, limiter, rules } = isolateOf(name, [TIERS]);
      const [rule] = rules;
      const appliedAs = (tier: string) =>
        ({ rule, windows: rule?.tiers?.windows.get(tier), identity: "client" }) as AppliedRule;
      await decide({}, from);
      await limiter.refund(appliedAs(to as string), 1);
      await limiter.clients.reset(appliedAs(to as string));
      const decision = await decide({}, from);
      const capacity = appliedAs(from as string).windows[0]?.capacity as number;
      expect("quotas" in decision && decision.quotas[0]?.remaining).toBe(capacity - 2);
    },
  );
});

it.each(PAIRS)(
  "tiers have the same counters in an isolate that counts alone: %s and %s",
  async (from, to) => {
    const away = () => Promise.reject(new StoreError("unreachable", "away"));
    const config = defineConfig({ rules: [{ ...TIERS, onError: "local", localShare: 1 }] });
    const limiter = new Limiter(config, {
      decide: (groups) => groups.map(away),
      adjust: away,
      reset: away,
    });
    const [rule] = config.rules;
    const decide = (tier: string) =>
      limiter.decide([
        { rule, windows: rule?.tiers?.windows.get(tier), identity: "c" } as AppliedRule,
      ]);
    const [first, second] = [from, to] as [string, string];
    const limitOf = (tier: string) => rule?.tiers?.windows.get(tier)?.[0]?.limit as number;
    const usedUp = Math.min(limitOf(first), 9);
    for (let sent = 0; sent < usedUp; sent++) expect((await decide(first)).outcome).toBe("allowed");
    const isSeparate = ROLLING.includes(first) !== ROLLING.includes(second);
    const isAdmitted = isSeparate || usedUp < limitOf(second);
    expect((await decide(second)).outcome).toBe(isAdmitted ? "allowed" : "limited");
  },
);

describe("1,000 requests of one client at once", () => {
  const trial = { name: "trial", limit: 5, window: "1d", mode: "shadow" } as const;
  const plan = { name: "plan", limit: 20, window: "1d", mode: "mark" } as const;
  const beside: [string, RuleInput[]][] = [
    ["no other rule", []],
    ["a rule in shadow mode", [trial]],
    ["a rule that marks", [plan]],
    ["a rule in shadow mode and one that marks", [trial, plan]],
  ];

  it.each(beside)("take few calls and commands beside %s", async (_, others) => {
    const rules = [{ name: "all", limit: 50, window: "1d" } as const, ...others];
    const { decide, calls } = isolateOf("Redis", rules);
    const decisions = await Promise.all(Array.from({ length: 1000 }, () => decide()));
    expect(decisions.filter(({ outcome }) => outcome === "allowed")).toHaveLength(50);
    const commands = calls.mock.calls.reduce((sum, [call]) => sum + call.commands, 0);
    expect(calls.mock.calls.length).toBeLessThanOrEqual(10);
    expect(commands).toBeLessThanOrEqual(80);
  });
});
