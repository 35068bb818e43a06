import { describe, expect, it, vi } from "vitest";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import {
  at,
  countAdmitted,
  counter,
  flushPromises,
  holdNextAnswer,
  leasesOver,
  MINUTE,
  readCount,
  setUp,
  stopClock,
} from "./leases-setup.ts";

stopClock();

describe("a window's end", () => {
  it("ends a lease at exactly this millisecond", async () => {
    const { fillLease, callsOf, decide, charged } = setUp();
    const quota = counter();
    at(50_000);
    await fillLease(quota, 5);
    at(MINUTE - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(MINUTE);
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(await charged(quota)).toBeGreaterThan(0);
  });

  it.each([20_000, -20_000])(
    "comes at the time of the store's clock, which differs by %i ms",
    async (skewMs) => {
      const { fillLease, callsOf, decide, admitted, used } = setUp({ skewMs });
      const quota = counter({ limit: 100 });
      const end = MINUTE - skewMs;
      at(end - 4000);
      await fillLease(quota, 3);
      at(end - 1);
      expect(await callsOf(() => decide(quota))).toBe(0);
      at(end);
      expect(await callsOf(() => decide(quota))).toBe(1);
      expect(await used(quota)).toBe(1);
      expect(await admitted(200, quota)).toBe(99);
    },
  );

  it("is computed from the start of the call, so that a lease never ends too late", async () => {
    const { fillLease, callsOf, decide, decideSpy, answer } = setUp();
    const quota = counter();
    at(50_000);
    await fillLease(quota, 1);
    while ((await callsOf(() => decide(quota))) === 0);
    // The call takes 300 ms to arrive, so the lease ends 300 ms early.
    while (true) {
      const before = decideSpy.mock.calls.length;
      decideSpy.mockImplementationOnce((...args) => {
        vi.setSystemTime(Date.now() + 300);
        return answer(...args);
      });
      await decide(quota);
      if (decideSpy.mock.calls.length > before) break;
    }
    at(MINUTE - 301);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(MINUTE - 300);
    expect(await callsOf(() => decide(quota))).toBe(1);
  });

  it("makes quota invalid that was taken before and is put back afterwards", async () => {
    const isolate = setUp();
    const { fillLease, decide, admitted, charged, used } = isolate;
    const [quota, full] = [counter({ limit: 200 }), counter({ limit: 0, leasable: false })];
    at(MINUTE - 10_000);
    await fillLease(quota, 5);
    const { release } = holdNextAnswer(isolate);
    const denied = decide(quota, full);
    at(MINUTE);
    const [unspent, before] = [await admitted(20, quota), await used(quota)];
    const chargedBefore = await charged(quota);
    release();
    expect((await denied).admitted).toBe(false);
    expect([unspent, before, await used(quota), await charged(quota)]).toEqual([
      20,
      20,
      20,
      chargedBefore,
    ]);
    expect(await admitted(999, quota)).toBe(180);
  });

  it("makes an answer for the old window invalid after an answer for the next window", async () => {
    const isolate = setUp();
    const { decide, admitted, fillLease, callsOf, used, charged } = isolate;
    const quota = counter({ limit: 200 });
    at(MINUTE - 10_000);
    await admitted(15, quota);
    await isolate.emptyLease(quota);
    const { release } = holdNextAnswer(isolate);
    const overtaken = decide(quota);
    await flushPromises();
    at(MINUTE);
    const sent = await fillLease(quota, 5);
    const unspent = (await charged(quota)) - sent;
    release();
    expect((await overtaken).admitted).toBe(true);
    expect(await callsOf(() => admitted(unspent, quota))).toBe(0);
    expect(await used(quota)).toBe(sent + unspent);
    expect(await admitted(999, quota)).toBe(200 - sent - unspent);
  });

  it("makes a block of the old window invalid that arrives late", async () => {
    const isolate = setUp();
    const { decide, admitted, used } = isolate;
    const quota = counter({ limit: 200 });
    at(MINUTE - 10_000);
    await admitted(15, quota);
    await isolate.emptyLease(quota);
    const { release } = holdNextAnswer(isolate);
    const late = decide(quota);
    await flushPromises();
    at(MINUTE);
    release();
    expect((await late).admitted).toBe(true);
    expect(await used(quota)).toBe(0);
    expect(await admitted(999, quota)).toBe(200);
  });
});

describe("a clock that goes back", () => {
  it("ends every lease, and returns its quota", async () => {
    const { fillLease, decide, decideSpy, callsOf, blocks, returns, charged } = setUp();
    const quota = counter({ windowMs: HOUR });
    at(20_000);
    const sent = await fillLease(quota, 5);
    at(19_999);
    decideSpy.mockClear();
    expect(await callsOf(() => decide(quota))).toBe(1);
    expect(blocks()).toEqual([undefined]);
    expect(returns().flat()).toHaveLength(1);
    expect(await charged(quota)).toBe(sent + 1);
    await fillLease(quota, 5);
    expect(await callsOf(() => decide(quota))).toBe(0);
  });

  it("returns a block that was pending", async () => {
    const isolate = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100 });
    at(20_000);
    const before = await isolate.admitted(15, quota);
    const sent = before + (await isolate.emptyLease(quota));
    const { release } = holdNextAnswer(isolate);
    const first = isolate.decide(quota);
    await flushPromises();
    at(10_000);
    release();
    expect((await first).admitted).toBe(true);
    await isolate.decide(counter());
    expect(await isolate.charged(quota)).toBe(sent + 1);
  });

  it.each([1, 1000, 4000, 9000, 20_000, 40_000])(
    "by %i ms never admits more than the limit",
    async (backMs) => {
      const memory = createMemoryStore();
      /**
       * The store's clock minus this isolate's, in milliseconds, after the isolate's clock has
       * stepped back.
       */
      let behindMs = 0;
      const storeNow = () => Date.now() + behindMs;
      const isolate = leasesOver({
        ...memory,
        decide: (groups, _, unused) => memory.decide(groups, storeNow(), unused),
      });
      const quota = counter({ limit: 51 });
      const send = (requests: number) => countAdmitted(requests, quota, isolate);
      // The loop ends when the lease has an unspent quota of 4. The test uses 2 of the 4 later.
      while ((await readCount(memory, quota)) - (await readCount(isolate, quota)) < 4) {
        await send(1);
      }
      at(45_000);
      await send(1);
      behindMs = backMs;
      at(45_000 - backMs);
      await send(1);
      // The store's next window has begun, and another isolate uses 25 of the limit of 51.
      vi.setSystemTime(NOW + MINUTE - backMs);
      await memory.adjust([{ ...quota, cost: 25 }], storeNow());
      expect(await send(200)).toBe(26);
    },
  );

  it("into the previous window admits no more than the limit of each window", async () => {
    const { store } = setUp();
    const quota = counter({ limit: 100 });
    const admittedAt = async (pastMs: number, requests: number) => {
      let count = 0;
      for (let request = 0; request < requests; request++) {
        if ((await verdictOf(store.decide([[quota]], NOW + pastMs))).groups[0]?.admitted) count++;
      }
      return count;
    };
    expect(await admittedAt(59_500, 40)).toBe(40);
    expect(await admittedAt(60_100, 40)).toBe(40);
    expect(await admittedAt(59_900, 99)).toBeLessThanOrEqual(60);
    expect(await admittedAt(60_100, 99)).toBeLessThanOrEqual(60);
  });
});

describe("a store's clock that goes back", () => {
  it("costs at most the quota of one window", async () => {
    const memory = createMemoryStore();
    let backMs = 0;
    const store = leasesOver({
      ...memory,
      decide: (groups, _, unused) => memory.decide(groups, Date.now() - backMs, unused),
    });
    const quota = counter({ limit: 100 });
    const admitted = () => countAdmitted(300, quota, store);
    expect(await admitted()).toBe(100);
    at(61_000);
    backMs = HOUR;
    expect(await admitted()).toBe(100);
    at(121_000);
    expect(await admitted()).toBe(100);
  });
});
