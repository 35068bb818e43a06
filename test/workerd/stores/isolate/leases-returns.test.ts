import { describe, expect, it } from "vitest";
import { IDLE_MS } from "../../../../src/stores/isolate/lease.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import { HOUR, NOW } from "../../../suite/driver.ts";
import { at, counter, holdNext, MINUTE, settle, setUp, standStill } from "./leases-setup.ts";

standStill();

describe("what has not been used for five seconds", () => {
  it.each([
    { idleMs: IDLE_MS - 1, isGiven: false },
    { idleMs: IDLE_MS, isGiven: true },
  ])(
    "is given back with the next call, whatever that is about: $idleMs ms, $isGiven",
    async ({ idleMs, isGiven }) => {
      const { stockUp, ask, asked, givenBack, charged } = setUp();
      const quota = counter();
      const sent = await stockUp(quota, 5);
      const here = (await charged(quota)) - sent;
      at(idleMs);
      asked.mockClear();
      await ask(counter());
      const unused = [
        { counter: expect.objectContaining({ key: quota.key }), quota: here, window: NOW / MINUTE },
      ];
      expect(givenBack()).toEqual([isGiven ? unused : []]);
      expect(await charged(quota)).toBe(isGiven ? sent : sent + here);
    },
  );

  it("is given back once, and then bought again", async () => {
    const { stockUp, ask, admitted, givenBack, asked, used } = setUp();
    const quota = counter({ limit: 100 });
    const sent = await stockUp(quota, 5);
    at(IDLE_MS);
    await ask(counter());
    asked.mockClear();
    await ask(counter());
    await ask(counter());
    expect(givenBack()).toEqual([[], []]);
    expect(await used(quota)).toBe(sent);
    expect(await admitted(200, quota)).toBe(100 - sent);
  });

  it("can be used by another isolate", async () => {
    const memory = createMemoryStore();
    const [one, other] = [setUp({}, memory), setUp({}, memory)];
    const quota = counter({ limit: 100 });
    const sent = await one.stockUp(quota, 5);
    const here = (await one.charged(quota)) - sent;
    expect(await other.admitted(200, quota)).toBe(100 - sent - here);
    at(IDLE_MS);
    await one.ask(counter());
    expect(await other.admitted(200, quota)).toBe(here);
  });

  it("is not given back while it is in use", async () => {
    const { stockUp, ask, givenBack, callsOf } = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100_000 });
    await stockUp(quota, 9);
    at(IDLE_MS - 1);
    expect(await callsOf(() => ask(quota))).toBe(0);
    at(IDLE_MS);
    await ask(counter());
    expect(givenBack().flat()).toEqual([]);
  });

  it.each([MINUTE - 1, MINUTE])(
    "is not given back when its window has ended: %i ms",
    async (pastMs) => {
      const { stockUp, ask, givenBack } = setUp();
      at(MINUTE - 20_000);
      await stockUp(counter(), 5);
      at(pastMs);
      await ask(counter());
      expect(givenBack().flat()).toHaveLength(pastMs < MINUTE ? 1 : 0);
    },
  );

  it("of many counters is given back eight at a time", async () => {
    const { stockUp, ask, asked, givenBack } = setUp();
    for (let client = 0; client < 20; client++) await stockUp(counter(), 3);
    at(IDLE_MS);
    asked.mockClear();
    for (let request = 0; request < 4; request++) await ask(counter());
    expect(givenBack().map(({ length }) => length)).toEqual([8, 8, 4, 0]);
  });

  it("is tried to be given back once: a failure loses it, and is no request too many", async () => {
    const { stockUp, ask, asked, givenBack, admitted, charged } = setUp();
    const quota = counter({ limit: 100 });
    await stockUp(quota, 5);
    const before = await charged(quota);
    at(IDLE_MS);
    asked.mockClear();
    asked.mockRejectedValueOnce(new Error("away"));
    await expect(ask(counter())).rejects.toThrow("away");
    await ask(counter());
    expect(givenBack().map(({ length }) => length)).toEqual([1, 0]);
    expect(await admitted(200, quota)).toBe(100 - before);
  });
});

