import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { MAX_AGE_MS, withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { type Answer, type Store, StoreError } from "../../../../src/stores/store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { answersFrom, verdictOf } from "../../../suite/verdict.ts";

/** The store's clock minus this isolate's, in milliseconds. */
let skewMs: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
  skewMs = 0;
});

afterEach(() => {
  vi.useRealTimers();
});

function at(pastMs: number): void {
  vi.setSystemTime(NOW + pastMs);
}

/** Returns an answer without its time. `isCached`: its counts come from the cache. */
function shown({ admitted, tallies }: Answer) {
  const isCached = tallies.some((tally) => tally?.isUncertain);
  const states = tallies.map((tally) => {
    if (!tally) return undefined;
    const { isUncertain: _, ...state } = tally;
    return state;
  });
  return { admitted, tallies: states, ...(isCached && { isCached }) };
}

/** Creates a denial cache over a memory store with its own clock. */
function setUp(maxCounters?: number) {
  const memory = createMemoryStore();
  const innerStore: Store = {
    decide: (groups, now, unused) => memory.decide(groups, now ?? Date.now() + skewMs, unused),
    adjust: (counters, now, unused) => memory.adjust(counters, now ?? Date.now() + skewMs, unused),
    reset: (counters, now) => memory.reset(counters, now ?? Date.now() + skewMs),
  };
  const { decide: decideElsewhere, adjust: adjustElsewhere, reset: resetElsewhere } = innerStore;
  const decideSpy = vi.spyOn(innerStore, "decide");
  const store = withDenialCache(innerStore, maxCounters);
  const decide = async (...group: Demand[]) => {
    const { groups } = await verdictOf(store.decide([group]));
    return shown(groups[0] as Answer);
  };
  /** Runs an action. @returns the number of calls to the store that it makes */
  const callsOf = async (action: () => Promise<unknown>) => {
    const before = decideSpy.mock.calls.length;
    await action();
    return decideSpy.mock.calls.length - before;
  };
  /** Charges all quota left directly in the store, so that the cache does not see it. */
  const exhaust = async (quota: Demand) => {
    const { groups } = await verdictOf(decideElsewhere([[{ ...quota, cost: 0 }]]));
    const left = quota.ceiling - (groups[0]?.tallies[0]?.count ?? 0);
    await adjustElsewhere([{ ...quota, cost: left }]);
  };
  return {
    store,
    innerStore,
    decideSpy,
    decide,
    callsOf,
    exhaust,
    adjustElsewhere,
    resetElsewhere,
  };
}

