import { describe, expect, it, vi } from "vitest";
import { StoreError } from "../../../../src/stores/store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
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

describe("a block whose answer is lost", () => {
  it("is the last block until the store answers again", async () => {
    const { admitted, decideSpy, blocks, decide } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 10_000 });
    await admitted(64, quota);
    decideSpy.mockClear();
    decideSpy.mockImplementation((groups) =>
      groups.map(() => Promise.reject(new StoreError("timeout", "no answer in time"))),
    );
    for (let request = 0; request < 200; request++) await decide(quota).catch(() => {});
    expect(blocks().filter((block) => block !== undefined)).toHaveLength(1);
    expect(blocks().length).toBeGreaterThan(50);
  });

  it("is followed by charges without a block for ten seconds, even if calls for other counters succeed", async () => {
    const { admitted, decideSpy, decide } = setUp();
    const [quota, other] = [counter({ windowMs: HOUR, limit: 10_000 }), counter({ key: "other" })];
    const blocksOf = (key: string) =>
      decideSpy.mock.calls.flatMap(([groups]) =>
        groups.flat().flatMap((each) => (each.key === key && each.block) || []),
      );
    await admitted(64, quota);
    decideSpy.mockImplementation((groups) =>
      groups.map(() => Promise.reject(new StoreError("timeout", "no answer in time"))),
    );
    for (let request = 0; request < 100; request++) await decide(quota).catch(() => {});
    decideSpy.mockReset();
    await admitted(9, other);
    await admitted(50, quota);
    expect(blocksOf(quota.key)).toEqual([]);
    at(10_001);
    await admitted(50, quota);
    expect(blocksOf(quota.key)).not.toEqual([]);
  });
});

describe("a block on its way", () => {
  /** Holds the answer to a call for a block. `large` costs all that the client has not used. */
  async function withBlockOnItsWay() {
    const isolate = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100 });
    await isolate.admitted(20, quota);
    await isolate.emptyLease(quota);
    const used = (await isolate.used(quota)) as number;
    const answer = holdNextAnswer(isolate);
    const first = isolate.decide(quota);
    await flushPromises();
    const left = 100 - used - 1;
    expect(100 - (await isolate.charged(quota))).toBeLessThan(left);
    return { ...isolate, ...answer, first, quota, large: { ...quota, cost: left } };
  }

  it("admits a request when it arrives that fits exactly", async () => {
    const { decide, release, first, quota, large, charged } = await withBlockOnItsWay();
    const decided = decide(large);
    await flushPromises();
    release();
    expect(await first).toMatchObject({ admitted: true });
    expect(await decided).toMatchObject({ admitted: true, tallies: [{ count: 100 }] });
    expect(await charged(quota)).toBe(100);
  });

  it.each([
    ["timeout", true],
    ["abandoned", true],
    ["circuit-open", undefined],
  ] as const)(
    "leaves it open whether a second call that fails holds slots: %s",
    async (failure, mayHold) => {
      const { decide, decideSpy, release, first, large } = await withBlockOnItsWay();
      const decided = decide(large, counter({ slot: 7, limit: 1, leasable: false }));
      await flushPromises();
      decideSpy.mockImplementation((groups) =>
        groups.map(() => Promise.reject(new StoreError(failure, "away"))),
      );
      release();
      await first;
      const answer = await decided;
      expect(answer.admitted).toBe(false);
      expect(answer.mayHold).toBe(mayHold);
    },
  );

  it("delays no denial of a request that does not fit", async () => {
    const { decide, large } = await withBlockOnItsWay();
    expect(await decide({ ...large, cost: large.cost + 1 })).toMatchObject({ admitted: false });
  });

  it("delays no denial under a lower limit than the quota used", async () => {
    const { decide, quota } = await withBlockOnItsWay();
    expect(await decide({ ...quota, limit: 5, ceiling: 5 })).toMatchObject({ admitted: false });
  });

  it("leaves a request denied if its answer is lost", async () => {
    const { decide, fail, first, large } = await withBlockOnItsWay();
    const decided = decide(large);
    await flushPromises();
    fail(new StoreError("timeout", "no answer in time"));
    await expect(first).rejects.toThrow();
    expect(await decided).toMatchObject({ admitted: false });
  });

  it("leaves a request denied at its deadline if it does not arrive", async () => {
    const { decide, large } = await withBlockOnItsWay();
    const startedAt = performance.now();
    expect(await decide(large)).toMatchObject({ admitted: false });
    expect(performance.now() - startedAt).toBeLessThan(4 * TIMEOUT_MS);
  });

  it("leaves it to the store whether to deny, although memory knows a count", async () => {
    const { innerStore, store, charged, quota, large, used, release, first } =
      await withBlockOnItsWay();
    const tally = { count: await charged(quota), resetMs: HOUR, banMs: 0 };
    const denialOf = () => ({ now: NOW, admitted: false, tallies: [tally], fromMemory: true });
    Object.assign(innerStore, { denialOf });
    expect(store.denialOf?.([large])).toBeUndefined();
    release();
    await first;
    const left = 100 - ((await used(quota)) as number);
    expect(store.denialOf?.([{ ...quota, cost: left + 1 }])).toBeDefined();
  });
});

