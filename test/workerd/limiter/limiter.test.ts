import { describe, expect, it, vi } from "vitest";
import { type Config, type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { counterId } from "../../../src/engine/counter.ts";
import { costOfHead } from "../../../src/limiter/cost.ts";
import { allWindowsOf } from "../../../src/limiter/counters.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../src/stores/store.ts";
import { answersFrom } from "../../suite/verdict.ts";
import { shadowResultsOf } from "../../verdicts.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute, but not of an hour. */
const NOW = 1_700_000_100_000;

const HOUR = 3_600_000;

function limiterOf(
  rules: ConfigInput["rules"],
  store: Store = atTime(NOW),
  options: Omit<ConfigInput, "rules"> = {},
) {
  const config = defineConfig({ ...options, rules });
  const limiter = new Limiter(config, store);
  return (...identities: string[]) => limiter.decide(appliedRulesOf(config, identities));
}

function appliedRulesOf({ rules }: Config, identities: string[] = []) {
  return rules.map((rule, index) => {
    return { rule, windows: rule.windows, identity: identities[index] ?? "someone" };
  });
}

/** Returns a memory store whose clock always returns `now`. */
function atTime(now: number): Store {
  const store = createMemoryStore();
  return {
    decide: (groups, given) => store.decide(groups, given ?? now),
    adjust: (counters, given) => store.adjust(counters, given ?? now),
    reset: (counters, given) => store.reset(counters, given ?? now),
  };
}

describe("removing what a client has used", () => {
  const config = defineConfig({
    store: "memory",
    rules: [
      {
        name: "tiered",
        limits: [
          { limit: 9, window: "1h" },
          { limit: 99, window: "1d" },
        ],
        tiers: {
          by: "header:x-plan",
          limits: {
            pro: { limit: 90, window: "1h" },
            gold: { limit: 900, window: "1h", capacity: 1000 },
            daily: { limit: 5, window: "1d" },
          },
        },
      },
    ],
  });

  it.each(["reset", "liftBan"] as const)(
    "%s names each counter of every tier once",
    async (method) => {
      const removed: string[] = [];
      const limiter = new Limiter(config, {
        ...createMemoryStore(),
        reset: async (counters) => void removed.push(...counters.map(counterId)),
      });
      const [applied] = appliedRulesOf(config) as [AppliedRule];
      await limiter.clients[method]({ ...applied, windows: allWindowsOf(applied.rule) });
      expect(removed).toEqual([
        "weir:tiered:1h:someone",
        "weir:tiered:1d:someone",
        "weir:tiered:1h:someone+",
      ]);
    },
  );
});

function failing(error: unknown): Store {
  const fail = () => Promise.reject(error);
  return { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };
}

describe("a decision", () => {
  it.each([-3, 1, 400])(
    "ends a window at its end, if the store's clock is %i ms ahead",
    async (ahead) => {
      vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
      const config = defineConfig({
        store: "durable-object",
        rules: [{ name: "bytes", limit: 9, window: "1h", cost: "header:x-cost" }],
      });
      const store = createMemoryStore();
      const limiter = new Limiter(config, {
        decide: (groups, now) => store.decide(groups, now ?? NOW + ahead),
        adjust: (counters, now) => store.adjust(counters, now ?? NOW + ahead),
        reset: (counters, now) => store.reset(counters, now ?? NOW + ahead),
      });
      const decision = (await limiter.decide(appliedRulesOf(config))) as Allowed;
      const quotas = await limiter.chargeResponse(decision, () => 3);
      vi.useRealTimers();
      expect(quotas).toMatchObject([{ remaining: 6, resetAt: HOUR * Math.ceil(NOW / HOUR) }]);
    },
  );

  it("has the quota left of every policy, and the end of its window", async () => {
    const decide = limiterOf([
      { name: "login", limit: 5, window: "1m" },
      {
        name: "search",
        limits: [
          { limit: 33, window: "1m" },
          { limit: 2000, window: "1h" },
        ],
      },
    ]);
    expect(await decide()).toEqual({
      outcome: "allowed",
      fromMemory: true,
      verdicts: [
        expect.objectContaining({ says: "admitted", cost: 1 }),
        expect.objectContaining({ says: "admitted", cost: 1 }),
      ],
      reservationDelayMs: 0,
      quotas: [
        quota("login", 5, 60_000, 4, 60_000),
        quota("search/1m", 33, 60_000, 32, 60_000),
        quota("search/1h", 2000, 3_600_000, 1999, 2_700_000),
      ],
    });
  });

  it("is one call, with all enforced rules in one group", async () => {
    const store = atTime(NOW);
    const decideInStore = vi.spyOn(store, "decide");
    const decide = limiterOf(
      [
        { name: "a", limit: 5, window: "1m" },
        { name: "shadowed", limit: 5, window: "1m", mode: "shadow" },
        {
          name: "b",
          limits: [
            { limit: 5, window: 1 },
            { limit: 5, window: "1h" },
          ],
        },
      ],
      store,
    );
    await decide("alice", "bob", "carol");
    expect(decideInStore).toHaveBeenCalledTimes(1);
    expect(decideInStore.mock.calls[0]?.[0].map((group) => group.map(({ key }) => key))).toEqual([
      ["weir:a:1m:alice", "weir:b:1s:carol", "weir:b:1h:carol"],
      ["weir:shadowed:1m:bob"],
    ]);
  });

  it("is limited if one policy is used up, until every denying policy resets", async () => {
    const decide = limiterOf([
      { name: "wide", limit: 50, window: "1d" },
      {
        name: "narrow",
        limits: [
          { limit: 1, window: "1m" },
          { limit: 1, window: "1h" },
        ],
      },
    ]);
    await decide();
    expect(await decide()).toMatchObject({
      outcome: "limited",
      retryAfterMs: 2_700_000,
      deniedBy: { appliedRule: { rule: { name: "narrow" } } },
      quotas: [
        { policy: "wide", remaining: 49, violated: false },
        { policy: "narrow/1m", remaining: 0, violated: true },
        { policy: "narrow/1h", remaining: 0, violated: true },
      ],
    });
  });

  it('uses the time of the store, or of the isolate with clock: "edge"', async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW + 7 });
    const store = atTime(NOW);
    const rules = [{ name: "login", limit: 5, window: "1m" }];
    const resetOf = async (options: Omit<ConfigInput, "rules">) => {
      const decision = await limiterOf(rules, store, options)();
      return decision.outcome === "allowed" ? decision.quotas[0]?.resetMs : undefined;
    };
    expect(await resetOf({ clock: "store" })).toBe(60_000);
    expect(await resetOf({ clock: "edge" })).toBe(59_993);
    vi.useRealTimers();
  });
});