describe("a denial", () => {
  it("comes from memory for the second request, with the store's figures", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    const first = await decide(quota);
    expect(first).toEqual({ admitted: false, tallies: [{ count: 5, resetMs: 60_000, banMs: 0 }] });
    at(1500);
    expect(await callsOf(() => decide(quota))).toBe(0);
    expect(await decide(quota)).toEqual({
      admitted: false,
      isCached: true,
      tallies: [{ count: 5, resetMs: 58_500, banMs: 0 }],
    });
  });

  it("is not cached by the admission that uses up the quota", async () => {
    const { decide, callsOf } = setUp();
    const quota = counter({ limit: 1 });
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("is cached as a count, so that the store decides a smaller cost", async () => {
    const { decide, callsOf, adjustElsewhere } = setUp();
    const quota = counter({ limit: 5 });
    await adjustElsewhere([{ ...quota, cost: 3 }]);
    expect((await decide({ ...quota, cost: 3 })).admitted).toBe(false);
    expect(await callsOf(() => decide({ ...quota, cost: 3 }))).toBe(0);
    expect(await callsOf(() => decide({ ...quota, cost: 4 }))).toBe(0);
    // A cost of 2 fits, and then no quota is left.
    expect((await decide({ ...quota, cost: 2 })).admitted).toBe(true);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("is decided by the store again after the limit was raised, but not after it was lowered", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter({ limit: 5 });
    await exhaust(quota);
    await decide(quota);
    expect(await callsOf(() => decide({ ...quota, limit: 4, ceiling: 4 }))).toBe(0);
    expect((await decide({ ...quota, limit: 6, ceiling: 6 })).admitted).toBe(true);
    expect(await callsOf(() => decide({ ...quota, limit: 6, ceiling: 6 }))).toBe(0);
  });

  it("comes from memory for a check, but not for a request without a cost", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    expect(await callsOf(() => decide({ ...quota, checkOnly: true, neverBans: true }))).toBe(0);
    expect(await callsOf(() => decide({ ...quota, cost: 0 }))).toBe(1);
  });

  it("is cached for a limit of 0 and for a cost above the limit", async () => {
    const { decide, callsOf } = setUp();
    for (const quota of [counter({ limit: 0 }), counter({ limit: 5, cost: 6 })]) {
      expect(await callsOf(() => decide(quota))).toBe(1);
      expect(await callsOf(() => decide(quota))).toBe(0);
    }
  });

  it("of one counter does not deny another counter", async () => {
    const { decide, exhaust } = setUp();
    const names = ["__proto__", "constructor", "hasOwnProperty", "a", "a:", "a:1m", "a:1m:b"];
    const quotas = names.map((key) => counter({ key, limit: 1 }));
    for (const [index, quota] of quotas.entries()) {
      expect((await decide(quota)).admitted, quota.key).toBe(true);
      await exhaust(quota);
      expect((await decide(quota)).admitted, quota.key).toBe(false);
      for (const next of quotas.slice(index + 1)) {
        expect((await decide({ ...next, checkOnly: true })).admitted, next.key).toBe(true);
      }
    }
  });
});

describe("a cached denial is valid", () => {
  it("for exactly ten seconds", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    at(MAX_AGE_MS - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(MAX_AGE_MS);
    expect(await callsOf(() => decide(quota))).toBe(1);
    // The answer to that call is valid for ten more seconds.
    at(2 * MAX_AGE_MS - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("for no longer if it is used often", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    for (let pastMs = 0; pastMs < MAX_AGE_MS; pastMs += 100) {
      at(pastMs);
      expect(await callsOf(() => decide(quota))).toBe(0);
    }
    at(MAX_AGE_MS);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it.each([0, 20_000, -20_000])(
    "until the window's end by the store's clock, which differs by %i ms",
    async (ms) => {
      skewMs = ms;
      const { decide, callsOf, exhaust } = setUp();
      const quota = counter({ limit: 1 });
      const end = 60_000 - ms;
      at(end - 5000);
      await exhaust(quota);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ resetMs: 5000 }] });
      at(end - 1);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ resetMs: 1 }] });
      expect(await callsOf(() => decide(quota))).toBe(0);
      at(end);
      expect((await decide(quota)).admitted).toBe(true);
    },
  );

  it("only at times after it was received, if the clock goes back", async () => {
    const { decide, callsOf, exhaust } = setUp();
    const quota = counter();
    at(1000);
    await exhaust(quota);
    await decide(quota);
    at(999);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("for no longer than ten seconds, also if the clock goes back by a part of them", async () => {
    const { decide, exhaust, resetElsewhere } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    await resetElsewhere([quota]);
    at(MAX_AGE_MS - 1);
    expect((await decide(quota)).admitted).toBe(false);
    at(1000);
    expect((await decide(quota)).admitted).toBe(true);
  });

  it("by the caller's clock if the caller passes the time", async () => {
    const { store, callsOf } = setUp();
    const quota = counter({ limit: 0 });
    const callsAt = (pastMs: number) =>
      callsOf(() => verdictOf(store.decide([[quota]], NOW + pastMs)));
    expect(await callsAt(55_000)).toBe(1);
    expect(await callsAt(59_999)).toBe(0);
    expect(await callsAt(60_000)).toBe(1);
    // At 59,999 ms, the earlier window is current again. The denial of the later window is not
    // valid in the earlier window, so the store denies again. The new denial is valid until 60,000
    // ms.
    expect(await callsAt(59_999)).toBe(1);
    expect(await callsAt(59_999 + MAX_AGE_MS - 1)).toBe(1);
  });

  /** Makes a call that takes 40 ms to arrive, and whose answer takes 60 ms. */
  async function slowDenial(quota: Demand) {
    const { store, innerStore, decide, exhaust, callsOf, decideSpy } = setUp();
    await exhaust(quota);
    const decideDirectly = innerStore.decide;
    decideSpy.mockImplementationOnce((...args) => {
      vi.setSystemTime(Date.now() + 40);
      const decided = verdictOf(decideDirectly(...args));
      const arrived = decided.finally(() => vi.setSystemTime(Date.now() + 60));
      return answersFrom(args[0], arrived);
    });
    await decide(quota);
    return { store, decide, callsOf };
  }

  it("until the earliest possible end of the window", async () => {
    const quota = counter({ limit: 1 });
    at(58_000);
    const { decide, callsOf } = await slowDenial(quota);
    // The store decided 40 ms after the call was sent, when 1960 ms were left of the window.
    at(59_959);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(59_960);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("with a wait that is never too short, and too long at most by the time that the answer took", async () => {
    const quota = counter({ limit: 1 });
    at(58_000);
    const { store } = await slowDenial(quota);
    at(59_900);
    const { now, groups } = await verdictOf(store.decide([[quota]]));
    expect(now).toBe(NOW + 59_840);
    expect(groups[0]?.tallies[0]?.resetMs).toBe(160);
  });
});

describe("a refund or a reset", () => {
  it("takes effect at once in its own isolate", async () => {
    const { store, decide, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    await store.adjust([{ ...quota, cost: -1 }]);
    expect((await decide(quota)).admitted).toBe(true);
    expect((await decide(quota)).admitted).toBe(false);
    await store.reset([quota]);
    expect((await decide(quota)).admitted).toBe(true);
  });

  it.each(["refund", "reset"] as const)(
    "by another isolate takes effect after ten seconds: a %s",
    async (operation) => {
      const { decide, exhaust, adjustElsewhere, resetElsewhere } = setUp();
      const quota = counter();
      await exhaust(quota);
      await decide(quota);
      if (operation === "refund") await adjustElsewhere([{ ...quota, cost: -1 }]);
      else await resetElsewhere([quota]);
      at(MAX_AGE_MS - 1);
      expect((await decide(quota)).admitted).toBe(false);
      at(MAX_AGE_MS);
      expect((await decide(quota)).admitted).toBe(true);
    },
  );

  it("removes the cached counter even if a reset fails", async () => {
    const { store, innerStore, decide, callsOf, exhaust } = setUp();
    const quota = counter();
    await exhaust(quota);
    await decide(quota);
    vi.spyOn(innerStore, "reset").mockRejectedValueOnce(new Error("away"));
    await expect(store.reset([quota])).rejects.toThrow("away");
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("removes an answer recorded during a reset", async () => {
    const { store, innerStore, decide, exhaust, resetElsewhere } = setUp();
    const quota = counter();
    await exhaust(quota);
    vi.spyOn(innerStore, "reset").mockImplementationOnce(async (counters) => {
      expect((await decide(quota)).admitted).toBe(false);
      await resetElsewhere(counters);
    });
    await store.reset([quota]);
    expect((await decide(quota)).admitted).toBe(true);
  });

  it("leaves other cached counters", async () => {
    const { store, decide, callsOf } = setUp();
    const [one, other] = [counter({ limit: 0 }), counter({ limit: 0 })];
    await decide(one);
    await decide(other);
    await store.reset([one]);
    await store.adjust([{ ...one, cost: -1 }]);
    expect(await callsOf(() => decide(other))).toBe(0);
  });
});

describe("a ban", () => {
  const banned = (fields: Partial<Demand> = {}) =>
    counter({ limit: 1, windowMs: 10_000, ban: bans(50_000), ...fields });

  it("is started by the store, and later denials come from memory with the time left", async () => {
    const { decide, callsOf } = setUp();
    const login = banned();
    await decide(login);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 50_000 }] });
    at(3000);
    expect(await callsOf(() => decide(login))).toBe(0);
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 47_000, resetMs: 7000 }] });
    // The count may differ in the next window, so the store is called once.
    at(10_000);
    expect(await callsOf(() => decide(login))).toBe(1);
    expect(await callsOf(() => decide(login))).toBe(0);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 40_000 }] });
  });

  it("ends at exactly the right millisecond", async () => {
    const { decide } = setUp();
    const login = banned({ ban: bans(15_000) });
    await decide(login);
    await decide(login);
    at(10_001);
    await decide(login);
    at(14_999);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 1 }] });
    at(15_000);
    expect((await decide(login)).admitted).toBe(true);
  });

  it("that has ended within the window is started again by the store", async () => {
    const { decide, callsOf } = setUp();
    const login = banned({ windowMs: 60_000, ban: bans(2000) });
    await decide(login);
    await decide(login);
    at(1999);
    expect(await callsOf(() => decide(login))).toBe(0);
    at(2000);
    expect(await callsOf(() => decide(login))).toBe(1);
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 2000 }] });
  });

  it("is started although a check was denied before", async () => {
    const { decide } = setUp();
    const login = banned({ limit: 0 });
    const check = { ...login, checkOnly: true, neverBans: true };
    expect(await decide(check)).toMatchObject({ admitted: false, tallies: [{ banMs: 0 }] });
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 50_000 }] });
    expect(await decide(check)).toMatchObject({ tallies: [{ banMs: 50_000 }] });
  });

  it("is started although another counter of the group denies from memory", async () => {
    const { decide, callsOf } = setUp();
    const [exhausted, login] = [counter({ limit: 0 }), banned({ limit: 1 })];
    await decide(exhausted, login);
    // With quota left for the login, no ban is due, so the denial comes from memory.
    expect(await callsOf(() => decide(exhausted, login))).toBe(0);
    // Without quota left for the login, the ban is due.
    const over = { ...login, cost: 2 };
    expect(await decide(exhausted, over)).toMatchObject({ tallies: [{}, { banMs: 50_000 }] });
    expect(await callsOf(() => decide(exhausted, over))).toBe(0);
  });

  it("is not started for a counter that is not cached, while another counter denies from memory", async () => {
    const { decide, callsOf } = setUp();
    const exhausted = counter({ limit: 0 });
    await decide(exhausted);
    // Otherwise each new key would cause a call.
    for (let key = 0; key < 9; key++) {
      expect(await callsOf(() => decide(exhausted, banned({ limit: 0 })))).toBe(0);
    }
  });

  it("denies a request with a cost of 0 from memory, but not a read", async () => {
    const { decide, callsOf } = setUp();
    const login = banned({ limit: 0 });
    const free = { ...login, cost: 0, neverBans: true };
    await decide(login);
    expect(await callsOf(() => decide(free))).toBe(0);
    expect(await decide(free)).toMatchObject({ admitted: false, tallies: [{ banMs: 50_000 }] });
    expect(await callsOf(() => decide({ ...free, checkOnly: true }))).toBe(1);
  });
});