describe("a block", () => {
  it("is not taken for a client's first request", async () => {
    const { decide, blocks, charged } = setUp();
    const quota = counter();
    expect(await decide(quota)).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    expect(blocks()).toEqual([undefined]);
    expect(await charged(quota)).toBe(1);
  });

  it("grows with the client's requests, so that calls become rare", async () => {
    const { decide, blocks, charged } = setUp();
    const quota = counter();
    const counts = [];
    for (let request = 1; request <= 60; request++) {
      counts.push((await decide(quota)).tallies[0]?.count);
    }
    const [first, second, ...rest] = blocks();
    expect([first, second]).toEqual([undefined, 2]);
    expect(rest.length).toBeLessThan(6);
    expect(rest).toEqual(rest.toSorted((a, b) => (a as number) - (b as number)));
    expect(await charged(quota)).toBeGreaterThanOrEqual(60);
    // The reported counts do not include the unspent quota of the lease.
    expect(counts).toEqual(Array.from({ length: 60 }, (_, index) => index + 1));
  });

  it("covers the rest of the window if that is less than ten seconds", async () => {
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

  it("becomes smaller when the client sends fewer requests", async () => {
    const { admitted, decideSpy, decide } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100_000 });
    await admitted(64, quota);
    at(30_000);
    decideSpy.mockClear();
    await admitted(4, quota);
    const [block] = decideSpy.mock.calls.flatMap(([groups]) =>
      groups.flat().map((each) => each.block),
    );
    // The counter has 64 / e³ + 1 = 4.2 recent uses.
    expect(block).toBeUndefined();
    at(60_000);
    decideSpy.mockClear();
    await admitted(2, quota);
    await decide(quota);
    expect(decideSpy.mock.calls[0]?.[0][0]?.[0]?.block ?? 0).toBeLessThanOrEqual(3);
  });

  it("is at most an eighth of the quota left, and the whole limit can be used", async () => {
    const { decide, charged } = setUp();
    const quota = counter({ limit: 200 });
    let [before, admitted] = [0, 0];
    for (let request = 0; request < 400; request++) {
      if ((await decide(quota)).admitted) admitted++;
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
  ])("is $charge if the whole limit of $limit is left", async ({ limit, charge }) => {
    const { admitted, decide, charged } = setUp();
    const quota = counter({ limit });
    at(MINUTE - 1);
    await admitted(50, quota);
    at(MINUTE);
    await decide(quota);
    expect(await charged(quota)).toBe(charge);
  });

  it("is not taken for the last seven requests", async () => {
    const { admitted, exhaustElsewhere, memory, charged, decide } = setUp();
    const quota = counter({ limit: 100 });
    await admitted(31, quota);
    await exhaustElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -7 }], NOW);
    while ((await charged(quota)) === 93) await decide(quota);
    expect(await charged(quota)).toBe(94);
  });

  it("is a multiple of the request's cost", async () => {
    const { admitted, blocks, charged, used } = setUp();
    const quota = counter({ cost: 5 });
    expect(await admitted(4, quota)).toBe(4);
    expect(blocks().slice(0, 2)).toEqual([undefined, 10]);
    expect(await charged(quota)).toBeGreaterThanOrEqual(20);
    expect(await used(quota)).toBe(20);
  });

  it("is not taken from a counter that is not leasable", async () => {
    const { admitted, blocks } = setUp();
    const { leasable: _, ...quota } = counter();
    expect(await admitted(9, quota)).toBe(9);
    expect(blocks()).toEqual(Array(9).fill(undefined));
  });

  it("is taken from each counter of a group", async () => {
    const { admitted, charged, used, callsOf } = setUp();
    const group = [counter(), counter({ limit: 500, windowMs: HOUR })];
    expect(await callsOf(() => admitted(31, ...group))).toBeLessThan(7);
    for (const each of group) {
      expect(await charged(each)).toBeGreaterThanOrEqual(31);
      expect(await used(each)).toBe(31);
    }
  });

  it("is requested by one call at a time", async () => {
    const isolate = setUp();
    const { decide, admitted, blocks, decideSpy, emptyLease, callsOf } = isolate;
    const quota = counter();
    await admitted(15, quota);
    await emptyLease(quota);
    const { release } = holdNextAnswer(isolate);
    const waiting = decide(quota);
    expect(blocks().at(-1)).toBeGreaterThan(1);
    decideSpy.mockClear();
    expect(await admitted(5, quota)).toBe(5);
    expect(blocks()).toEqual(Array(5).fill(undefined));
    release();
    expect((await waiting).admitted).toBe(true);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it.each([TIMEOUT_MS - 1, TIMEOUT_MS])(
    "without an answer is requested again only after a second, not before: %i ms",
    async (ms) => {
      const isolate = setUp();
      const quota = counter();
      await isolate.admitted(15, quota);
      await isolate.emptyLease(quota);
      holdNextAnswer(isolate);
      void isolate.decide(quota);
      at(ms);
      isolate.decideSpy.mockClear();
      await isolate.decide(quota);
      expect(isolate.blocks()[0] !== undefined).toBe(ms === TIMEOUT_MS);
    },
  );
});