describe("a rule in shadow mode", () => {
  const shadowed = { name: "shadowed", limit: 1, window: "1m", mode: "shadow" } as const;

  it("never denies, and reports requests that it would have denied", async () => {
    const decide = limiterOf([shadowed]);
    const results = [];
    for (let sent = 0; sent < 2; sent++) {
      const decision = (await decide()) as Allowed;
      expect(decision).toMatchObject({ outcome: "allowed", quotas: [] });
      results.push(await shadowResultsOf(decision));
    }
    expect(results).toMatchObject([[], [{ policy: "shadowed", violated: true }]]);
  });

  it("counts separately from an enforced rule, regardless of that rule's decision", async () => {
    const decide = limiterOf([
      { name: "enforced", limit: 1, window: "1m" },
      { ...shadowed, limit: 2 },
    ]);
    const results = [];
    for (let sent = 0; sent < 3; sent++) {
      const decision = await decide();
      results.push([decision.outcome, await shadowResultsOf(decision)]);
    }
    expect(results).toMatchObject([
      ["allowed", []],
      ["limited", []],
      ["limited", [{ policy: "shadowed" }]],
    ]);
  });

  it.each([
    ["fails", () => Promise.reject(new StoreError("error-reply", "no")), "error-reply"],
    ["fails with a bug", () => Promise.reject(new TypeError("secret")), "internal"],
  ])("that %s alone does not affect the enforced rule", async (_, decideLater, cause) => {
    const store = atTime(NOW);
    const decide = limiterOf([{ name: "enforced", limit: 1, window: "1m" }, shadowed], {
      ...store,
      decide: ([enforced = []], now) => [...store.decide([enforced], now), decideLater()],
    });
    for (const outcome of ["allowed", "limited"]) {
      const decision = await decide();
      expect(decision.outcome).toBe(outcome);
      const shadow = await shadowResultsOf(decision);
      expect(shadow).toMatchObject([{ policy: "shadowed", cause }]);
      expect(JSON.stringify(shadow)).not.toContain("secret");
    }
  });

  it("that is decided later reports its denials later", async () => {
    const store = atTime(NOW);
    const decide = limiterOf([{ name: "enforced", limit: 1, window: "1m" }, shadowed], {
      ...store,
      decide: ([enforced = [], shadow = []], now) => {
        const isDecided = Promise.withResolvers<void>();
        setTimeout(isDecided.resolve);
        const [later] = store.decide([shadow], now);
        return [
          ...store.decide([enforced], now),
          isDecided.promise.then(() => later as Promise<Answer>),
        ];
      },
    });
    const results = [];
    for (let request = 0; request < 2; request++) {
      results.push(await shadowResultsOf(await decide()));
    }
    expect(results).toMatchObject([[], [{ policy: "shadowed", violated: true }]]);
  });

  it("is charged for a response by a separate call, which cannot fail an enforced rule", async () => {
    const charged = { limit: 5, window: "1m", count: { status: [401] } } as const;
    const store = atTime(NOW);
    const config = defineConfig({
      rules: [
        { name: "shadowed", mode: "shadow", ...charged },
        { name: "enforced", ...charged },
      ],
    });
    const limiter = new Limiter(config, {
      ...store,
      async adjust(counters, now) {
        if (counters.some(({ key }) => key.includes("shadowed"))) return new Promise(() => {});
        return store.adjust(counters, now);
      },
    });
    const response = { status: 401, headers: new Headers() };
    const decision = await limiter.decide(appliedRulesOf(config));
    expect(
      await limiter.chargeResponse(decision as Allowed, (each) => costOfHead(each, response)),
    ).toMatchObject([{ policy: "enforced", remaining: 4 }]);
  });

  it("lets requests pass while the store fails, regardless of its onError", async () => {
    const decide = limiterOf(
      [{ ...shadowed, onError: "closed" }],
      failing(new StoreError("error-reply", "no")),
    );
    const decision = (await decide()) as Allowed;
    expect(decision.outcome).toBe("allowed");
    expect(await shadowResultsOf(decision)).toMatchObject([{ cause: "error-reply" }]);
  });
});

