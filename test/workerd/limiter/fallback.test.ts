import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Config, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import type { CostOf } from "../../../src/limiter/cost.ts";
import { costOfHead } from "../../../src/limiter/cost.ts";
import type { DecideOptions } from "../../../src/limiter/counters.ts";
import type { Allowed } from "../../../src/limiter/decision.ts";
import type { NativeLimiter } from "../../../src/limiter/fallback.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import { type Store, StoreError } from "../../../src/stores/store.ts";
import { verdictOn } from "../../verdicts.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute. */
const NOW = 1_700_000_100_000;
const FAILURE = new StoreError("unreachable", "no connection");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

const LOCAL: RuleInput = { name: "api", limit: 8, window: "1m", onError: "local" };

/** Creates a limiter whose store fails, and functions that decide with this limiter. */
function limiterOf(
  rules: RuleInput[],
  nativeLimiter?: NativeLimiter,
  store: Store = failingStore(),
) {
  const config = defineConfig({ rules });
  const limiter = new Limiter(config, store, { nativeLimiter });
  const decide = (identity = "someone", options?: DecideOptions) =>
    limiter.decide(appliedRulesOf(config, identity), options);
  return {
    limiter,
    decide,
    appliedRules: (identity = "someone") => appliedRulesOf(config, identity),
    /**
     * Decides requests until one is not allowed. Returns the number of allowed requests, and the
     * decision on the request that is not allowed.
     */
    async exhaust(identity?: string, options?: DecideOptions) {
      for (let allowed = 0; allowed < 1000; allowed++) {
        const decision = await decide(identity, options);
        if (decision.outcome !== "allowed") return { allowed, decision };
      }
      throw new Error("All of 1000 requests were allowed.");
    },
  };
}

function appliedRulesOf({ rules }: Config, identity: string) {
  return rules.map((rule) => ({ rule, windows: rule.windows, identity }));
}

function failingStore(error: unknown = FAILURE): Store {
  const fail = () => Promise.reject(error);
  return { decide: (groups) => groups.map(fail), adjust: fail, reset: fail };
}

function nativeLimiterOf(reply: (key: string) => Promise<{ success: boolean }>) {
  const limit = vi.fn<NativeLimiter["limit"]>(({ key }) => reply(key));
  return { limit };
}

