import { describe, expect, it, vi } from "vitest";
import { StoreError } from "../../../../src/stores/store-error.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { at, counter, holdNext, MINUTE, setUp, standStill, TIMEOUT_MS } from "./leases-setup.ts";

standStill();

describe("a block whose answer is lost", () => {
  it("is the last one until the store answers again", async () => {
    const { admitted, asked, blocks, ask } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 10_000 });
    await admitted(64, quota);
    asked.mockClear();
    asked.mockRejectedValue(new StoreError("timeout", "no answer in time"));
    for (let request = 0; request < 200; request++) await ask(quota).catch(() => {});
    expect(blocks().filter((block) => block !== undefined)).toHaveLength(1);
    expect(blocks().length).toBeGreaterThan(50);
  });

  it("is followed by single charges for ten seconds, though other counters are answered", async () => {
    const { admitted, asked, ask } = setUp();
    const [quota, other] = [counter({ windowMs: HOUR, limit: 10_000 }), counter({ key: "other" })];
    const blocksOf = (key: string) =>
      asked.mock.calls.flatMap(([groups]) =>
        groups.flat().flatMap((each) => (each.key === key && each.block) || []),
      );
    await admitted(64, quota);
    asked.mockRejectedValue(new StoreError("timeout", "no answer in time"));
    for (let request = 0; request < 100; request++) await ask(quota).catch(() => {});
    asked.mockReset();
    await admitted(9, other);
    await admitted(50, quota);
    expect(blocksOf(quota.key)).toEqual([]);
    at(10_001);
    await admitted(50, quota);
    expect(blocksOf(quota.key)).not.toEqual([]);
  });
});