describe("a denial of several counters", () => {
  it("reports all counters that the store has reported", async () => {
    const { decide, callsOf } = setUp();
    const group = [counter({ limit: 9 }), counter({ limit: 1 }), counter({ limit: 7 })];
    await decide(...group);
    const fromStore = await decide(...group);
    expect(await callsOf(() => decide(...group))).toBe(0);
    expect(await decide(...group)).toEqual({ ...fromStore, isCached: true });
    expect(fromStore.tallies.map((tally) => tally?.count)).toEqual([1, 1, 1]);
  });

  it.each<[string, (exhausted: Demand) => Demand[]]>([
    ["before the exhausted one", (exhausted) => [counter(), exhausted]],
    ["after the exhausted one", (exhausted) => [exhausted, counter()]],
    ["that costs 0", (exhausted) => [counter({ cost: 0 }), exhausted]],
    ["that costs more than its limit", (exhausted) => [counter({ cost: 9 }), exhausted]],
    ["with a ban", (exhausted) => [counter({ ban: bans(1000) }), exhausted]],
    ["that rolls over", (exhausted) => [counter({ rollsOver: true, ceiling: 9 }), exhausted]],
    ["in every place", (exhausted) => [counter(), counter(), exhausted, counter()]],
  ])("needs no store for a counter that is not cached: %s", async (_, groupOf) => {
    const { decide, callsOf } = setUp();
    const exhausted = counter({ limit: 1 });
    await decide(exhausted);
    expect(await callsOf(() => decide(...groupOf(exhausted)))).toBe(1);
    for (let sent = 0; sent < 360; sent++) {
      const group = groupOf(exhausted);
      expect(await callsOf(() => decide(...group))).toBe(0);
      const tallies = group.map((each) => (each === exhausted ? { count: 1 } : undefined));
      const answer = await decide(...group);
      expect(answer).toMatchObject({ admitted: false, isCached: true });
      expect(answer.tallies.map((tally) => tally && { count: tally.count })).toEqual(tallies);
    }
    at(MAX_AGE_MS);
    expect(await callsOf(() => decide(...groupOf(exhausted)))).toBe(1);
  });

  it("does not come from memory for a counter whose key is shared but that rolls over", async () => {
    const { decide, exhaust, store } = setUp();
    const plain = counter({ limit: 1_000_000 });
    const rolling = { ...plain, limit: 1, ceiling: 10, rollsOver: true };
    for (const [used, other] of [
      [plain, rolling],
      [rolling, plain],
    ] as const) {
      await exhaust(used);
      expect((await decide(used)).admitted).toBe(false);
      expect(await decide(other)).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
      expect((await decide(used)).admitted).toBe(false);
      await store.reset([used, other]);
    }
  });

  it("charges no counter when it comes from memory", async () => {
    const { decide } = setUp();
    const [api, exhausted] = [counter(), counter({ limit: 0 })];
    for (let request = 0; request < 9; request++) await decide(api, exhausted);
    expect(await decide({ ...api, cost: 0 })).toMatchObject({ tallies: [{ count: 0 }] });
  });

  it("reports the latest count that the store has reported", async () => {
    const { decide, callsOf } = setUp();
    const [api, exhausted] = [counter({ limit: 9 }), counter({ limit: 0 })];
    await decide(api, exhausted);
    await decide(api);
    await decide(api);
    expect(await callsOf(() => decide(api, exhausted))).toBe(0);
    expect(await decide(api, exhausted)).toMatchObject({ tallies: [{ count: 2 }, { count: 0 }] });
  });

  it("comes from memory for some groups while the store decides the others", async () => {
    const { store, decideSpy } = setUp();
    const [exhausted, first, second] = [counter({ limit: 0 }), counter(), counter({ limit: 7 })];
    await verdictOf(store.decide([[exhausted]]));
    decideSpy.mockClear();
    const { groups } = await verdictOf(store.decide([[first], [exhausted], [second]]));
    expect(decideSpy.mock.calls.map(([each]) => each)).toEqual([[[first], [second]]]);
    expect(groups.map(({ admitted, tallies }) => [admitted, tallies[0]?.count])).toEqual([
      [true, 1],
      [false, 0],
      [true, 1],
    ]);
  });

  it("adds no counter whose count is uncertain", async () => {
    const { decide, callsOf, decideSpy } = setUp();
    const [api, exhausted] = [counter({ limit: 9 }), counter({ limit: 1 })];
    const tally = (count: number) => ({ count, resetMs: 60_000, banMs: 0 });
    const tallies = [{ ...tally(5), isUncertain: true as const }, tally(1)];
    const answer = { now: NOW, admitted: false, tallies };
    decideSpy.mockReturnValueOnce([Promise.resolve(answer)]);
    await decide(api, exhausted);
    // The exhausted counter was added, so its groups are denied from memory.
    expect(await callsOf(() => decide(api, exhausted))).toBe(0);
    expect(await decide(api, exhausted)).toMatchObject({ tallies: [undefined, { count: 1 }] });
  });
});