describe('a rule with onError: "local"', () => {
  it.each<[limit: number, localShare: number | undefined, allowed: number]>([
    [8, undefined, 2],
    [9, undefined, 3],
    [1, undefined, 1],
    [0, undefined, 0],
    [8, 1, 8],
    [8, 0.5, 4],
    [3, 0.001, 1],
    [100, 0.07, 7],
    [100, 0.29, 29],
  ])(
    "with limit %i and local share %d admits %i requests in a window",
    async (limit, share, allowed) => {
      const localShare = share === undefined ? {} : { localShare: share };
      const { exhaust } = limiterOf([{ ...LOCAL, limit, ...localShare }]);
      expect(await exhaust()).toMatchObject({ allowed, decision: { outcome: "limited" } });
      vi.setSystemTime(NOW + 60_000);
      expect(await exhaust()).toMatchObject({ allowed });
    },
  );

  it("gives a reserve back only in the window in which it was charged", async () => {
    const rule = {
      ...LOCAL,
      localShare: 1,
      cost: { reserve: 4, settle: "header:x-cost" },
    } as const;
    const { limiter, decide } = limiterOf([rule]);
    const first = (await decide()) as Allowed;
    vi.setSystemTime(NOW + 60_000);
    expect((await decide()).outcome).toBe("allowed");
    expect((await decide()).outcome).toBe("allowed");
    await limiter.chargeResponse(first, () => 0);
    expect((await decide()).outcome).toBe("limited");
  });

  it("counts each client separately", async () => {
    const { exhaust } = limiterOf([LOCAL]);
    expect(await exhaust("a")).toMatchObject({ allowed: 2 });
    expect(await exhaust("b")).toMatchObject({ allowed: 2 });
  });

  it("returns the store's failure and no quotas for a request that passes", async () => {
    const { decide } = limiterOf([LOCAL]);
    expect(await decide()).toEqual({
      outcome: "allowed",
      quotas: [],
      verdicts: [expect.objectContaining({ says: "admitted" })],
      reservationDelayMs: 0,
      storeFailure: {
        outcome: "undecided",
        cause: "unreachable",
        detail: "no connection",
        open: false,
      },
    });
  });

  it("returns the time until there is quota again, and the rule that denied the request", async () => {
    const { exhaust } = limiterOf([
      { ...LOCAL, name: "hourly", window: "1h" },
      { ...LOCAL, limit: 4 },
    ]);
    vi.setSystemTime(NOW + 20_000);
    const { allowed, decision } = await exhaust();
    expect(allowed).toBe(1);
    expect(decision).toMatchObject({
      outcome: "limited",
      retryAfterMs: 40_000,
      deniedBy: { appliedRule: { rule: { name: "api" } } },
      storeFailure: { cause: "unreachable" },
    });
  });

  it("admits one request that costs more than the share, but not more than the limit", async () => {
    const { exhaust } = limiterOf([LOCAL]);
    expect(await exhaust("a", { cost: 5 })).toMatchObject({ allowed: 1 });
    expect(await exhaust("b", { cost: 8 })).toMatchObject({ allowed: 1 });
    expect(await exhaust("c", { cost: 9 })).toMatchObject({ allowed: 0 });
    expect(await exhaust("a")).toMatchObject({ allowed: 0 });
  });

  it("counts every window, and all shards of a rule in one counter", async () => {
    const limits = [
      { limit: 100, window: "1m" },
      { limit: 12, window: "1h" },
    ];
    const { limit, window, ...rule } = { ...LOCAL, limits };
    expect(await limiterOf([rule]).exhaust()).toMatchObject({ allowed: 3 });
    expect(await limiterOf([{ ...LOCAL, shards: 4 }]).exhaust()).toMatchObject({ allowed: 2 });
  });

  it("neither rolls over quota nor reserves quota", async () => {
    const { exhaust } = limiterOf([{ ...LOCAL, capacity: 80, maxReserved: 80 }]);
    expect(await exhaust("someone", { reserve: true })).toMatchObject({ allowed: 2 });
    vi.setSystemTime(NOW + 600_000);
    expect(await exhaust("someone", { reserve: true })).toMatchObject({ allowed: 2 });
  });

  it("bans a client that exceeds the limit", async () => {
    const { exhaust, decide } = limiterOf([{ ...LOCAL, ban: "10m" }]);
    expect(await exhaust()).toMatchObject({ allowed: 2, decision: { retryAfterMs: 600_000 } });
    vi.setSystemTime(NOW + 599_000);
    expect(await decide()).toMatchObject({ outcome: "limited", retryAfterMs: 1000 });
    vi.setSystemTime(NOW + 600_000);
    expect(await decide()).toMatchObject({ outcome: "allowed" });
  });

  it("neither charges for a check nor calls the native limiter", async () => {
    const nativeLimiter = nativeLimiterOf(async () => ({ success: true }));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    for (let checks = 0; checks < 10; checks++) {
      expect(await decide("someone", { checkOnly: true })).toMatchObject({ outcome: "allowed" });
    }
    expect(nativeLimiter.limit).not.toHaveBeenCalled();
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("continues with its count if the store fails again in the same window", async () => {
    let isFailing = true;
    const store: Store = {
      ...failingStore(),
      decide: (groups) =>
        groups.map(async () => {
          if (isFailing) throw FAILURE;
          const tallies = [{ count: 1, resetMs: 60_000, banMs: 0 }];
          return { now: NOW, admitted: true, tallies };
        }),
    };
    const { decide, exhaust } = limiterOf([LOCAL], undefined, store);
    expect(await exhaust()).toMatchObject({ allowed: 2 });
    isFailing = false;
    expect(await decide()).toMatchObject({ outcome: "allowed", quotas: [{ remaining: 7 }] });
    isFailing = true;
    expect(await exhaust()).toMatchObject({ allowed: 0 });
  });

  it("denies a new client if the memory is full, and still admits clients that it counts", async () => {
    const limits = Array.from({ length: 8 }, (_, hour) => ({ limit: 80, window: `${hour + 1}h` }));
    const { limit, window, ...rule } = { ...LOCAL, limits };
    const { decide } = limiterOf([rule]);
    for (let client = 0; client < 12_500; client++) await decide(`client-${client}`);
    expect(await decide("newcomer")).toEqual({
      outcome: "undecided",
      cause: "memory-full",
      detail: "this isolate cannot count either",
      open: false,
    });
    expect(await decide("client-7")).toMatchObject({ outcome: "allowed" });
    vi.setSystemTime(NOW + 9 * 3_600_000);
    expect(await decide("newcomer")).toMatchObject({ outcome: "allowed" });
  });

  it("counts locally too if the error is not the store's", async () => {
    const { exhaust } = limiterOf([LOCAL], undefined, failingStore(new TypeError("secret")));
    const { allowed, decision } = await exhaust();
    expect(allowed).toBe(2);
    expect(decision).toMatchObject({ storeFailure: { cause: "internal", detail: "TypeError" } });
  });
});

describe("rules with different onError", () => {
  const open: RuleInput = { name: "open", limit: 1, window: "1m" };
  const closed: RuleInput = { name: "closed", limit: 100, window: "1m", onError: "closed" };

  it.each<[string, RuleInput[], object]>([
    ["open lets an undecided request pass", [open], { outcome: "undecided", open: true }],
    ["closed denies an undecided request", [closed], { outcome: "undecided", open: false }],
    ["local wins over open", [open, LOCAL], { outcome: "allowed", storeFailure: { open: false } }],
    ["closed wins over local", [LOCAL, closed], { outcome: "undecided", open: false }],
    [
      "closed wins over open and local",
      [open, LOCAL, closed],
      { outcome: "undecided", open: false },
    ],
    [
      "closed in shadow mode has no effect",
      [{ ...closed, mode: "shadow" }, LOCAL],
      { outcome: "allowed" },
    ],
    [
      "local in shadow mode is not counted locally",
      [{ ...LOCAL, mode: "shadow" }, open],
      { outcome: "undecided", open: true },
    ],
  ])("%s", async (_, rules, decision) => {
    expect(await limiterOf(rules).decide()).toMatchObject(decision);
  });

  it("a request is counted locally by all rules with local or by none, and by no other rule", async () => {
    const second: RuleInput = { ...LOCAL, name: "second", key: "global", limit: 12 };
    const { exhaust, decide } = limiterOf([open, LOCAL, second]);
    expect(await exhaust("a")).toMatchObject({
      allowed: 2,
      decision: { deniedBy: { appliedRule: { rule: { name: "api" } } } },
    });
    // The denied request took no quota of the rule `second`.
    expect(await decide("a")).toMatchObject({
      quotas: [
        { policy: "api", remaining: 0, violated: true },
        { policy: "second", remaining: 1, violated: false },
      ],
    });
  });
});

describe("a rule that is charged by the response", () => {
  const failures: RuleInput = { ...LOCAL, count: { status: [401] } };
  const response = (status: number) => ({ status, headers: new Headers() });

  it("is charged locally and not in the store if it was decided locally", async () => {
    const store = failingStore();
    const adjust = vi.spyOn(store, "adjust");
    const { limiter, decide } = limiterOf([failures], undefined, store);
    for (const status of [200, 200, 200, 401, 401]) {
      const decision = await decide();
      expect(decision).toMatchObject({ outcome: "allowed", verdicts: [{ says: "admitted" }] });
      const costOf: CostOf = (each) => costOfHead(each, response(status));
      expect(await limiter.chargeResponse(decision as Allowed, costOf)).toEqual([]);
    }
    expect(await decide()).toMatchObject({ outcome: "limited" });
    expect(adjust).not.toHaveBeenCalled();
  });

  it("is charged locally if the store fails to charge it, and the call rejects", async () => {
    const { limiter, decide, appliedRules } = limiterOf([{ ...failures, shards: 3 }]);
    for (let charges = 0; charges < 2; charges++) {
      const verdicts = appliedRules().map((appliedRule) => verdictOn(appliedRule, "admitted"));
      await expect(
        limiter.chargeResponse({ verdicts }, (each) => costOfHead(each, response(401))),
      ).rejects.toBe(FAILURE);
    }
    expect(await decide()).toMatchObject({ outcome: "limited" });
    expect(await decide("someone else")).toMatchObject({ outcome: "allowed" });
  });
});

describe("the native limiter", () => {
  it("denies for the longest possible period, and takes no local quota", async () => {
    let success = false;
    const nativeLimiter = nativeLimiterOf(async () => ({ success }));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    for (let denials = 0; denials < 10; denials++) {
      expect(await decide()).toMatchObject({
        outcome: "limited",
        retryAfterMs: 60_000,
        deniedBy: { appliedRule: { rule: { name: "api" } } },
        quotas: [{ violated: true, remaining: 0 }],
      });
    }
    success = true;
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("is called for each rule with local, with the rule's name and the identity", async () => {
    const nativeLimiter = nativeLimiterOf(async (key) => ({ success: !key.startsWith("second") }));
    const rules = [
      LOCAL,
      { ...LOCAL, name: "second" },
      { ...LOCAL, name: "open", onError: "open" },
    ];
    const { decide } = limiterOf(rules as RuleInput[], nativeLimiter);
    expect(await decide("abc")).toMatchObject({
      outcome: "limited",
      deniedBy: { appliedRule: { rule: { name: "second" } } },
    });
    expect(nativeLimiter.limit.mock.calls).toEqual([[{ key: "api:abc" }], [{ key: "second:abc" }]]);
  });

  it("is not called for a client that has no local quota left", async () => {
    const nativeLimiter = nativeLimiterOf(async () => ({ success: true }));
    const { exhaust } = limiterOf([LOCAL], nativeLimiter);
    await exhaust();
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(2);
  });

  it.each<[string, () => Promise<{ success: boolean }>]>([
    ["rejects", () => Promise.reject(new Error("no"))],
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
  ])("is ignored if it %s", async (_, reply) => {
    const { exhaust } = limiterOf([LOCAL], nativeLimiterOf(reply));
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("shares one deadline with the store if both do not answer", async () => {
    const hangingStore = { ...failingStore(), decide: () => [new Promise<never>(() => {})] };
    const nativeLimiter = nativeLimiterOf(() => new Promise(() => {}));
    const config = defineConfig({ timeoutMs: 200, rules: [LOCAL] });
    const limiter = new Limiter(config, hangingStore, { nativeLimiter });
    vi.useFakeTimers();
    const ended = vi.fn();
    const decision = limiter.decide(appliedRulesOf(config, "someone"));
    decision.then(ended);
    await vi.advanceTimersByTimeAsync(179);
    expect(nativeLimiter.limit).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1 + 19);
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(1);
    expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await decision).toMatchObject({
      outcome: "allowed",
      storeFailure: { cause: "timeout" },
    });
  });

  it("is called for the next request too, if this isolate was too busy to read its answer", async () => {
    const nativeLimiter = nativeLimiterOf(() => new Promise(() => {}));
    const { decide } = limiterOf([LOCAL], nativeLimiter);
    vi.useFakeTimers({ now: NOW });
    for (const calls of [1, 2]) {
      const decision = decide();
      await vi.advanceTimersByTimeAsync(0);
      expect(nativeLimiter.limit).toHaveBeenCalledTimes(calls);
      // The next timer is late by this time.
      vi.setSystemTime(Date.now() + 100);
      await vi.advanceTimersByTimeAsync(50);
      expect(await decision).toMatchObject({ outcome: "allowed" });
    }
  });

  it("delays one request if it does not answer, and is then not called for a second", async () => {
    const nativeLimiter = nativeLimiterOf(() => new Promise(() => {}));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    expect(await exhaust()).toMatchObject({ allowed: 2 });
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW + 1000);
    expect(await decide("another")).toMatchObject({ outcome: "allowed" });
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(2);
  });
});