describe("a block", () => {
  it("is not taken for a client's first request", async () => {
    const { ask, blocks, charged } = setUp();
    const quota = counter();
    expect(await ask(quota)).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    expect(blocks()).toEqual([undefined]);
    expect(await charged(quota)).toBe(1);
  });

  it("grows with the demand, so calls become rare", async () => {
    const { ask, blocks, charged } = setUp();
    const quota = counter();
    const counts = [];
    for (let request = 1; request <= 60; request++) {
      counts.push((await ask(quota)).tallies[0]?.count);
    }
    const [first, second, ...rest] = blocks();
    expect([first, second]).toEqual([undefined, 2]);
    expect(rest.length).toBeLessThan(6);
    expect(rest).toEqual(rest.toSorted((a, b) => (a as number) - (b as number)));
    expect(await charged(quota)).toBeGreaterThanOrEqual(60);
    // What lies here is not said to be used.
    expect(counts).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
  });

  it("is for the rest of the window, where that is less than ten seconds", async () => {
    const blocksAt = async (leftMs: number) => {
      const { admitted, blocks } = setUp();
      at(MINUTE - leftMs);
      await admitted(40, counter());
      return blocks().reduce<number>((sum, block) => sum + (block ?? 0), 0);
    };
    expect(await blocksAt(10_000)).toBe(await blocksAt(MINUTE));
    expect(await blocksAt(5000)).toBeLessThan(await blocksAt(10_000));
    expect(await blocksAt(1)).toBe(0);
  });

  it("is smaller for a demand that is past", async () => {
    const { admitted, asked, ask } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100_000 });
    await admitted(64, quota);
    at(30_000);
    asked.mockClear();
    await admitted(4, quota);
    const [block] = asked.mock.calls.flatMap(([groups]) => groups.flat().map((each) => each.block));
    // 64 / e³, and this one: 4.2.
    expect(block).toBeUndefined();
    at(60_000);
    asked.mockClear();
    await admitted(2, quota);
    await ask(quota);
    expect(asked.mock.calls[0]?.[0][0]?.[0]?.block ?? 0).toBeLessThanOrEqual(3);
  });

  it("is at most an eighth of the room, and all of the limit is used", async () => {
    const { ask, charged } = setUp();
    const quota = counter({ limit: 200 });
    let [before, admitted] = [0, 0];
    for (let request = 0; request < 400; request++) {
      if ((await ask(quota)).admitted) admitted++;
      const after = await charged(quota);
      const share = Math.max(1, Math.floor((200 - before) / 8));
      expect(after - before).toBeLessThanOrEqual(share);
      before = after;
    }
    expect(admitted).toBe(200);
  });

  it.each([
    { limit: 15, charge: 1 },
    { limit: 16, charge: 2 },
  ])("of a window's whole limit of $limit is $charge", async ({ limit, charge }) => {
    const { admitted, ask, charged } = setUp();
    const quota = counter({ limit });
    at(MINUTE - 1);
    await admitted(50, quota);
    at(MINUTE);
    await ask(quota);
    expect(await charged(quota)).toBe(charge);
  });

  it("is of the last seven requests none", async () => {
    const { admitted, useUpElsewhere, memory, charged, ask } = setUp();
    const quota = counter({ limit: 100 });
    await admitted(31, quota);
    await useUpElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -7 }], NOW);
    while ((await charged(quota)) === 93) await ask(quota);
    expect(await charged(quota)).toBe(94);
  });

  it("holds for several of a request's cost", async () => {
    const { admitted, blocks, charged, used } = setUp();
    const quota = counter({ cost: 5 });
    expect(await admitted(4, quota)).toBe(4);
    expect(blocks().slice(0, 2)).toEqual([undefined, 10]);
    expect(await charged(quota)).toBeGreaterThanOrEqual(20);
    expect(await used(quota)).toBe(20);
  });

  it("is taken of no counter that must not be leased", async () => {
    const { admitted, blocks } = setUp();
    const { leasable: _, ...quota } = counter();
    expect(await admitted(9, quota)).toBe(9);
    expect(blocks()).toEqual(Array(9).fill(undefined));
  });

  it("is taken for each counter of a group", async () => {
    const { admitted, charged, used, callsOf } = setUp();
    const group = [counter(), counter({ limit: 500, windowMs: HOUR })];
    expect(await callsOf(() => admitted(31, ...group))).toBeLessThan(7);
    for (const each of group) {
      expect(await charged(each)).toBeGreaterThanOrEqual(31);
      expect(await used(each)).toBe(31);
    }
  });

  it("is asked for by one call at a time", async () => {
    const isolate = setUp();
    const { ask, admitted, blocks, asked, useUp, callsOf } = isolate;
    const quota = counter();
    await admitted(15, quota);
    await useUp(quota);
    const { release } = holdNext(isolate);
    const waiting = ask(quota);
    expect(blocks().at(-1)).toBeGreaterThan(1);
    asked.mockClear();
    expect(await admitted(5, quota)).toBe(5);
    expect(blocks()).toEqual(Array(5).fill(undefined));
    release();
    expect((await waiting).admitted).toBe(true);
    expect(await callsOf(() => ask(quota))).toBe(0);
  });

  it.each([TIMEOUT_MS - 1, TIMEOUT_MS])(
    "that is lost may be asked for again after a second: %i ms",
    async (ms) => {
      const isolate = setUp();
      const quota = counter();
      await isolate.admitted(15, quota);
      await isolate.useUp(quota);
      holdNext(isolate);
      void isolate.ask(quota);
      at(ms);
      isolate.asked.mockClear();
      await isolate.ask(quota);
      expect(isolate.blocks()[0] !== undefined).toBe(ms === TIMEOUT_MS);
    },
  );
});

