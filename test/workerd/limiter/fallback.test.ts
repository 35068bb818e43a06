import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Config, type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import type { DecideOptions } from "../../../src/limiter/counters.ts";
import { Limiter } from "../../../src/limiter/limiter.ts";
import type { NativeLimiter } from "../../../src/limiter/native-limiter.ts";
import type { Store } from "../../../src/stores/store.ts";
import { StoreError } from "../../../src/stores/store-error.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute. */
const NOW = 1_700_000_100_000;
const AWAY = new StoreError("unreachable", "no connection");

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

type RuleInput = ConfigInput["rules"][number];

const LOCAL: RuleInput = { name: "api", limit: 8, window: "1m", onError: "local" };

/** A limiter whose store is away; and what its decisions come to. */
function limiterOf(rules: RuleInput[], nativeLimiter?: NativeLimiter, store: Store = away()) {
  const config = defineConfig({ rules });
  const limiter = new Limiter(config, store, nativeLimiter);
  const decide = (identity = "someone", ask?: DecideOptions) =>
    limiter.decide(subjectsOf(config, identity), ask);
  return {
    limiter,
    decide,
    subjects: (identity = "someone") => subjectsOf(config, identity),
    /** How many requests in a row are allowed before one is not, and what becomes of that one. */
    async exhaust(identity?: string, ask?: DecideOptions) {
      for (let allowed = 0; allowed < 1000; allowed++) {
        const decision = await decide(identity, ask);
        if (decision.outcome !== "allowed") return { allowed, decision };
      }
      throw new Error("There is no end to it.");
    },
  };
}

function subjectsOf({ rules }: Config, identity: string) {
  return rules.map((rule) => ({ rule, windows: rule.windows, identity }));
}

function away(error: unknown = AWAY): Store {
  const fail = () => Promise.reject(error);
  return { decide: fail, adjust: fail, reset: fail };
}

