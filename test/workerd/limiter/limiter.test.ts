import { describe, expect, it, vi } from "vitest";
import { type Config, type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import type { Store } from "../../../src/stores/store.ts";
import { StoreError } from "../../../src/stores/store-error.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute and of no hour. */
const NOW = 1_700_000_100_000;

function limiterOf(
  rules: ConfigInput["rules"],
  store: Store = atTime(NOW),
  options: Omit<ConfigInput, "rules"> = {},
) {
  const config = defineConfig({ ...options, rules });
  const limiter = new Limiter(config, store);
  return (...identities: string[]) => limiter.decide(subjectsOf(config, identities));
}

function subjectsOf({ rules }: Config, identities: string[] = []) {
  return rules.map((rule, index) => {
    return { rule, windows: rule.windows, identity: identities[index] ?? "someone" };
  });
}

/** A memory store whose own clock stands still. */
function atTime(now: number): Store {
  const store = createMemoryStore();
  return {
    decide: (groups, given) => store.decide(groups, given ?? now),
    adjust: (counters, given) => store.adjust(counters, given ?? now),
    reset: (counters, given) => store.reset(counters, given ?? now),
  };
}

function failing(error: unknown): Store {
  const fail = () => Promise.reject(error);
  return { decide: fail, adjust: fail, reset: fail };
}

describe("a decision", () => {
  it("says of every policy what is left of it and until when", async () => {
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
      shadow: [],
      reservationDelayMs: 0,
      quotas: [
        quota("login", 5, 60_000, 4, 60_000),
        quota("search/1m", 33, 60_000, 32, 60_000),
        quota("search/1h", 2000, 3_600_000, 1999, 2_700_000),
      ],
    });
  });

  it("is made in one call, with all that is enforced in one group", async () => {
    const store = atTime(NOW);
    const asked = vi.spyOn(store, "decide");
    const decide = limiterOf(
      [
        { name: "a", limit: 5, window: "1m" },
        { name: "trial", limit: 5, window: "1m", mode: "shadow" },
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
    expect(asked).toHaveBeenCalledTimes(1);
    expect(asked.mock.calls[0]?.[0].map((group) => group.map(({ key }) => key))).toEqual([
      ["weir:a:1m:alice", "weir:b:1s:carol", "weir:b:1h:carol"],
      ["weir:trial:1m:bob"],
    ]);
  });

  it("is limited when one policy is used up, until the last that denied resets", async () => {
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
      rule: { name: "narrow" },
      quotas: [
        { policy: "wide", remaining: 49, violated: false },
        { policy: "narrow/1m", remaining: 0, violated: true },
        { policy: "narrow/1h", remaining: 0, violated: true },
      ],
    });
  });

  it("takes the time from the store, or from the edge when that is to be the clock", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: NOW + 7 });
    const store = atTime(NOW);
    const rules = [{ name: "login", limit: 5, window: "1m" }];
    const resetOf = async (options: Omit<ConfigInput, "rules">) => {
      const decision = await limiterOf(rules, store, options)();
      return decision.outcome === "allowed" ? decision.quotas[0]?.resetMs : undefined;
    };
    expect(await resetOf({ clock: "redis" })).toBe(60_000);
    expect(await resetOf({ clock: "edge" })).toBe(59_993);
    vi.useRealTimers();
  });
});

