import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Counter } from "../../../../src/engine/counter.ts";
import { MAX_AGE_MS } from "../../../../src/stores/isolate/denial-cache.ts";
import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { GroupAnswer, Store } from "../../../../src/stores/store.ts";
import { StoreError } from "../../../../src/stores/store-error.ts";
import { counter } from "../../../suite/counters.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";

/** A denial needs this recentUses to be told without knowing all of the group. */
const PARTIAL_HEAT = 500;

/** The store's clock, ahead of this isolate's by so much. */
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

/** A cache over a memory store that has a clock of its own, and what is asked of that. */
function setUp(maxCounters?: number) {
  const memory = createMemoryStore();
  const innerStore: Store = {
    decide: (groups, now, unused) => memory.decide(groups, now ?? Date.now() + skewMs, unused),
    adjust: (counters, now) => memory.adjust(counters, now ?? Date.now() + skewMs),
    reset: (counters, now) => memory.reset(counters, now ?? Date.now() + skewMs),
  };
  const { decide: decideElsewhere, adjust: adjustElsewhere, reset: resetElsewhere } = innerStore;
  const decideSpy = vi.spyOn(innerStore, "decide");
  const store = withDenialCache(innerStore, maxCounters);
  const decide = async (...group: Counter[]) => {
    const { groups } = await store.decide([group]);
    return groups[0] as GroupAnswer;
  };
  /** How many calls it takes. */
  const callsOf = async (action: () => Promise<unknown>) => {
    const before = decideSpy.mock.calls.length;
    await action();
    return decideSpy.mock.calls.length - before;
  };
  /** Uses up what is left, without this cache's knowledge. */
  const fill = async (quota: Counter) => {
    const { groups } = await decideElsewhere([[{ ...quota, cost: 0 }]]);
    const left = quota.ceiling - (groups[0]?.tallies[0]?.count ?? 0);
    await adjustElsewhere([{ ...quota, cost: left }]);
  };
  return { store, innerStore, decideSpy, decide, callsOf, fill, adjustElsewhere, resetElsewhere };
}

