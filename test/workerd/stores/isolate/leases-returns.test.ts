import { describe, expect, it, vi } from "vitest";
import { IDLE_MS } from "../../../../src/stores/isolate/lease-book.ts";
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
} from "./leases-setup.ts";

stopClock();

describe("a lease not used for five seconds", () => {
  it.each([
    { idleMs: IDLE_MS - 1, isReturned: false },
    { idleMs: IDLE_MS, isReturned: true },
  ])(
    "is returned with the next call, whatever its counter; after $idleMs ms: $isReturned",
    async ({ idleMs, isReturned }) => {
      const { fillLease, decide, decideSpy, returns, charged } = setUp();
      const quota = counter();
      const sent = await fillLease(quota, 5);
      const unspent = (await charged(quota)) - sent;
      at(idleMs);
      decideSpy.mockClear();
      await decide(counter());
      const unused = [
        {
          counter: expect.objectContaining({ key: quota.key }),
          quota: unspent,
          window: NOW / MINUTE,
        },
      ];
      expect(returns()).toEqual([isReturned ? unused : []]);
      expect(await charged(quota)).toBe(isReturned ? sent : sent + unspent);
    },
  );

  it("is returned once, and the store can charge its quota again", async () => {
    const { fillLease, decide, admitted, returns, decideSpy, used } = setUp();
    const quota = counter({ limit: 100 });
    const sent = await fillLease(quota, 5);
    at(IDLE_MS);
    await decide(counter());
    decideSpy.mockClear();
    await decide(counter());
    await decide(counter());
    expect(returns()).toEqual([[], []]);
    expect(await used(quota)).toBe(sent);
    expect(await admitted(200, quota)).toBe(100 - sent);
  });

  it("returns quota that another isolate can use", async () => {
    const memory = createMemoryStore();
    const [one, other] = [setUp({}, memory), setUp({}, memory)];
    const quota = counter({ limit: 100 });
    const sent = await one.fillLease(quota, 5);
    const unspent = (await one.charged(quota)) - sent;
    expect(await other.admitted(200, quota)).toBe(100 - sent - unspent);
    at(IDLE_MS);
    await one.decide(counter());
    expect(await other.admitted(200, quota)).toBe(unspent);
  });

  it("is not returned while it is in use", async () => {
    const { fillLease, decide, returns, callsOf } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100_000 });
    await fillLease(quota, 9);
    at(IDLE_MS - 1);
    expect(await callsOf(() => decide(quota))).toBe(0);
    at(IDLE_MS);
    await decide(counter());
    expect(returns().flat()).toEqual([]);
  });

  it.each([MINUTE - 1, MINUTE])(
    "is returned only before the end of its window: %i ms",
    async (pastMs) => {
      const { fillLease, decide, returns } = setUp();
      at(MINUTE - 20_000);
      await fillLease(counter(), 5);
      at(pastMs);
      await decide(counter());
      expect(returns().flat()).toHaveLength(pastMs < MINUTE ? 1 : 0);
    },
  );

  it("is one of at most eight returns in a call", async () => {
    const { fillLease, decide, decideSpy, returns } = setUp();
    for (let client = 0; client < 20; client++) await fillLease(counter(), 3);
    at(IDLE_MS);
    decideSpy.mockClear();
    for (let request = 0; request < 4; request++) await decide(counter());
    expect(returns().map(({ length }) => length)).toEqual([8, 8, 4, 0]);
  });

  it("is returned once, even if the call fails: the quota is then lost, and no limit is exceeded", async () => {
    const { fillLease, decide, decideSpy, returns, admitted, charged } = setUp();
    const quota = counter({ limit: 100 });
    await fillLease(quota, 5);
    const before = await charged(quota);
    at(IDLE_MS);
    decideSpy.mockClear();
    decideSpy.mockImplementationOnce((groups) =>
      groups.map(() => Promise.reject(new Error("away"))),
    );
    await expect(decide(counter())).rejects.toThrow("away");
    await decide(counter());
    expect(returns().map(({ length }) => length)).toEqual([1, 0]);
    expect(await admitted(200, quota)).toBe(100 - before);
  });
});

