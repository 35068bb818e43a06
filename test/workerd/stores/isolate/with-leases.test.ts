import { describe, expect, it, vi } from "vitest";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import {
  at,
  counter,
  flushPromises,
  holdNextAnswer,
  MINUTE,
  setUp,
  stopClock,
  TIMEOUT_MS,
} from "./leases-setup.ts";

stopClock();

describe("unspent lease quota", () => {
  it("counts as unused for a caller that reads the count", async () => {
    const { admitted, used, charged } = setUp();
    const quota = counter();
    await admitted(20, quota);
    expect(await charged(quota)).toBeGreaterThan(20);
    expect(await used(quota)).toBe(20);
  });

  it("is available to a check, but the check does not take it", async () => {
    const { fillLease, exhaustElsewhere, decide, callsOf, admitted, used, charged } = setUp();
    const quota = counter();
    await fillLease(quota, 5);
    const unspent = (await charged(quota)) - ((await used(quota)) as number);
    await exhaustElsewhere(quota);
    const check = (cost: number) => decide({ ...quota, cost, checkOnly: true });
    expect(await callsOf(() => check(unspent))).toBe(0);
    for (let repeated = 0; repeated < 9; repeated++)
      expect((await check(unspent)).admitted).toBe(true);
    expect((await check(unspent + 1)).admitted).toBe(false);
    expect(await admitted(2 * unspent, quota)).toBe(unspent);
    expect((await check(1)).admitted).toBe(false);
  });

  it("covers a larger cost together with quota from the store", async () => {
    const { fillLease, decide, decideSpy, charged, used } = setUp();
    const quota = counter({ cost: 2 });
    await fillLease(quota, 6);
    const [before, usedBefore] = [await charged(quota), (await used(quota)) as number];
    const unspent = before - usedBefore;
    decideSpy.mockClear();
    const large = { ...quota, cost: unspent + 4 };
    const verdict = await decide(large);
    expect(verdict.admitted).toBe(true);
    expect(decideSpy.mock.calls[0]?.[0]).toMatchObject([[{ cost: 4 }]]);
    expect(await used(quota)).toBe(usedBefore + large.cost);
    expect(verdict.tallies[0]?.count).toBe(usedBefore + large.cost);
  });

  it("is put back when the store has too little quota for a larger cost", async () => {
    const { fillLease, exhaustElsewhere, decide, admitted, callsOf, charged, used } = setUp();
    const quota = counter();
    await fillLease(quota, 5);
    const unspent = (await charged(quota)) - ((await used(quota)) as number);
    await exhaustElsewhere(quota);
    expect((await decide({ ...quota, cost: unspent + 1 })).admitted).toBe(false);
    expect(await callsOf(async () => expect(await admitted(unspent, quota)).toBe(unspent))).toBe(0);
    expect(await admitted(1, quota)).toBe(0);
  });

  it("is put back when another counter of the group is exhausted", async () => {
    const { fillLease, decide, admitted, callsOf, charged, used } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await fillLease(quota, 5);
    const unspent = (await charged(quota)) - ((await used(quota)) as number);
    for (let request = 0; request < 9; request++) {
      expect((await decide(quota, full)).admitted).toBe(false);
      expect((await decide(full, quota)).admitted).toBe(false);
    }
    expect(await used(quota)).toBe((await charged(quota)) - unspent);
    expect(await callsOf(() => admitted(unspent, quota))).toBe(0);
  });

  it("is not put back when another group of the same call is denied", async () => {
    const { fillLease, store, used, charged } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await fillLease(quota, 5);
    const [before, chargedBefore] = [(await used(quota)) as number, await charged(quota)];
    const { groups } = await verdictOf(store.decide([[quota], [full]]));
    expect(groups.map(({ admitted }) => admitted)).toEqual([true, false]);
    expect([await used(quota), await charged(quota)]).toEqual([before + 1, chargedBefore]);
  });

  it("belongs to one counter, even if keys have a common prefix or JavaScript objects inherit them", async () => {
    const { admitted, used } = setUp();
    const names = ["__proto__", "constructor", "a", "a:", "a:1m", "a:1m:b"];
    const quotas = names.map((key) => counter({ key, limit: 50 }));
    for (const [index, quota] of quotas.entries()) {
      expect(await used(quota), quota.key).toBe(0);
      expect(await admitted(index + 3, quota), quota.key).toBe(index + 3);
    }
    for (const [index, quota] of quotas.entries()) expect(await used(quota)).toBe(index + 3);
  });

  it("lets a client's count rise by one with each of its requests", async () => {
    const { decide, tasks } = setUp({ roundTripMs: 20 });
    const quota = counter({ limit: 300, windowMs: HOUR });
    for (let request = 1; request <= 300; request++) {
      const { admitted, tallies } = await decide(quota);
      expect([admitted, tallies[0]?.count]).toEqual([true, request]);
      await Promise.all(tasks.splice(0));
    }
    expect(await decide(quota)).toMatchObject({ admitted: false, tallies: [{ count: 300 }] });
  });

  it.each([
    ["at once", 0],
    ["after the deadline, in a busy isolate", TIMEOUT_MS + 1],
  ])("admits a request that the store denied while a block was arriving, %s", async (_, lateMs) => {
    const isolate = setUp();
    const { decide, admitted, emptyLease, exhaustElsewhere, memory, used } = isolate;
    const quota = counter();
    await admitted(31, quota);
    await emptyLease(quota);
    await exhaustElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -30 }], NOW);
    // A block arrives after the store has denied a request, but before the denial arrives.
    const block = holdNextAnswer(isolate);
    const first = decide(quota);
    await flushPromises();
    await exhaustElsewhere(quota);
    const denial = holdNextAnswer(isolate);
    const second = decide(quota);
    await flushPromises();
    block.release();
    expect((await first).admitted).toBe(true);
    const before = (await used(quota)) as number;
    at(lateMs);
    denial.release();
    expect(await second).toMatchObject({ admitted: true, tallies: [{ count: before + 1 }] });
  });

  it("admits such a request even if another counter of it needs the store", async () => {
    const isolate = setUp();
    const { decide, admitted, emptyLease, exhaustElsewhere, memory } = isolate;
    const [global, client] = [counter(), counter({ leasable: false })];
    await admitted(31, global);
    await emptyLease(global);
    await exhaustElsewhere(global);
    await memory.adjust([{ ...global, cost: -30 }], NOW);
    const block = holdNextAnswer(isolate);
    const first = decide(global);
    await flushPromises();
    await exhaustElsewhere(global);
    const denial = holdNextAnswer(isolate);
    const second = decide(client, global);
    await flushPromises();
    block.release();
    expect((await first).admitted).toBe(true);
    denial.release();
    expect(await second).toMatchObject({ admitted: true, tallies: [{ count: 1 }, {}] });
  });

  it("exists for at most `maxLeases` counters", async () => {
    const { admitted, blocks, decideSpy } = setUp({ maxLeases: 1 });
    const [one, other] = [counter({ limit: 50 }), counter({ limit: 50 })];
    await admitted(9, one);
    decideSpy.mockClear();
    expect(await admitted(7, other)).toBe(7);
    expect(blocks()).toEqual(Array(7).fill(undefined));
    expect(await admitted(99, one)).toBe(41);
    expect(await admitted(99, other)).toBe(43);
  });
});