describe("what is given up", () => {
  /** Leases of so many counters, all of which are asked for at another limit in one call. */
  async function giveUp(count: number, requests = 12) {
    const isolate = setUp();
    const quotas = Array.from({ length: count }, () => counter());
    for (const quota of quotas) await isolate.stockUp(quota, 2);
    isolate.asked.mockClear();
    await isolate.store.decide(quotas.map((quota) => [{ ...quota, ceiling: 999 }]));
    for (let request = 0; request < requests; request++) await isolate.ask(counter());
    return isolate.givenBack().map(({ length }) => length);
  }

  it("is given back eight at a time", async () => {
    expect((await giveUp(20)).slice(0, 4)).toEqual([8, 8, 4, 0]);
  });

  it("is lost of more than 1,024 counters that wait already", async () => {
    expect(await giveUp(1030, 130)).toEqual([...Array(128).fill(8), ...Array(3).fill(0)]);
  });

  it("goes back when a lease is evicted", async () => {
    const { stockUp, ask, charged, givenBack, asked } = setUp({ maxLeases: 1 });
    const quota = counter({ windowMs: HOUR });
    const sent = await stockUp(quota, 2);
    asked.mockClear();
    at(IDLE_MS - 1);
    // One of eight gets in, also where the lease is still hot.
    for (let request = 0; request < 8; request++) await ask(counter());
    expect(givenBack().flat()).toHaveLength(1);
    expect(await charged(quota)).toBe(sent);
  });
});

describe("a refund or another adjustment", () => {
  it("sees what was used: what lies here is given back first", async () => {
    const { store, stockUp, charged, admitted } = setUp();
    const quota = counter({ limit: 100 });
    const sent = await stockUp(quota, 5);
    expect(await store.adjust([{ ...quota, cost: -2 }])).toMatchObject([{ count: sent - 2 }]);
    expect(await charged(quota)).toBe(sent - 2);
    expect(await store.adjust([{ ...quota, cost: 50 }])).toMatchObject([{ count: sent + 48 }]);
    expect(await admitted(200, quota)).toBe(52 - sent);
  });

  it("of more than was used leaves the limit, and nothing above it", async () => {
    const { store, stockUp, admitted } = setUp();
    const quota = counter({ limit: 100 });
    await stockUp(quota, 5);
    expect(await store.adjust([{ ...quota, cost: -999 }])).toMatchObject([{ count: 0 }]);
    expect(await admitted(200, quota)).toBe(100);
  });

  it("makes no call more where nothing lies here", async () => {
    const { store, ask, callsOf } = setUp();
    const quota = counter();
    await ask(quota);
    expect(await callsOf(() => store.adjust([quota, counter()]))).toBe(0);
  });

  it("gives back nothing of a window that has ended", async () => {
    const { store, stockUp, callsOf } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    at(MINUTE);
    expect(await callsOf(() => store.adjust([{ ...quota, cost: -1 }]))).toBe(0);
  });
});

describe("a reset", () => {
  it("forgets what lies here, so the limit is that of a new client", async () => {
    const { store, stockUp, charged, used, admitted, givenBack } = setUp();
    const quota = counter({ limit: 100 });
    await stockUp(quota, 5);
    await store.reset([quota]);
    expect([await charged(quota), await used(quota)]).toEqual([0, 0]);
    expect(await admitted(200, quota)).toBe(100);
    expect(givenBack().flat()).toEqual([]);
  });

  it("forgets what waits to be given back", async () => {
    const { store, stockUp, ask, givenBack, asked } = setUp();
    const quotas = Array.from({ length: 10 }, () => counter());
    for (const quota of quotas) await stockUp(quota, 2);
    // Ten are given up, and eight go back with this call.
    await store.decide(quotas.map((quota) => [{ ...quota, ceiling: 999 }]));
    asked.mockClear();
    await store.reset(quotas);
    await ask(counter());
    expect(givenBack()).toEqual([[]]);
  });

  it("has a block dropped that was under way", async () => {
    const isolate = setUp();
    const { store, ask, admitted, used } = isolate;
    const quota = counter({ limit: 100 });
    await admitted(15, quota);
    await isolate.useUp(quota);
    const { release } = holdNext(isolate);
    const before = ask(quota);
    await settle();
    await store.reset([quota]);
    release();
    expect((await before).admitted).toBe(true);
    expect(await used(quota)).toBe(0);
    expect(await admitted(200, quota)).toBe(100);
  });

  it("leaves what lies here of others", async () => {
    const { store, stockUp, ask, callsOf } = setUp();
    const [quota, other] = [counter(), counter()];
    await stockUp(other, 5);
    await store.reset([quota]);
    expect(await callsOf(() => ask(other))).toBe(0);
  });
});