describe("a denial", () => {
  it("is told from memory from the second on, as the store tells it", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter();
    await fill(quota);
    const first = await decide(quota);
    expect(first).toEqual({ admitted: false, tallies: [{ count: 5, resetMs: 60_000, banMs: 0 }] });
    at(1500);
    expect(await callsOf(() => decide(quota))).toBe(0);
    expect(await decide(quota)).toEqual({
      admitted: false,
      skipCache: true,
      tallies: [{ count: 5, resetMs: 58_500, banMs: 0 }],
    });
  });

  it("is not remembered of who was admitted, however full it is then", async () => {
    const { decide, callsOf } = setUp();
    const quota = counter({ limit: 1 });
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("is remembered as a count: who asks for less is asked about", async () => {
    const { decide, callsOf, adjustElsewhere } = setUp();
    const quota = counter({ limit: 5 });
    await adjustElsewhere([{ ...quota, cost: 3 }]);
    expect((await decide({ ...quota, cost: 3 })).admitted).toBe(false);
    expect(await callsOf(() => decide({ ...quota, cost: 3 }))).toBe(0);
    expect(await callsOf(() => decide({ ...quota, cost: 4 }))).toBe(0);
    // Two fit, and by then none is left.
    expect((await decide({ ...quota, cost: 2 })).admitted).toBe(true);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("is asked about again when the limit has been raised, and not when it was lowered", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter({ limit: 5 });
    await fill(quota);
    await decide(quota);
    expect(await callsOf(() => decide({ ...quota, limit: 4, ceiling: 4 }))).toBe(0);
    expect((await decide({ ...quota, limit: 6, ceiling: 6 })).admitted).toBe(true);
    expect(await callsOf(() => decide({ ...quota, limit: 6, ceiling: 6 }))).toBe(0);
  });

  it("is told of a look too, which is asked about at no cost", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter();
    await fill(quota);
    await decide(quota);
    expect(await callsOf(() => decide({ ...quota, checkOnly: true, neverBans: true }))).toBe(0);
    expect(await callsOf(() => decide({ ...quota, cost: 0 }))).toBe(1);
  });

  it("by a limit of 0, and of more than there is, is remembered as well", async () => {
    const { decide, callsOf } = setUp();
    for (const quota of [counter({ limit: 0 }), counter({ limit: 5, cost: 6 })]) {
      expect(await callsOf(() => decide(quota))).toBe(1);
      expect(await callsOf(() => decide(quota))).toBe(0);
    }
  });

  it("of one does not deny another", async () => {
    const { decide, fill } = setUp();
    const names = ["__proto__", "constructor", "hasOwnProperty", "a", "a:", "a:1m", "a:1m:b"];
    const quotas = names.map((key) => counter({ key, limit: 1 }));
    for (const [index, quota] of quotas.entries()) {
      expect((await decide(quota)).admitted, quota.key).toBe(true);
      await fill(quota);
      expect((await decide(quota)).admitted, quota.key).toBe(false);
      for (const next of quotas.slice(index + 1)) {
        expect((await decide({ ...next, checkOnly: true })).admitted, next.key).toBe(true);
      }
    }
  });
});

describe("a denial is remembered", () => {
  it("for ten seconds, to the millisecond", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter();
    await fill(quota);
    await decide(quota);
    at(MAX_AGE_MS - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(MAX_AGE_MS);
    expect(await callsOf(() => decide(quota))).toBe(1);
    // That call's answer is good for ten seconds more.
    at(2 * MAX_AGE_MS - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("no longer for being told", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter();
    await fill(quota);
    await decide(quota);
    for (let pastMs = 0; pastMs < MAX_AGE_MS; pastMs += 100) {
      at(pastMs);
      expect(await callsOf(() => decide(quota))).toBe(0);
    }
    at(MAX_AGE_MS);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it.each([0, 20_000, -20_000])(
    "to the window's end by the store's clock, %i ms from ours",
    async (ms) => {
      skewMs = ms;
      const { decide, callsOf, fill } = setUp();
      const quota = counter({ limit: 1 });
      const end = 60_000 - ms;
      at(end - 5000);
      await fill(quota);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ resetMs: 5000 }] });
      at(end - 1);
      expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ resetMs: 1 }] });
      expect(await callsOf(() => decide(quota))).toBe(0);
      at(end);
      expect((await decide(quota)).admitted).toBe(true);
    },
  );

  it("not behind when it was learnt, by a clock that has gone back", async () => {
    const { decide, callsOf, fill } = setUp();
    const quota = counter();
    at(1000);
    await fill(quota);
    await decide(quota);
    at(999);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("by the time that is given, where one is", async () => {
    const { store, callsOf } = setUp();
    const quota = counter({ limit: 0 });
    const askAt = (pastMs: number) => callsOf(() => store.decide([[quota]], NOW + pastMs));
    expect(await askAt(55_000)).toBe(1);
    expect(await askAt(59_999)).toBe(0);
    expect(await askAt(60_000)).toBe(1);
    // From a clock that went back into the window before, too.
    expect(await askAt(59_999)).toBe(1);
    expect(await askAt(59_999 + MAX_AGE_MS - 1)).toBe(1);
  });

  /** A call that takes 40 ms there and 60 ms back. */
  async function slowDenial(quota: Counter) {
    const { store, innerStore, decide, fill, callsOf, decideSpy } = setUp();
    await fill(quota);
    const decideDirectly = innerStore.decide;
    decideSpy.mockImplementationOnce(async (...args) => {
      vi.setSystemTime(Date.now() + 40);
      const verdict = await decideDirectly(...args);
      vi.setSystemTime(Date.now() + 60);
      return verdict;
    });
    await decide(quota);
    return { store, decide, callsOf };
  }

  it("to where the window may have ended, had the store answered at once", async () => {
    const quota = counter({ limit: 1 });
    at(58_000);
    const { decide, callsOf } = await slowDenial(quota);
    // The store had 1960 ms left when it decided, 40 ms after it was asked.
    at(59_959);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(59_960);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("with a wait that is not too short, and too long by no more than the way back", async () => {
    const quota = counter({ limit: 1 });
    at(58_000);
    const { store } = await slowDenial(quota);
    at(59_900);
    const { now, groups } = await store.decide([[quota]]);
    expect(now).toBe(NOW + 59_840);
    expect(groups[0]?.tallies[0]?.resetMs).toBe(160);
  });
});

describe("a refund or a reset", () => {
  it("takes effect at once where it is made", async () => {
    const { store, decide, fill } = setUp();
    const quota = counter();
    await fill(quota);
    await decide(quota);
    await store.adjust([{ ...quota, cost: -1 }]);
    expect((await decide(quota)).admitted).toBe(true);
    expect((await decide(quota)).admitted).toBe(false);
    await store.reset([quota]);
    expect((await decide(quota)).admitted).toBe(true);
  });

  it.each(["refund", "reset"] as const)(
    "elsewhere is seen after ten seconds: a %s",
    async (what) => {
      const { decide, fill, adjustElsewhere, resetElsewhere } = setUp();
      const quota = counter();
      await fill(quota);
      await decide(quota);
      if (what === "refund") await adjustElsewhere([{ ...quota, cost: -1 }]);
      else await resetElsewhere([quota]);
      at(MAX_AGE_MS - 1);
      expect((await decide(quota)).admitted).toBe(false);
      at(MAX_AGE_MS);
      expect((await decide(quota)).admitted).toBe(true);
    },
  );

  it("that fails has a reset ask again", async () => {
    const { store, innerStore, decide, callsOf, fill } = setUp();
    const quota = counter();
    await fill(quota);
    await decide(quota);
    vi.spyOn(innerStore, "reset").mockRejectedValueOnce(new Error("away"));
    await expect(store.reset([quota])).rejects.toThrow("away");
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("makes a reset forget what was learnt while it was under way", async () => {
    const { store, innerStore, decide, fill, resetElsewhere } = setUp();
    const quota = counter();
    await fill(quota);
    vi.spyOn(innerStore, "reset").mockImplementationOnce(async (counters) => {
      expect((await decide(quota)).admitted).toBe(false);
      await resetElsewhere(counters);
    });
    await store.reset([quota]);
    expect((await decide(quota)).admitted).toBe(true);
  });

  it("leaves what is known of others", async () => {
    const { store, decide, callsOf } = setUp();
    const [one, other] = [counter({ limit: 0 }), counter({ limit: 0 })];
    await decide(one);
    await decide(other);
    await store.reset([one]);
    await store.adjust([{ ...one, cost: -1 }]);
    expect(await callsOf(() => decide(other))).toBe(0);
  });
});

describe("a denial by shards", () => {
  /** Ten shards of one client, and each of their pairs in turn. */
  function shardsOf(limit: number) {
    const shards = Array.from({ length: 10 }, (_, index) =>
      counter({ limit, key: `shard#${index}` }),
    );
    const pairs = shards.flatMap((one, at) =>
      shards.slice(at + 1).map((alternative) => ({ ...one, alternative })),
    );
    return { shards, pairs };
  }

  it("is answered from memory for every pair, once each shard is known to be full", async () => {
    const { decide, fill, callsOf } = setUp();
    const { shards, pairs } = shardsOf(3);
    for (const shard of shards) await fill(shard);
    for (const pair of pairs) expect(await decide(pair)).toMatchObject({ admitted: false });
    const calls = await callsOf(async () => {
      for (const pair of pairs) {
        expect(await decide(pair)).toEqual({
          admitted: false,
          skipCache: true,
          tallies: [{ count: 3, resetMs: 60_000, banMs: 0 }],
        });
      }
    });
    expect(calls).toBe(0);
  });

  it("is asked about while one of the two has room, or is not known", async () => {
    const { decide, fill } = setUp();
    const [full, other, roomy] = [counter({ limit: 2 }), counter({ limit: 2 }), counter()];
    await fill(full);
    await fill(other);
    expect(await decide({ ...full, alternative: other })).toMatchObject({ admitted: false });
    expect(await decide({ ...roomy, alternative: full })).toMatchObject({ admitted: true });
    expect(
      await decide({ ...full, alternative: { ...roomy, limit: 2, ceiling: 2 } }),
    ).toMatchObject({
      admitted: true,
    });
  });

  it("tells of the roomier of the two, as a store does", async () => {
    const { decide, innerStore, adjustElsewhere } = setUp();
    const [one, two, three] = [5, 4, 4].map((limit) => counter({ limit, cost: 3 })) as Triple;
    await adjustElsewhere([{ ...one, cost: 4 }]);
    await adjustElsewhere([{ ...two, cost: 2 }]);
    await adjustElsewhere([{ ...three, cost: 4 }]);
    await decide({ ...one, alternative: two });
    await decide({ ...one, alternative: three });
    for (const pair of [
      { ...one, alternative: two },
      { ...one, alternative: three },
      { ...two, alternative: three },
    ]) {
      const [truth] = (await innerStore.decide([[pair]])).groups;
      const answer = await decide(pair);
      expect(answer.admitted).toBe(false);
      expect(answer.skipCache).toBe(true);
      // What is remembered of a shard is the least that it has used.
      expect(answer.tallies[0]?.count).toBeLessThanOrEqual(truth?.tallies[0]?.count as number);
    }
    expect((await decide({ ...one, alternative: { ...two, cost: 2 }, cost: 2 })).admitted).toBe(
      true,
    );
  });

  it("is asked about again after a refund to the pair, and after a reset", async () => {
    const { store, decide, fill } = setUp();
    const [one, other] = [counter({ limit: 2 }), counter({ limit: 2 })];
    const pair = { ...one, alternative: other };
    await fill(one);
    await fill(other);
    expect((await decide(pair)).admitted).toBe(false);
    await store.adjust([{ ...pair, cost: -1, alternative: { ...other, cost: -1 } }]);
    expect((await decide(pair)).admitted).toBe(true);
    expect((await decide(pair)).admitted).toBe(false);
    await store.reset([one, other]);
    expect((await decide(pair)).admitted).toBe(true);
  });
});

type Triple = [Counter, Counter, Counter];

describe("a ban", () => {
  const banned = (fields: Partial<Counter> = {}) =>
    counter({ limit: 1, windowMs: 10_000, banMs: 50_000, ...fields });

  it("is begun by the store, and then told from memory with what is left of it", async () => {
    const { decide, callsOf } = setUp();
    const login = banned();
    await decide(login);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 50_000 }] });
    at(3000);
    expect(await callsOf(() => decide(login))).toBe(0);
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 47_000, resetMs: 7000 }] });
    // The count may be another one in the next window, so the store is asked, once.
    at(10_000);
    expect(await callsOf(() => decide(login))).toBe(1);
    expect(await callsOf(() => decide(login))).toBe(0);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 40_000 }] });
  });

  it("ends to the millisecond", async () => {
    const { decide } = setUp();
    const login = banned({ banMs: 15_000 });
    await decide(login);
    await decide(login);
    at(10_001);
    await decide(login);
    at(14_999);
    expect(await decide(login)).toMatchObject({ admitted: false, tallies: [{ banMs: 1 }] });
    at(15_000);
    expect((await decide(login)).admitted).toBe(true);
  });

  it("that has ended within the window is begun again by the store", async () => {
    const { decide, callsOf } = setUp();
    const login = banned({ windowMs: 60_000, banMs: 2000 });
    await decide(login);
    await decide(login);
    at(1999);
    expect(await callsOf(() => decide(login))).toBe(0);
    at(2000);
    expect(await callsOf(() => decide(login))).toBe(1);
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 2000 }] });
  });

  it("is not missed where a look has found no room before", async () => {
    const { decide } = setUp();
    const login = banned({ limit: 0 });
    const look = { ...login, checkOnly: true, neverBans: true };
    expect(await decide(look)).toMatchObject({ admitted: false, tallies: [{ banMs: 0 }] });
    expect(await decide(login)).toMatchObject({ tallies: [{ banMs: 50_000 }] });
    expect(await decide(look)).toMatchObject({ tallies: [{ banMs: 50_000 }] });
  });

  it("is not missed beside another counter that denies anyway", async () => {
    const { decide, callsOf } = setUp();
    const full = counter({ limit: 0 });
    const login = banned({ limit: 1 });
    for (let request = 0; request < 2 * PARTIAL_HEAT; request++) await decide(full);
    expect(await decide(full, login)).toMatchObject({ tallies: [{}, { count: 0, banMs: 0 }] });
    // With room in it a ban is not due: from memory.
    expect(await callsOf(() => decide(full, login))).toBe(0);
    // Without, it is.
    const over = { ...login, cost: 2 };
    expect(await decide(full, over)).toMatchObject({ tallies: [{}, { banMs: 50_000 }] });
    expect(await callsOf(() => decide(full, over))).toBe(0);
  });
});