const DENIED: Answer = { now: NOW, admitted: false, tallies: [] };

describe("an undecided request", () => {
  const open = { name: "open", limit: 5, window: "1m" } as const;
  const closed = { name: "closed", limit: 5, window: "1m", onError: "closed" } as const;

  it.each([
    ["all rules have open", [open, { ...open, name: "b" }], true],
    ["one rule has closed", [open, closed], false],
  ])("passes unless a rule has onError closed: %s", async (_, rules, expected) => {
    const decide = limiterOf(rules, failing(new StoreError("unreachable", "no connection")));
    expect(await decide()).toEqual({
      outcome: "undecided",
      cause: "unreachable",
      detail: "no connection",
      open: expected,
    });
  });

  it("has the cause invalid-reply if a store denies although every counter has quota left", async () => {
    const tallies = [{ count: 1, resetMs: 60_000, banMs: 0 }];
    const verdict = { now: NOW, groups: [{ admitted: false, tallies }] };
    const decide = limiterOf([closed], {
      ...failing(undefined),
      decide: (groups) => answersFrom(groups, verdict),
    });
    expect(await decide()).toMatchObject({
      outcome: "undecided",
      cause: "invalid-reply",
      open: false,
    });
  });

  it.each([
    ["fails", () => Promise.reject(new StoreError("timeout", "late")), "timeout"],
    ["is denied although it has quota left", () => Promise.resolve(DENIED), "invalid-reply"],
  ])("does not include a mark rule that %s", async (_, answerMark, cause) => {
    const tallies = [{ count: 1, resetMs: 60_000, banMs: 0 }];
    const soft = { name: "plan", limit: 5, window: "1m", mode: "mark" } as const;
    const decide = limiterOf([soft, closed], {
      ...failing(undefined),
      decide: () => [Promise.resolve({ now: NOW, admitted: true, tallies }), answerMark()],
    });
    expect(await decide()).toMatchObject({
      outcome: "allowed",
      quotas: [{ policy: "closed" }],
      verdicts: [{ says: "admitted" }, { says: "undecided", failure: { cause } }],
    });
  });

  it("passes a request to which only mark rules apply", async () => {
    const soft = { name: "plan", limit: 5, window: "1m", mode: "mark" } as const;
    expect(await limiterOf([soft], failing(new Error("bug")))()).toMatchObject({
      outcome: "allowed",
      verdicts: [{ says: "undecided", failure: { cause: "internal" } }],
    });
  });

  it.each([new Error("bug"), "text", null, undefined])(
    "is the result of any error: %o",
    async (thrown) => {
      const decide = limiterOf([closed], failing(thrown));
      expect(await decide()).toMatchObject({
        outcome: "undecided",
        cause: "internal",
        open: false,
      });
    },
  );
});

function quota(
  policy: string,
  limit: number,
  windowMs: number,
  remaining: number,
  resetMs: number,
) {
  const resetAt = NOW + resetMs;
  const never = { violated: false, reservationDelayMs: 0 };
  return { policy, limit, windowMs, remaining, resetMs, resetAt, retryAfterMs: 0, ...never };
}
