import { describe, expect, it, vi } from "vitest";
import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import {
  at,
  counter,
  holdNext,
  MINUTE,
  settle,
  setUp,
  standStill,
  TIMEOUT_MS,
} from "./leases-setup.ts";

standStill();

describe("what lies here", () => {
  it("counts as unused to who reads", async () => {
    const { admitted, used, charged } = setUp();
    const quota = counter();
    await admitted(20, quota);
    expect(await charged(quota)).toBeGreaterThan(20);
    expect(await used(quota)).toBe(20);
  });

  it("is seen by who only asks for room, and not taken by it", async () => {
    const { stockUp, useUpElsewhere, ask, callsOf, admitted, used, charged } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    await useUpElsewhere(quota);
    const check = (cost: number) => ask({ ...quota, cost, checkOnly: true });
    expect(await callsOf(() => check(here))).toBe(0);
    for (let again = 0; again < 9; again++) expect((await check(here)).admitted).toBe(true);
    expect((await check(here + 1)).admitted).toBe(false);
    expect(await admitted(2 * here, quota)).toBe(here);
    expect((await check(1)).admitted).toBe(false);
  });

  it("goes with what the store has for a larger cost", async () => {
    const { stockUp, ask, asked, charged, used } = setUp();
    const quota = counter({ cost: 2 });
    await stockUp(quota, 6);
    const [before, usedBefore] = [await charged(quota), (await used(quota)) as number];
    const here = before - usedBefore;
    asked.mockClear();
    const large = { ...quota, cost: here + 4 };
    const verdict = await ask(large);
    expect(verdict.admitted).toBe(true);
    expect(asked.mock.calls[0]?.[0]).toMatchObject([[{ cost: 4 }]]);
    expect(await used(quota)).toBe(usedBefore + large.cost);
    expect(verdict.tallies[0]?.count).toBe(usedBefore + large.cost);
  });

  it("is put back when the store has too little for a larger cost", async () => {
    const { stockUp, useUpElsewhere, ask, admitted, callsOf, charged, used } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    await useUpElsewhere(quota);
    expect((await ask({ ...quota, cost: here + 1 })).admitted).toBe(false);
    expect(await callsOf(async () => expect(await admitted(here, quota)).toBe(here))).toBe(0);
    expect(await admitted(1, quota)).toBe(0);
  });

  it("is put back when another counter of the group has no room", async () => {
    const { stockUp, ask, admitted, callsOf, charged, used } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    for (let request = 0; request < 9; request++) {
      expect((await ask(quota, full)).admitted).toBe(false);
      expect((await ask(full, quota)).admitted).toBe(false);
    }
    expect(await used(quota)).toBe((await charged(quota)) - here);
    expect(await callsOf(() => admitted(here, quota))).toBe(0);
  });

  it("is not put back for another group of the same call", async () => {
    const { stockUp, store, used, charged } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await stockUp(quota, 5);
    const [before, chargedBefore] = [(await used(quota)) as number, await charged(quota)];
    const { groups } = await store.decide([[quota], [full]]);
    expect(groups.map(({ admitted }) => admitted)).toEqual([true, false]);
    expect([await used(quota), await charged(quota)]).toEqual([before + 1, chargedBefore]);
  });

  it("is of one counter alone, whatever the keys are called", async () => {
    const { admitted, used } = setUp();
    const names = ["__proto__", "constructor", "a", "a:", "a:1m", "a:1m:b"];
    const quotas = names.map((key) => counter({ key, limit: 50 }));
    for (const [index, quota] of quotas.entries()) {
      expect(await used(quota), quota.key).toBe(0);
      expect(await admitted(index + 3, quota), quota.key).toBe(index + 3);
    }
    for (const [index, quota] of quotas.entries()) expect(await used(quota)).toBe(index + 3);
  });

  it("makes a client's figures fall by one with each of its requests", async () => {
    const { ask, tasks } = setUp({ roundTripMs: 20 });
    const quota = counter({ limit: 300, windowMs: HOUR });
    for (let request = 1; request <= 300; request++) {
      const { admitted, tallies } = await ask(quota);
      expect([admitted, tallies[0]?.count]).toEqual([true, request]);
      await Promise.all(tasks.splice(0));
    }
    expect(await ask(quota)).toMatchObject({ admitted: false, tallies: [{ count: 300 }] });
  });

  it("serves who was denied while it was on its way", async () => {
    const isolate = setUp();
    const { ask, admitted, useUp, useUpElsewhere, memory, used } = isolate;
    const quota = counter();
    await admitted(31, quota);
    await useUp(quota);
    await useUpElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -30 }], NOW);
    // A block comes in between a denial and the hearing of it.
    const block = holdNext(isolate);
    const first = ask(quota);
    await settle();
    await useUpElsewhere(quota);
    const denial = holdNext(isolate);
    const second = ask(quota);
    await settle();
    block.release();
    expect((await first).admitted).toBe(true);
    const before = (await used(quota)) as number;
    denial.release();
    expect(await second).toMatchObject({ admitted: true, tallies: [{ count: before + 1 }] });
  });

  it("is for at most as many counters as there may be leases", async () => {
    const { admitted, blocks, asked } = setUp({ maxLeases: 1 });
    const [one, other] = [counter({ limit: 50 }), counter({ limit: 50 })];
    await admitted(9, one);
    asked.mockClear();
    expect(await admitted(7, other)).toBe(7);
    expect(blocks()).toEqual(Array(7).fill(undefined));
    expect(await admitted(99, one)).toBe(41);
    expect(await admitted(99, other)).toBe(43);
  });
});