describe("of several counters", () => {
  it("all are told of, when the store has told of all", async () => {
    const { decide, callsOf } = setUp();
    const group = [counter({ limit: 9 }), counter({ limit: 1 }), counter({ limit: 7 })];
    await decide(...group);
    const fromStore = await decide(...group);
    expect(await callsOf(() => decide(...group))).toBe(0);
    expect(await decide(...group)).toEqual({ ...fromStore, skipCache: true });
    expect(fromStore.tallies.map((tally) => tally?.count)).toEqual([1, 1, 1]);
  });

  it("an unknown one is asked about, until the full one has been asked for often", async () => {
    const { decide, callsOf } = setUp();
    const full = counter({ limit: 0 });
    // A new key beside it each time.
    const request = () => decide(full, counter());
    expect(await callsOf(request)).toBe(1);
    for (let sent = 2; sent < PARTIAL_HEAT; sent++)
      expect(await callsOf(request), `${sent}`).toBe(1);
    // Heat: one of the first, which put it there, and one of each since.
    expect(await callsOf(request)).toBe(0);
    expect(await request()).toEqual({
      admitted: false,
      skipCache: true,
      tallies: [{ count: 0, resetMs: 60_000, banMs: 0 }, undefined],
    });
  });

  it("an unknown one is asked about again when the full one has cooled", async () => {
    const { decide, callsOf } = setUp();
    const full = counter({ limit: 0 });
    const request = () => decide(full, counter());
    for (let sent = 0; sent <= PARTIAL_HEAT; sent++) await request();
    expect(await callsOf(request)).toBe(0);
    at(5000);
    expect(await callsOf(request)).toBe(1);
  });

  it("none is charged by a denial from memory", async () => {
    const { decide } = setUp();
    const [api, full] = [counter(), counter({ limit: 0 })];
    for (let request = 0; request < 9; request++) await decide(api, full);
    expect(await decide({ ...api, cost: 0 })).toMatchObject({ tallies: [{ count: 0 }] });
  });

  it("one is brought up to date by every answer, so what is told is not older than that", async () => {
    const { decide, callsOf } = setUp();
    const [api, full] = [counter({ limit: 9 }), counter({ limit: 0 })];
    await decide(api, full);
    await decide(api);
    await decide(api);
    expect(await callsOf(() => decide(api, full))).toBe(0);
    expect(await decide(api, full)).toMatchObject({ tallies: [{ count: 2 }, { count: 0 }] });
  });

  it("one with another to choose instead, which has room, is not told of from memory", async () => {
    const { decide, callsOf } = setUp();
    const [one, other, full] = [
      counter({ limit: 0 }),
      counter({ limit: 20 }),
      counter({ limit: 0 }),
    ];
    for (let request = 0; request < 9; request++) {
      expect(await callsOf(() => decide({ ...one, alternative: other }))).toBe(1);
    }
    for (let request = 0; request < PARTIAL_HEAT; request++) await decide(full);
    expect(await decide(full, { ...one, alternative: other })).toMatchObject({
      tallies: [{}, undefined],
    });
    expect(await callsOf(() => decide(full, { ...one, alternative: other }))).toBe(0);
  });

  it("groups are told from memory beside others that are asked about", async () => {
    const { store, decideSpy } = setUp();
    const [full, first, second] = [counter({ limit: 0 }), counter(), counter({ limit: 7 })];
    await store.decide([[full]]);
    decideSpy.mockClear();
    const { groups } = await store.decide([[first], [full], [second]]);
    expect(decideSpy.mock.calls.map(([each]) => each)).toEqual([[[first], [second]]]);
    expect(groups.map(({ admitted, tallies }) => [admitted, tallies[0]?.count])).toEqual([
      [true, 1],
      [false, 0],
      [true, 1],
    ]);
  });

  it("those are not remembered that may yet turn out to be less", async () => {
    const { decide, callsOf, decideSpy } = setUp();
    const [api, full] = [counter({ limit: 9 }), counter({ limit: 1 })];
    const tally = (count: number) => ({ count, resetMs: 60_000, banMs: 0 });
    const unsettled = { admitted: false, isProvisional: true, tallies: [tally(5), tally(1)] };
    decideSpy.mockResolvedValueOnce({ now: NOW, groups: [unsettled] });
    await decide(api, full);
    // The full one is, so it is denied from memory where it is alone.
    expect(await callsOf(() => decide(full))).toBe(0);
    expect(await callsOf(() => decide(api, full))).toBe(1);
  });
});