describe("a rule in shadow mode", () => {
  const trial = { name: "trial", limit: 1, window: "1m", mode: "shadow" } as const;

  it("never denies, and says when it would have", async () => {
    const decide = limiterOf([trial]);
    expect(await decide()).toMatchObject({ outcome: "allowed", quotas: [], shadow: [] });
    expect(await decide()).toMatchObject({
      outcome: "allowed",
      quotas: [],
      shadow: [{ policy: "trial", violated: true }],
    });
  });

  it("counts on its own beside a live rule, whatever that decides", async () => {
    const decide = limiterOf([
      { name: "live", limit: 1, window: "1m" },
      { ...trial, limit: 2 },
    ]);
    expect(await decide()).toMatchObject({ outcome: "allowed", shadow: [] });
    expect(await decide()).toMatchObject({ outcome: "limited", shadow: [] });
    expect(await decide()).toMatchObject({ outcome: "limited", shadow: [{ policy: "trial" }] });
  });

  it.each([
    ["fails", () => Promise.reject(new StoreError("error-reply", "no")), "error-reply"],
    ["fails with a bug", () => Promise.reject(new TypeError("secret")), "internal"],
  ])("that %s alone is undecided alone", async (_, decideLater, cause) => {
    const store = atTime(NOW);
    const decide = limiterOf([{ name: "live", limit: 1, window: "1m" }, trial], {
      ...store,
      async decide([live = []], now) {
        const { groups } = await store.decide([live], now);
        const later = decideLater();
        later.catch(() => {});
        return { now: NOW, groups: [...groups, { admitted: false, tallies: [], later }] };
      },
    });
    for (const outcome of ["allowed", "limited"]) {
      const decision = await decide();
      expect(decision.outcome).toBe(outcome);
      const shadow = "shadow" in decision ? await Promise.all(decision.shadow) : [];
      expect(shadow.flat()).toMatchObject([{ policy: "trial", cause }]);
      expect(JSON.stringify(shadow)).not.toContain("secret");
    }
  });

  it("that is decided later says later when it would have denied", async () => {
    const store = atTime(NOW);
    const decide = limiterOf([{ name: "live", limit: 1, window: "1m" }, trial], {
      ...store,
      async decide([live = [], shadow = []], now) {
        const { groups } = await store.decide([live], now);
        const later = store.decide([shadow], now);
        return { now: NOW, groups: [...groups, { admitted: false, tallies: [], later }] };
      },
    });
    const results = [];
    for (let request = 0; request < 2; request++) {
      const decision = await decide();
      results.push("shadow" in decision && (await Promise.all(decision.shadow)).flat());
    }
    expect(results).toMatchObject([[], [{ policy: "trial", violated: true }]]);
  });

  it("is charged for a response by a call of its own, which no enforced rule fails with", async () => {
    const later = { limit: 5, window: "1m", count: { status: [401] } } as const;
    const store = atTime(NOW);
    const config = defineConfig({
      rules: [
        { name: "trial", mode: "shadow", ...later },
        { name: "live", ...later },
      ],
    });
    const limiter = new Limiter(config, {
      ...store,
      async adjust(counters, now) {
        if (counters.some(({ key }) => key.includes("trial"))) return new Promise(() => {});
        return store.adjust(counters, now);
      },
    });
    const response = { status: 401, headers: new Headers() };
    expect(await limiter.chargeResponse(subjectsOf(config), response)).toMatchObject([
      { policy: "live", remaining: 4 },
    ]);
  });

  it("lets undecided requests pass, however it would treat them when enforced", async () => {
    const decide = limiterOf(
      [{ ...trial, onError: "closed" }],
      failing(new StoreError("error-reply", "no")),
    );
    expect(await decide()).toMatchObject({ outcome: "undecided", open: true });
  });
});

describe("a decision that cannot be made", () => {
  const open = { name: "open", limit: 5, window: "1m" } as const;
  const closed = { name: "closed", limit: 5, window: "1m", onError: "closed" } as const;

  it.each([
    ["all of its rules are open", [open, { ...open, name: "b" }], true],
    ["one of them is closed", [open, closed], false],
  ])("passes or not: %s", async (_, rules, expected) => {
    const decide = limiterOf(rules, failing(new StoreError("unreachable", "no connection")));
    expect(await decide()).toEqual({
      outcome: "undecided",
      cause: "unreachable",
      detail: "no connection",
      open: expected,
    });
  });

  it("is nonsense when a store denies though every counter has room", async () => {
    const tallies = [{ count: 1, resetMs: 60_000, banMs: 0 }];
    const verdict = { now: NOW, groups: [{ admitted: false, tallies }] };
    const decide = limiterOf([closed], { ...failing(undefined), decide: async () => verdict });
    expect(await decide()).toMatchObject({
      outcome: "undecided",
      cause: "invalid-reply",
      open: false,
    });
  });

  it.each([new Error("bug"), "text", null, undefined])("is no throw: %o", async (thrown) => {
    const decide = limiterOf([closed], failing(thrown));
    expect(await decide()).toMatchObject({ outcome: "undecided", cause: "internal", open: false });
  });
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