describe("another tier of a client", () => {
  it("does not use quota charged for the first tier, and this quota is returned", async () => {
    const { admitted, fillLease, decide, returns, decideSpy, used } = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const sent = await fillLease(pro, 3);
    decideSpy.mockClear();
    expect(await decide(free)).toMatchObject({ admitted: true, tallies: [{ count: sent + 1 }] });
    expect(returns()).toMatchObject([[{ counter: { ceiling: 1000 } }]]);
    expect(await admitted(99, free)).toBe(9 - sent);
    expect(await used(pro)).toBe(10);
    expect(await admitted(999, pro)).toBe(990);
  });

  it("does not use a block requested for the first tier, and this block is returned", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    at(MINUTE - 1);
    await isolate.admitted(50, pro);
    at(MINUTE);
    const { release } = holdNextAnswer(isolate);
    const first = isolate.decide(pro);
    await flushPromises();
    expect((await isolate.decide(free)).admitted).toBe(false);
    release();
    expect((await first).admitted).toBe(true);
    expect(await isolate.admitted(99, free)).toBe(9);
    expect(await isolate.charged(pro)).toBe(10);
  });

  it("does not get quota that was taken for the first tier and put back", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const full = counter({ limit: 0, leasable: false });
    await isolate.admitted(11, pro);
    await isolate.fillLease(pro, 3);
    const { release } = holdNextAnswer(isolate);
    const denied = isolate.decide(pro, full);
    expect(await isolate.admitted(9, free)).toBe(0);
    release();
    expect((await denied).admitted).toBe(false);
    expect(await isolate.admitted(9, free)).toBe(0);
  });
});