describe("another tier of a client", () => {
  it("does not use quota that was bought for the first, which is given back", async () => {
    const { admitted, stockUp, ask, givenBack, asked, used } = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const sent = await stockUp(pro, 3);
    asked.mockClear();
    expect(await ask(free)).toMatchObject({ admitted: true, tallies: [{ count: sent + 1 }] });
    expect(givenBack()).toMatchObject([[{ counter: { ceiling: 1000 } }]]);
    expect(await admitted(99, free)).toBe(9 - sent);
    expect(await used(pro)).toBe(10);
    expect(await admitted(999, pro)).toBe(990);
  });

  it("does not use a block that was under way for the first: it goes back to the store", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    at(MINUTE - 1);
    await isolate.admitted(50, pro);
    at(MINUTE);
    const { release } = holdNext(isolate);
    const first = isolate.ask(pro);
    await settle();
    expect((await isolate.ask(free)).admitted).toBe(false);
    release();
    expect((await first).admitted).toBe(true);
    expect(await isolate.admitted(99, free)).toBe(9);
    expect(await isolate.charged(pro)).toBe(10);
  });

  it("has nothing put back that was taken for the first", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const full = counter({ limit: 0, leasable: false });
    await isolate.admitted(11, pro);
    await isolate.stockUp(pro, 3);
    const { release } = holdNext(isolate);
    const denied = isolate.ask(pro, full);
    expect(await isolate.admitted(9, free)).toBe(0);
    release();
    expect((await denied).admitted).toBe(false);
    expect(await isolate.admitted(9, free)).toBe(0);
  });
});

describe("a call that fails", () => {
  it("puts back what was taken, and is the caller's failure", async () => {
    const { stockUp, ask, asked, used, charged, admitted, callsOf } = setUp();
    const [quota, other] = [counter(), counter({ leasable: false })];
    const sent = await stockUp(quota, 5);
    const here = (await charged(quota)) - sent;
    asked.mockRejectedValueOnce(new Error("away"));
    await expect(ask(quota, other)).rejects.toThrow("away");
    expect(await used(quota)).toBe(sent);
    expect(await callsOf(() => admitted(here, quota))).toBe(0);
  });

  it("puts back what was taken of every group", async () => {
    const { stockUp, store, asked, used } = setUp();
    const [one, other] = [counter(), counter()];
    const sent = [await stockUp(one, 5), await stockUp(other, 5)];
    asked.mockRejectedValueOnce(new Error("away"));
    const closed = counter({ leasable: false });
    await expect(store.decide([[one], [other], [closed]])).rejects.toThrow("away");
    expect([await used(one), await used(other)]).toEqual(sent);
  });

  it("is a block that is lost: ten seconds later a request asks for another", async () => {
    const { admitted, ask, asked, blocks, useUp } = setUp();
    const quota = counter();
    await admitted(15, quota);
    await useUp(quota);
    asked.mockClear();
    asked.mockRejectedValueOnce(new Error("away"));
    await expect(ask(quota)).rejects.toThrow("away");
    await ask(quota);
    vi.setSystemTime(Date.now() + 10_000);
    await admitted(3, quota);
    expect(blocks().slice(0, 2)).toEqual([expect.any(Number), undefined]);
    expect(blocks().at(-1)).toEqual(expect.any(Number));
  });

  it("does not touch who finds enough here", async () => {
    const { stockUp, asked, ask } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    asked.mockRejectedValue(new Error("away"));
    for (let request = 0; request < 3; request++) expect((await ask(quota)).admitted).toBe(true);
  });
});

describe("several isolates over one store", () => {
  it.each([1, 2, 3, 5])(
    "use all of a limit while they are busy, and no more: %i",
    async (count) => {
      const memory = createMemoryStore();
      const isolates = Array.from({ length: count }, () => setUp({ roundTripMs: 2 }, memory));
      const quota = counter({ limit: 500, windowMs: HOUR });
      let admitted = 0;
      for (let round = 0; round < 600; round++) {
        for (const { ask, tasks } of isolates) {
          if ((await ask(quota)).admitted) admitted++;
          await Promise.all(tasks.splice(0));
        }
      }
      expect(admitted).toBe(500);
    },
  );

  it("are told of what others hold as used, and of what they hold as not", async () => {
    const memory = createMemoryStore();
    const [one, other] = [setUp({}, memory), setUp({}, memory)];
    const quota = counter();
    const sent = await one.stockUp(quota, 5);
    const charged = await one.charged(quota);
    expect(await one.used(quota)).toBe(sent);
    expect(await other.used(quota)).toBe(charged);
  });
});

describe("over a cache of denials", () => {
  it("are used before a denial is told from memory", async () => {
    const memory = createMemoryStore();
    const asked = vi.spyOn(memory, "decide");
    const store = withLeases(withDenialCache(memory), {
      timeoutMs: TIMEOUT_MS,
      background: () => {},
    });
    const quota = counter();
    const ask = async (cost = 1) =>
      (await store.decide([[{ ...quota, cost }]])).groups[0]?.admitted;
    for (let request = 0; request < 20; request++) await ask();
    const { groups } = await memory.decide([[{ ...quota, cost: 0 }]]);
    const charged = groups[0]?.tallies[0]?.count ?? 0;
    await memory.adjust([{ ...quota, cost: 1000 }], NOW);
    expect(await ask(99)).toBe(false);
    asked.mockClear();
    expect(charged).toBeGreaterThan(20);
    for (let request = 20; request < charged; request++) expect(await ask()).toBe(true);
    expect(await ask()).toBe(false);
    expect(asked).not.toHaveBeenCalled();
  });
});