describe("the next block", () => {
  /** Creates an isolate with a busy client. */
  async function busyIsolate() {
    const isolate = setUp({ roundTripMs: 50 });
    const quota = counter({ limit: 1_000_000, windowMs: HOUR });
    for (let request = 0; request < 150; request++) {
      await isolate.decide(quota);
      await Promise.all(isolate.tasks.splice(0));
    }
    return { ...isolate, quota };
  }

  /**
   * Sends requests until a block is fetched in the background. The fetch gets no answer until the
   * test calls `release`. If the test calls `fail`, the fetch fails.
   */
  async function sendUntilFetch({
    decide,
    tasks,
    decideSpy,
    answer,
    quota,
  }: Awaited<ReturnType<typeof busyIsolate>>) {
    const { promise: released, resolve: release, reject: fail } = Promise.withResolvers<void>();
    decideSpy.mockImplementation((...args) =>
      answer(...args).map((answered) => released.then(() => answered)),
    );
    let requests = 0;
    for (; requests < 500 && tasks.length === 0; requests++) await decide(quota);
    expect(tasks).toHaveLength(1);
    decideSpy.mockImplementation(answer);
    return { release: () => release(), fail, requests };
  }

  it("is fetched before the old block is used up, so that no request waits", async () => {
    const { decide, tasks, decideSpy, quota } = await busyIsolate();
    decideSpy.mockClear();
    let fetched = 0;
    for (let request = 0; request < 1000; request++) {
      expect((await decide(quota)).admitted).toBe(true);
      fetched += tasks.length;
      await Promise.all(tasks.splice(0));
    }
    expect(fetched).toBeGreaterThan(0);
    // All calls to the store were made in the background.
    expect(decideSpy).toHaveBeenCalledTimes(fetched);
    for (const [groups] of decideSpy.mock.calls)
      expect(groups).toMatchObject([[{ block: expect.any(Number) }]]);
  });

  it("is not fetched for a counter that is used once a second", async () => {
    const { decide, tasks } = setUp({ roundTripMs: 50 });
    const quota = counter({ limit: 1_000_000, windowMs: HOUR });
    for (let second = 0; second < 30; second++) {
      at(second * 1000);
      await decide(quota);
    }
    expect(tasks).toEqual([]);
  });

  it("is fetched once, and requests that the lease does not cover call the store meanwhile", async () => {
    const isolate = await busyIsolate();
    const { decide, tasks, decideSpy, blocks, used, quota } = isolate;
    const { release, requests } = await sendUntilFetch(isolate);
    decideSpy.mockClear();
    let sent = 0;
    for (; blocks().length < 3; sent++) expect((await decide(quota)).admitted).toBe(true);
    // No request waited for the pending block, and no second block was requested.
    expect(tasks).toHaveLength(1);
    expect(new Set(blocks())).toEqual(new Set([undefined]));
    release();
    await Promise.all(tasks.splice(0));
    expect(await used(quota)).toBe(150 + requests + sent);
    decideSpy.mockClear();
    await decide(quota);
    expect(decideSpy).not.toHaveBeenCalled();
  });

  it("delays no request when its call fails, and is fetched again ten seconds later", async () => {
    const isolate = await busyIsolate();
    const { decide, tasks, blocks, decideSpy, quota } = isolate;
    const { fail } = await sendUntilFetch(isolate);
    fail(new Error("away"));
    await expect(Promise.all(tasks.splice(0))).resolves.toBeDefined();
    decideSpy.mockClear();
    const sendMany = async () => {
      for (let request = 0; request < 50; request++)
        expect((await decide(quota)).admitted).toBe(true);
    };
    await sendMany();
    expect(blocks().every((block) => block === undefined)).toBe(true);
    vi.setSystemTime(Date.now() + 10_000);
    await sendMany();
    expect(blocks().some((block) => block !== undefined)).toBe(true);
  });

  it("takes the last quota left, and requests can still use it", async () => {
    const { decide, tasks, charged, exhaustElsewhere, memory, quota } = await busyIsolate();
    await exhaustElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -3 }], Date.now());
    let admitted = 0;
    const countNow = async () => (await decide({ ...quota, cost: 0 })).tallies[0]?.count as number;
    const left = quota.ceiling - (await countNow());
    for (let request = 0; request < 1000; request++) {
      if ((await decide(quota)).admitted) admitted++;
      await Promise.all(tasks.splice(0));
    }
    expect(admitted).toBe(left);
    expect(await charged(quota)).toBe(quota.ceiling);
  });
});