describe("a call that fails", () => {
  it("puts back the quota taken, and fails for the caller", async () => {
    const { fillLease, decide, decideSpy, used, charged, admitted, callsOf } = setUp();
    const [quota, other] = [counter(), counter({ leasable: false })];
    const sent = await fillLease(quota, 5);
    const unspent = (await charged(quota)) - sent;
    decideSpy.mockImplementationOnce((groups) =>
      groups.map(() => Promise.reject(new Error("away"))),
    );
    await expect(decide(quota, other)).rejects.toThrow("away");
    expect(await used(quota)).toBe(sent);
    expect(await callsOf(() => admitted(unspent, quota))).toBe(0);
  });

  it("affects no group that its lease covers", async () => {
    const { fillLease, store, decideSpy, used } = setUp();
    const [one, other] = [counter(), counter()];
    const sent = [await fillLease(one, 5), await fillLease(other, 5)];
    decideSpy.mockImplementationOnce((groups) =>
      groups.map(() => Promise.reject(new Error("away"))),
    );
    const closed = counter({ leasable: false });
    const answers = await Promise.allSettled(store.decide([[one], [other], [closed]]));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect([await used(one), await used(other)]).toEqual(sent.map((count) => count + 1));
  });

  it("loses its block, and a request fetches the next block ten seconds later", async () => {
    const { admitted, decide, decideSpy, blocks, emptyLease } = setUp();
    const quota = counter();
    await admitted(15, quota);
    await emptyLease(quota);
    decideSpy.mockClear();
    decideSpy.mockImplementationOnce((groups) =>
      groups.map(() => Promise.reject(new Error("away"))),
    );
    await expect(decide(quota)).rejects.toThrow("away");
    await decide(quota);
    vi.setSystemTime(Date.now() + 10_000);
    await admitted(3, quota);
    expect(blocks().slice(0, 2)).toEqual([expect.any(Number), undefined]);
    expect(blocks().at(-1)).toEqual(expect.any(Number));
  });

  it("does not affect a request that its lease covers", async () => {
    const { fillLease, decideSpy, decide } = setUp();
    const quota = counter();
    await fillLease(quota, 5);
    decideSpy.mockImplementation((groups) => groups.map(() => Promise.reject(new Error("away"))));
    for (let request = 0; request < 3; request++) expect((await decide(quota)).admitted).toBe(true);
  });
});

describe("several isolates over one store", () => {
  it.each([1, 2, 3, 5])(
    "together admit exactly the limit while they are busy: %i isolates",
    async (count) => {
      const memory = createMemoryStore();
      const isolates = Array.from({ length: count }, () => setUp({ roundTripMs: 2 }, memory));
      const quota = counter({ limit: 500, windowMs: HOUR });
      let admitted = 0;
      for (let round = 0; round < 600; round++) {
        for (const { decide, tasks } of isolates) {
          if ((await decide(quota)).admitted) admitted++;
          await Promise.all(tasks.splice(0));
        }
      }
      expect(admitted).toBe(500);
    },
  );

  it("count the leases of other isolates as used, and their own as unused", async () => {
    const memory = createMemoryStore();
    const [one, other] = [setUp({}, memory), setUp({}, memory)];
    const quota = counter();
    const sent = await one.fillLease(quota, 5);
    const charged = await one.charged(quota);
    expect(await one.used(quota)).toBe(sent);
    expect(await other.used(quota)).toBe(charged);
  });
});

describe("leases over a denial cache", () => {
  it("are used before a denial from memory", async () => {
    const memory = createMemoryStore();
    const decideSpy = vi.spyOn(memory, "decide");
    const store = withLeases(withDenialCache(memory), {
      timeoutMs: TIMEOUT_MS,
      background: () => {},
    });
    const quota = counter();
    const decide = async (cost = 1) =>
      (await verdictOf(store.decide([[{ ...quota, cost }]]))).groups[0]?.admitted;
    for (let request = 0; request < 20; request++) await decide();
    const { groups } = await verdictOf(memory.decide([[{ ...quota, cost: 0 }]]));
    const charged = groups[0]?.tallies[0]?.count ?? 0;
    await memory.adjust([{ ...quota, cost: 1000 }], NOW);
    expect(await decide(99)).toBe(false);
    decideSpy.mockClear();
    expect(charged).toBeGreaterThan(20);
    for (let request = 20; request < charged; request++) expect(await decide()).toBe(true);
    expect(await decide()).toBe(false);
    expect(decideSpy).not.toHaveBeenCalled();
  });
});