describe("the cache", () => {
  it("remembers as many counters as it may, and not one more", async () => {
    const { decide, callsOf } = setUp(3);
    const quotas = Array.from({ length: 4 }, () => counter({ limit: 0 }));
    for (const [index, quota] of quotas.slice(0, 3).entries()) {
      at(index);
      await decide(quota);
    }
    for (const quota of quotas.slice(0, 3)) expect(await callsOf(() => decide(quota))).toBe(0);
    at(9000);
    await decide(quotas[3] as Counter);
    const [evicted, ...kept] = quotas as [Counter, ...Counter[]];
    for (const quota of kept) expect(await callsOf(() => decide(quota))).toBe(0);
    expect(await callsOf(() => decide(evicted))).toBe(1);
  });

  it("keeps who is denied often through a flood of others", async () => {
    const { decide, callsOf } = setUp(16);
    const hot = counter({ limit: 0 });
    for (let request = 0; request < 10; request++) await decide(hot);
    for (let second = 0; second < 9; second++) {
      at(second * 1000);
      expect(await callsOf(() => decide(hot))).toBe(0);
      for (let sent = 0; sent < 200; sent++) {
        at(second * 1000 + sent * 5);
        await decide(counter({ limit: 0 }));
      }
    }
  });

  it("passes on what is to be given back, though all of its groups are told from memory", async () => {
    const { store, decide, decideSpy } = setUp();
    const [full, spare] = [counter({ limit: 0 }), counter()];
    await decide(full);
    await decide({ ...spare, cost: 3 });
    const unused = [{ counter: spare, quota: 2, window: NOW / 60_000 }];
    const { groups } = await store.decide([[full]], undefined, unused);
    expect(decideSpy).toHaveBeenLastCalledWith([], undefined, unused);
    expect(groups).toMatchObject([{ admitted: false, tallies: [{ count: 0 }] }]);
    expect(await decide({ ...spare, cost: 0 })).toMatchObject({ tallies: [{ count: 1 }] });
  });

  it("learns nothing from an answer that says so", async () => {
    const { decide, decideSpy, callsOf } = setUp();
    const quota = counter();
    const tallies = [{ count: 5, resetMs: 60_000, banMs: 0 }];
    const denial = { admitted: false, skipCache: true, tallies };
    decideSpy.mockResolvedValueOnce({ now: NOW, groups: [denial] });
    expect(await decide(quota)).toEqual(denial);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("fails as the store does, and learns nothing from it", async () => {
    const { decide, decideSpy, fill } = setUp();
    const quota = counter({ windowMs: HOUR });
    await fill(quota);
    decideSpy.mockRejectedValueOnce(new Error("away"));
    await expect(decide(quota)).rejects.toThrow("away");
    expect((await decide(quota)).admitted).toBe(false);
  });
});

describe("while the store is away", () => {
  const away = new StoreError("unreachable", "away");

  it("a remembered denial stands though another key of the group is new", async () => {
    const { decideSpy, decide, fill } = setUp();
    const full = counter();
    await fill(full);
    await decide(full);
    decideSpy.mockRejectedValue(away);
    expect(await decide(counter(), full)).toEqual({
      admitted: false,
      skipCache: true,
      tallies: [undefined, { count: 5, resetMs: 60_000, banMs: 0 }],
    });
    await expect(decide(counter())).rejects.toBe(away);
    at(MAX_AGE_MS);
    await expect(decide(counter(), full)).rejects.toBe(away);
  });

  it("it stands though only the store could begin a ban, on either of them", async () => {
    const { decideSpy, decide, fill } = setUp();
    const full = counter();
    await fill(full);
    await decide(full);
    decideSpy.mockRejectedValue(away);
    expect(await decide(full, counter({ banMs: 1000 }))).toMatchObject({ admitted: false });
    expect(await decide({ ...full, banMs: 1000 })).toMatchObject({ admitted: false });
  });

  it("an enforced denial stands, and a shadow group beside it is undecided; not the reverse", async () => {
    const { decideSpy, store, decide, fill } = setUp();
    const [full, trial] = [counter(), counter({ shadow: true })];
    await fill(full);
    await fill(trial);
    await decide(full);
    await decide(trial);
    decideSpy.mockRejectedValue(away);
    const other = counter({ shadow: true });
    const { groups } = await store.decide([[counter(), full], [other], [trial]]);
    expect(groups.map(({ later, skipCache }) => [skipCache, later !== undefined])).toEqual([
      [true, false],
      [undefined, true],
      [true, false],
    ]);
    await expect(groups[1]?.later).rejects.toBe(away);
    await expect(store.decide([[counter()], [trial]])).rejects.toBe(away);
  });

  it("nobody reads a counter from memory, and what still fits is not denied", async () => {
    const { decideSpy, decide, adjustElsewhere } = setUp();
    const quota = counter();
    await adjustElsewhere([{ ...quota, cost: 3 }]);
    await decide({ ...quota, cost: 3 });
    decideSpy.mockRejectedValue(away);
    await expect(decide({ ...quota, cost: 0 })).rejects.toBe(away);
    await expect(decide({ ...quota, cost: 2 }, counter())).rejects.toBe(away);
  });
});