describe("a released lease", () => {
  /**
   * Fills leases for `count` counters. A call for the same counters under another limit then
   * releases these leases, and `requests` requests for new counters follow. Returns the number of
   * leases that each call returned to the store.
   */
  async function releaseLeases(count: number, requests = 12) {
    const isolate = setUp();
    const quotas = Array.from({ length: count }, () => counter());
    for (const quota of quotas) await isolate.fillLease(quota, 2);
    isolate.decideSpy.mockClear();
    await verdictOf(isolate.store.decide(quotas.map((quota) => [{ ...quota, ceiling: 999 }])));
    for (let request = 0; request < requests; request++) await isolate.decide(counter());
    return isolate.returns().map(({ length }) => length);
  }

  it("is one of at most eight returns in a call", async () => {
    expect((await releaseLeases(20)).slice(0, 4)).toEqual([8, 8, 4, 0]);
  });

  it("is lost if 1,024 returns are waiting", async () => {
    expect(await releaseLeases(1030, 130)).toEqual([...Array(128).fill(8), ...Array(3).fill(0)]);
  });

  it("is returned to the store after an eviction", async () => {
    const { fillLease, decide, charged, returns, decideSpy } = setUp({ maxLeases: 1 });
    const quota = counter({ windowMs: HOUR });
    const sent = await fillLease(quota, 2);
    decideSpy.mockClear();
    at(IDLE_MS - 1);
    // The map of leases adds one new entry in eight, even if it must evict a busy lease.
    for (let request = 0; request < 8; request++) await decide(counter());
    expect(returns().flat()).toHaveLength(1);
    expect(await charged(quota)).toBe(sent);
  });
});

describe("a refund or another adjustment", () => {
  it("applies to the quota used, because unspent quota is returned first", async () => {
    const { store, fillLease, charged, admitted } = setUp();
    const quota = counter({ limit: 100 });
    const sent = await fillLease(quota, 5);
    expect(await store.adjust([{ ...quota, cost: -2 }])).toMatchObject([{ count: sent - 2 }]);
    expect(await charged(quota)).toBe(sent - 2);
    expect(await store.adjust([{ ...quota, cost: 50 }])).toMatchObject([{ count: sent + 48 }]);
    expect(await admitted(200, quota)).toBe(52 - sent);
  });

  it("does not report a block that arrives during its call as used", async () => {
    const { store, innerStore, fillLease, charged } = setUp();
    const quota = counter({ limit: 100 });
    const adjust = innerStore.adjust;
    let sent = 0;
    vi.spyOn(innerStore, "adjust").mockImplementation(async (...args) => {
      sent = await fillLease(quota, 5);
      return adjust(...args);
    });
    const tallies = await store.adjust([{ ...quota, cost: 2 }]);
    expect(await charged(quota)).toBeGreaterThan(sent + 2);
    expect(tallies).toMatchObject([{ count: sent + 2 }]);
  });

  it("of more than the quota used leaves exactly the whole limit", async () => {
    const { store, fillLease, admitted } = setUp();
    const quota = counter({ limit: 100 });
    await fillLease(quota, 5);
    expect(await store.adjust([{ ...quota, cost: -999 }])).toMatchObject([{ count: 0 }]);
    expect(await admitted(200, quota)).toBe(100);
  });

  it("makes no extra call without a lease", async () => {
    const { store, decide, callsOf } = setUp();
    const quota = counter();
    await decide(quota);
    expect(await callsOf(() => store.adjust([quota, counter()]))).toBe(0);
  });

  it("returns no quota of a window that has ended", async () => {
    const { store, fillLease, callsOf } = setUp();
    const quota = counter();
    await fillLease(quota, 5);
    at(MINUTE);
    expect(await callsOf(() => store.adjust([{ ...quota, cost: -1 }]))).toBe(0);
  });
});

describe("a reset", () => {
  it("discards the lease, so that the client has its whole limit", async () => {
    const { store, fillLease, charged, used, admitted, returns } = setUp();
    const quota = counter({ limit: 100 });
    await fillLease(quota, 5);
    await store.reset([quota]);
    expect([await charged(quota), await used(quota)]).toEqual([0, 0]);
    expect(await admitted(200, quota)).toBe(100);
    expect(returns().flat()).toEqual([]);
  });

  it("discards returns that wait for a call", async () => {
    const { store, fillLease, decide, returns, decideSpy } = setUp();
    const quotas = Array.from({ length: 10 }, () => counter());
    for (const quota of quotas) await fillLease(quota, 2);
    // Ten leases are released, and this call returns eight of them.
    await verdictOf(store.decide(quotas.map((quota) => [{ ...quota, ceiling: 999 }])));
    decideSpy.mockClear();
    await store.reset(quotas);
    await decide(counter());
    expect(returns()).toEqual([[]]);
  });

  it("discards a block that was pending", async () => {
    const isolate = setUp();
    const { store, decide, admitted, used } = isolate;
    const quota = counter({ limit: 100 });
    await admitted(15, quota);
    await isolate.emptyLease(quota);
    const { release } = holdNextAnswer(isolate);
    const before = decide(quota);
    await flushPromises();
    await store.reset([quota]);
    release();
    expect((await before).admitted).toBe(true);
    expect(await used(quota)).toBe(0);
    expect(await admitted(200, quota)).toBe(100);
  });

  it("leaves the leases of other counters", async () => {
    const { store, fillLease, decide, callsOf } = setUp();
    const [quota, other] = [counter(), counter()];
    await fillLease(other, 5);
    await store.reset([quota]);
    expect(await callsOf(() => decide(other))).toBe(0);
  });
});