describe("a fresh block", () => {
  /** An isolate that has become busy, and what it does when a block is about to end. */
  async function busy() {
    const isolate = setUp({ roundTripMs: 50 });
    const quota = counter({ limit: 1_000_000, windowMs: HOUR });
    for (let request = 0; request < 150; request++) {
      await isolate.ask(quota);
      await Promise.all(isolate.tasks.splice(0));
    }
    return { ...isolate, quota };
  }

  /** Requests until a block is fetched in the background; that call then waits. */
  async function untilFetched({
    ask,
    tasks,
    asked,
    answer,
    quota,
  }: Awaited<ReturnType<typeof busy>>) {
    const { promise: released, resolve: release, reject: fail } = Promise.withResolvers<void>();
    asked.mockImplementation(async (...args) => {
      const verdict = await answer(...args);
      await released;
      return verdict;
    });
    let requests = 0;
    for (; requests < 500 && tasks.length === 0; requests++) await ask(quota);
    expect(tasks).toHaveLength(1);
    asked.mockImplementation(answer);
    return { release: () => release(), fail, requests };
  }

  it("is fetched before the old one ends: no request waits", async () => {
    const { ask, tasks, asked, quota } = await busy();
    asked.mockClear();
    let fetched = 0;
    for (let request = 0; request < 1000; request++) {
      expect((await ask(quota)).admitted).toBe(true);
      fetched += tasks.length;
      await Promise.all(tasks.splice(0));
    }
    expect(fetched).toBeGreaterThan(0);
    // All calls were the background's.
    expect(asked).toHaveBeenCalledTimes(fetched);
    for (const [groups] of asked.mock.calls)
      expect(groups).toMatchObject([[{ block: expect.any(Number) }]]);
  });

  it("is not fetched for a counter that is asked for once a second", async () => {
    const { ask, tasks } = setUp({ roundTripMs: 50 });
    const quota = counter({ limit: 1_000_000, windowMs: HOUR });
    for (let second = 0; second < 30; second++) {
      at(second * 1000);
      await ask(quota);
    }
    expect(tasks).toEqual([]);
  });

  it("is fetched once, and who finds none here asks for itself meanwhile", async () => {
    const isolate = await busy();
    const { ask, tasks, asked, blocks, used, quota } = isolate;
    const { release, requests } = await untilFetched(isolate);
    asked.mockClear();
    let sent = 0;
    for (; blocks().length < 3; sent++) expect((await ask(quota)).admitted).toBe(true);
    // Nobody waited for the block that is under way, and no other one was asked for.
    expect(tasks).toHaveLength(1);
    expect(new Set(blocks())).toEqual(new Set([undefined]));
    release();
    await Promise.all(tasks.splice(0));
    expect(await used(quota)).toBe(150 + requests + sent);
    asked.mockClear();
    await ask(quota);
    expect(asked).not.toHaveBeenCalled();
  });

  it("that fails delays no request, and is fetched again ten seconds later", async () => {
    const isolate = await busy();
    const { ask, tasks, blocks, asked, quota } = isolate;
    const { fail } = await untilFetched(isolate);
    fail(new Error("away"));
    await expect(Promise.all(tasks.splice(0))).resolves.toBeDefined();
    asked.mockClear();
    const askOften = async () => {
      for (let request = 0; request < 50; request++) expect((await ask(quota)).admitted).toBe(true);
    };
    await askOften();
    expect(blocks().every((block) => block === undefined)).toBe(true);
    vi.setSystemTime(Date.now() + 10_000);
    await askOften();
    expect(blocks().some((block) => block !== undefined)).toBe(true);
  });

  it("takes the last that there is, and that can still be used", async () => {
    const { ask, tasks, charged, useUpElsewhere, memory, quota } = await busy();
    await useUpElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -3 }], Date.now());
    let admitted = 0;
    const lies = async () => (await ask({ ...quota, cost: 0 })).tallies[0]?.count as number;
    const left = quota.ceiling - (await lies());
    for (let request = 0; request < 1000; request++) {
      if ((await ask(quota)).admitted) admitted++;
      await Promise.all(tasks.splice(0));
    }
    expect(admitted).toBe(left);
    expect(await charged(quota)).toBe(quota.ceiling);
  });
});