describe("the cache", () => {
  it("has at most `maxCounters` counters", async () => {
    const { decide, callsOf } = setUp(3);
    const quotas = Array.from({ length: 4 }, () => counter({ limit: 0 }));
    for (const [index, quota] of quotas.slice(0, 3).entries()) {
      at(index);
      await decide(quota);
    }
    for (const quota of quotas.slice(0, 3)) expect(await callsOf(() => decide(quota))).toBe(0);
    at(9000);
    await decide(quotas[3] as Demand);
    const [evicted, ...kept] = quotas as [Demand, ...Demand[]];
    for (const quota of kept) expect(await callsOf(() => decide(quota))).toBe(0);
    expect(await callsOf(() => decide(evicted))).toBe(1);
  });

  it("keeps a counter that is often denied during a flood of other counters", async () => {
    const { decide, callsOf } = setUp(16);
    const busy = counter({ limit: 0 });
    for (let request = 0; request < 10; request++) await decide(busy);
    for (let second = 0; second < 9; second++) {
      at(second * 1000);
      expect(await callsOf(() => decide(busy))).toBe(0);
      for (let sent = 0; sent < 200; sent++) {
        at(second * 1000 + sent * 5);
        await decide(counter({ limit: 0 }));
      }
    }
  });

  it("keeps another client's counter while a denied client makes up keys", async () => {
    const { decide, callsOf } = setUp(16);
    const [victim, exhausted] = [counter({ limit: 0 }), counter({ limit: 0 })];
    await decide(victim);
    const calls = await callsOf(async () => {
      for (let sent = 0; sent < 2000; sent++) {
        at(sent * 4);
        await decide(counter(), exhausted, counter({ limit: 0 }));
      }
    });
    expect(calls).toBe(1);
    expect(await callsOf(() => decide(victim))).toBe(0);
  });

  it("lets the store decide a group whose quota the same call returns", async () => {
    const { decide, store } = setUp();
    const quota = counter({ limit: 3, cost: 3 });
    await decide(quota);
    expect(await decide(quota)).toMatchObject({ admitted: false });
    const unused = [{ counter: quota, quota: 3, window: NOW / 60_000 }];
    const { groups } = await verdictOf(store.decide([[quota]], undefined, unused));
    expect(groups).toMatchObject([{ admitted: true }]);
  });

  it("passes returned quota to the store even if all groups are denied from memory", async () => {
    const { store, decide, decideSpy } = setUp();
    const [exhausted, spare] = [counter({ limit: 0 }), counter()];
    await decide(exhausted);
    await decide({ ...spare, cost: 3 });
    const unused = [{ counter: spare, quota: 2, window: NOW / 60_000 }];
    const { groups } = await verdictOf(store.decide([[exhausted]], undefined, unused));
    expect(decideSpy).toHaveBeenLastCalledWith([], undefined, unused);
    expect(groups).toMatchObject([{ admitted: false, tallies: [{ count: 0 }] }]);
    expect(await decide({ ...spare, cost: 0 })).toMatchObject({ tallies: [{ count: 1 }] });
  });

  it("records no denial whose count is uncertain", async () => {
    const { decide, decideSpy, callsOf } = setUp();
    const quota = counter();
    const tallies = [{ count: 5, resetMs: 60_000, banMs: 0, isUncertain: true as const }];
    decideSpy.mockReturnValueOnce([Promise.resolve({ now: NOW, admitted: false, tallies })]);
    expect(await decide(quota)).toMatchObject({ admitted: false });
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("fails with the store's error, and records nothing", async () => {
    const { decide, decideSpy, exhaust } = setUp();
    const quota = counter({ windowMs: HOUR });
    await exhaust(quota);
    decideSpy.mockImplementationOnce((groups) =>
      groups.map(() => Promise.reject(new Error("away"))),
    );
    await expect(decide(quota)).rejects.toThrow("away");
    expect((await decide(quota)).admitted).toBe(false);
  });
});

describe("while the store fails", () => {
  const away = new StoreError("unreachable", "away");

  it("a cached denial is valid even if another counter of the group is new", async () => {
    const { decideSpy, decide, exhaust } = setUp();
    const exhausted = counter();
    await exhaust(exhausted);
    await decide(exhausted);
    decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(away)));
    expect(await decide(counter(), exhausted)).toEqual({
      admitted: false,
      isCached: true,
      tallies: [undefined, { count: 5, resetMs: 60_000, banMs: 0 }],
    });
    await expect(decide(counter())).rejects.toBe(away);
    at(MAX_AGE_MS);
    await expect(decide(counter(), exhausted)).rejects.toBe(away);
  });

  it("a cached denial is valid even if only the store could start a ban", async () => {
    const { decideSpy, decide, exhaust } = setUp();
    const exhausted = counter();
    await exhaust(exhausted);
    await decide(exhausted);
    decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(away)));
    expect(await decide(exhausted, counter({ ban: bans(1000) }))).toMatchObject({
      admitted: false,
    });
    expect(await decide({ ...exhausted, ban: bans(1000) })).toMatchObject({ admitted: false });
  });

  it("a cached denial decides an enforced group and leaves a new shadow group undecided, but a call with a new enforced group fails", async () => {
    const { decideSpy, store, decide, exhaust } = setUp();
    const [exhausted, shadow] = [counter(), counter({ shadow: true })];
    await exhaust(exhausted);
    await exhaust(shadow);
    await decide(exhausted);
    await decide(shadow);
    decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(away)));
    const other = counter({ shadow: true });
    const groups = [[counter(), exhausted], [other], [shadow]];
    expect(await Promise.allSettled(store.decide(groups))).toMatchObject([
      { value: { admitted: false } },
      { reason: away },
      { value: { admitted: false } },
    ]);
    await expect(verdictOf(store.decide([[counter()], [shadow]]))).rejects.toBe(away);
  });

  it.each([
    ["timeout", true],
    ["abandoned", true],
    ["circuit-open", undefined],
  ] as const)(
    "a cached denial after %s says whether the call may hold slots",
    async (failure, mayHold) => {
      const { decideSpy, store, decide, exhaust } = setUp();
      const exhausted = counter();
      await exhaust(exhausted);
      await decide(exhausted);
      const failed = new StoreError(failure, "away");
      decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(failed)));
      const group = [counter({ slot: 7, limit: 1 }), { ...exhausted, ban: bans(1000) }];
      const { groups } = await verdictOf(store.decide([group]));
      expect(groups[0]).toMatchObject({ admitted: false });
      expect(groups[0]?.mayHold).toBe(mayHold);
    },
  );

  it("no count is read from memory, and no cost that fits is denied", async () => {
    const { decideSpy, decide, adjustElsewhere } = setUp();
    const quota = counter();
    await adjustElsewhere([{ ...quota, cost: 3 }]);
    await decide({ ...quota, cost: 3 });
    decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(away)));
    await expect(decide({ ...quota, cost: 0 })).rejects.toBe(away);
    await expect(decide({ ...quota, cost: 2 }, counter())).rejects.toBe(away);
  });
});