function nativeLimiterOf(answer: (key: string) => Promise<{ success: boolean }>) {
  const limit = vi.fn<NativeLimiter["limit"]>(({ key }) => answer(key));
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
  ])("of %i, with a local share of %d, lets %i pass in a window", async (limit, share, allowed) => {
    const localShare = share === undefined ? {} : { localShare: share };
    const { exhaust } = limiterOf([{ ...LOCAL, limit, ...localShare }]);
    expect(await exhaust()).toMatchObject({ allowed, decision: { outcome: "limited" } });
    vi.setSystemTime(NOW + 60_000);
    expect(await exhaust()).toMatchObject({ allowed });
  });

  it("counts each client by itself", async () => {
    const { exhaust } = limiterOf([LOCAL]);
    expect(await exhaust("a")).toMatchObject({ allowed: 2 });
    expect(await exhaust("b")).toMatchObject({ allowed: 2 });
  });

  it("tells no figures of a request that passes, but why it was decided here", async () => {
    const { decide } = limiterOf([LOCAL]);
    expect(await decide()).toEqual({
      outcome: "allowed",
      quotas: [],
      shadow: [],
      reservationDelayMs: 0,
      storeFailure: {
        outcome: "undecided",
        cause: "unreachable",
        detail: "no connection",
        open: false,
      },
    });
  });

  it("says when there is room again, and which rule denied", async () => {
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
      rule: { name: "api" },
      storeFailure: { cause: "unreachable" },
    });
  });

  it("has room for a request that costs more than the share, as long as there is a whole limit", async () => {
    const { exhaust } = limiterOf([LOCAL]);
    expect(await exhaust("a", { cost: 5 })).toMatchObject({ allowed: 1 });
    expect(await exhaust("b", { cost: 8 })).toMatchObject({ allowed: 1 });
    expect(await exhaust("c", { cost: 9 })).toMatchObject({ allowed: 0 });
    expect(await exhaust("a")).toMatchObject({ allowed: 0 });
  });

  it("counts all windows, and the shards of a rule as one", async () => {
    const limits = [
      { limit: 100, window: "1m" },
      { limit: 12, window: "1h" },
    ];
    const { limit, window, ...rule } = { ...LOCAL, limits };
    expect(await limiterOf([rule]).exhaust()).toMatchObject({ allowed: 3 });
    expect(await limiterOf([{ ...LOCAL, shards: 4 }]).exhaust()).toMatchObject({ allowed: 2 });
  });

  it("lets nothing roll over, and nothing be reserved", async () => {
    const { exhaust } = limiterOf([{ ...LOCAL, capacity: 80, maxReserved: 80 }]);
    expect(await exhaust("someone", { reserve: true })).toMatchObject({ allowed: 2 });
    vi.setSystemTime(NOW + 600_000);
    expect(await exhaust("someone", { reserve: true })).toMatchObject({ allowed: 2 });
  });

  it("keeps a client banned that was over", async () => {
    const { exhaust, decide } = limiterOf([{ ...LOCAL, ban: "10m" }]);
    expect(await exhaust()).toMatchObject({ allowed: 2, decision: { retryAfterMs: 600_000 } });
    vi.setSystemTime(NOW + 599_000);
    expect(await decide()).toMatchObject({ outcome: "limited", retryAfterMs: 1000 });
    vi.setSystemTime(NOW + 600_000);
    expect(await decide()).toMatchObject({ outcome: "allowed" });
  });

  it("is asked for room without being charged, nor calling the native limiter", async () => {
    const nativeLimiter = nativeLimiterOf(async () => ({ success: true }));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    for (let asked = 0; asked < 10; asked++) {
      expect(await decide("someone", { checkOnly: true })).toMatchObject({ outcome: "allowed" });
    }
    expect(nativeLimiter.limit).not.toHaveBeenCalled();
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("goes on where it was when the store goes away again in the same window", async () => {
    let isAway = true;
    const store: Store = {
      ...away(),
      decide: async (groups) => {
        if (isAway) throw AWAY;
        const tallies = [{ count: 1, resetMs: 60_000, banMs: 0 }];
        return { now: NOW, groups: groups.map(() => ({ admitted: true, tallies })) };
      },
    };
    const { decide, exhaust } = limiterOf([LOCAL], undefined, store);
    expect(await exhaust()).toMatchObject({ allowed: 2 });
    isAway = false;
    expect(await decide()).toMatchObject({ outcome: "allowed", quotas: [{ remaining: 7 }] });
    isAway = true;
    expect(await exhaust()).toMatchObject({ allowed: 0 });
  });

  it("is as strict as closed when there is no place for one more client, but for those it knows", async () => {
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

  it("counts here too when the fault is Weir's own", async () => {
    const { exhaust } = limiterOf([LOCAL], undefined, away(new TypeError("secret")));
    const { allowed, decision } = await exhaust();
    expect(allowed).toBe(2);
    expect(decision).toMatchObject({ storeFailure: { cause: "internal", detail: "TypeError" } });
  });
});

describe("among rules that disagree about an undecided request", () => {
  const open: RuleInput = { name: "open", limit: 1, window: "1m" };
  const closed: RuleInput = { name: "closed", limit: 100, window: "1m", onError: "closed" };

  it.each<[string, RuleInput[], object]>([
    ["open lets it pass", [open], { outcome: "undecided", open: true }],
    ["closed denies it", [closed], { outcome: "undecided", open: false }],
    ["local wins over open", [open, LOCAL], { outcome: "allowed", storeFailure: { open: false } }],
    ["closed wins over local", [LOCAL, closed], { outcome: "undecided", open: false }],
    ["closed wins over all", [open, LOCAL, closed], { outcome: "undecided", open: false }],
    [
      "one in shadow mode has no say",
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

  it("only those that are local are counted locally, and all or none of them", async () => {
    const second: RuleInput = { ...LOCAL, name: "second", key: "global", limit: 12 };
    const { exhaust, decide } = limiterOf([open, LOCAL, second]);
    expect(await exhaust("a")).toMatchObject({ allowed: 2, decision: { rule: { name: "api" } } });
    // A denied request has taken nothing of the other rule's quota.
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

  it("is charged here when it was decided here, and the store is not asked", async () => {
    const store = away();
    const adjust = vi.spyOn(store, "adjust");
    const { limiter, decide, subjects } = limiterOf([failures], undefined, store);
    for (const status of [200, 200, 200, 401, 401]) {
      expect(await decide()).toMatchObject({ outcome: "allowed" });
      expect(await limiter.chargeResponse(subjects(), response(status), true)).toEqual([]);
    }
    expect(await decide()).toMatchObject({ outcome: "limited" });
    expect(adjust).not.toHaveBeenCalled();
  });

  it("is charged here when the store went away in between, and says so", async () => {
    const { limiter, decide, subjects } = limiterOf([{ ...failures, shards: 3 }]);
    for (let failed = 0; failed < 2; failed++) {
      await expect(limiter.chargeResponse(subjects(), response(401))).rejects.toBe(AWAY);
    }
    expect(await decide()).toMatchObject({ outcome: "limited" });
    expect(await decide("someone else")).toMatchObject({ outcome: "allowed" });
  });
});

describe("the native limiter", () => {
  it("denies what is below it, for the longest period it may have, and takes nothing", async () => {
    let success = false;
    const nativeLimiter = nativeLimiterOf(async () => ({ success }));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    for (let denied = 0; denied < 10; denied++) {
      expect(await decide()).toMatchObject({
        outcome: "limited",
        retryAfterMs: 60_000,
        rule: { name: "api" },
        quotas: [{ violated: true, remaining: 0 }],
      });
    }
    success = true;
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("is asked for each rule that is local, by the rule and who is counted", async () => {
    const nativeLimiter = nativeLimiterOf(async (key) => ({ success: !key.startsWith("second") }));
    const rules = [
      LOCAL,
      { ...LOCAL, name: "second" },
      { ...LOCAL, name: "open", onError: "open" },
    ];
    const { decide } = limiterOf(rules as RuleInput[], nativeLimiter);
    expect(await decide("abc")).toMatchObject({ outcome: "limited", rule: { name: "second" } });
    expect(nativeLimiter.limit.mock.calls).toEqual([[{ key: "api:abc" }], [{ key: "second:abc" }]]);
  });

  it("is not asked about who has no room here anyway", async () => {
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
  ])("that %s is as good as none", async (_, answer) => {
    const { exhaust } = limiterOf([LOCAL], nativeLimiterOf(answer));
    expect(await exhaust()).toMatchObject({ allowed: 2 });
  });

  it("and a store that both hang take no longer than the deadline together", async () => {
    const hanging = { ...away(), decide: () => new Promise<never>(() => {}) };
    const nativeLimiter = nativeLimiterOf(() => new Promise(() => {}));
    const config = defineConfig({ timeoutMs: 200, rules: [LOCAL] });
    const limiter = new Limiter(config, hanging, nativeLimiter);
    vi.useRealTimers();
    const timers = vi.spyOn(globalThis, "setTimeout");
    expect(await limiter.decide(subjectsOf(config, "someone"))).toMatchObject({
      outcome: "allowed",
      storeFailure: { cause: "timeout" },
    });
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(1);
    const waits = timers.mock.calls.map(([, ms = 0]) => ms);
    timers.mockRestore();
    expect(waits).toEqual([180, 20]);
  });

  it("that hangs holds a request up for a moment, and is then left alone for a second", async () => {
    const nativeLimiter = nativeLimiterOf(() => new Promise(() => {}));
    const { decide, exhaust } = limiterOf([LOCAL], nativeLimiter);
    expect(await exhaust()).toMatchObject({ allowed: 2 });
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(1);
    vi.setSystemTime(NOW + 1000);
    expect(await decide("another")).toMatchObject({ outcome: "allowed" });
    expect(nativeLimiter.limit).toHaveBeenCalledTimes(2);
  });
});
