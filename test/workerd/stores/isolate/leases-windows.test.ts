import { describe, expect, it, vi } from "vitest";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
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

describe("a window's end", () => {
  it("ends what lies here, to the millisecond", async () => {
    const { stockUp, callsOf, ask, charged } = setUp();
    const quota = counter();
    at(50_000);
    await stockUp(quota, 5);
    at(MINUTE - 1);
    expect(await callsOf(() => ask(quota))).toBe(0);
    at(MINUTE);
    expect(await callsOf(() => ask(quota))).toBe(1);
    expect(await charged(quota)).toBeGreaterThan(0);
  });

  it.each([20_000, -20_000])("is the store's, with a clock %i ms from ours", async (skewMs) => {
    const { stockUp, callsOf, ask, admitted, used } = setUp({ skewMs });
    const quota = counter({ limit: 100 });
    const end = MINUTE - skewMs;
    at(end - 4000);
    await stockUp(quota, 3);
    at(end - 1);
    expect(await callsOf(() => ask(quota))).toBe(0);
    at(end);
    expect(await callsOf(() => ask(quota))).toBe(1);
    expect(await used(quota)).toBe(1);
    expect(await admitted(200, quota)).toBe(99);
  });

  it("counts from when the store was asked: a call's way back is taken off", async () => {
    const { stockUp, callsOf, ask, asked, answer } = setUp();
    const quota = counter();
    at(50_000);
    await stockUp(quota, 1);
    while ((await callsOf(() => ask(quota))) === 0);
    // There at once, and back after 300 ms. Then the window is known to end within its last 300.
    while (true) {
      const before = asked.mock.calls.length;
      asked.mockImplementationOnce(async (...args) => {
        vi.setSystemTime(Date.now() + 300);
        return await answer(...args);
      });
      await ask(quota);
      if (asked.mock.calls.length > before) break;
    }
    at(MINUTE - 301);
    expect(await callsOf(() => ask(quota))).toBe(0);
    at(MINUTE - 300);
    expect(await callsOf(() => ask(quota))).toBe(1);
  });

  it("lets nothing be put back that was taken before it", async () => {
    const isolate = setUp();
    const { stockUp, ask, admitted, charged, used } = isolate;
    const [quota, full] = [counter({ limit: 200 }), counter({ limit: 0, leasable: false })];
    at(MINUTE - 10_000);
    await stockUp(quota, 5);
    const { release } = holdNext(isolate);
    const denied = ask(quota, full);
    at(MINUTE);
    const [here, before] = [await admitted(20, quota), await used(quota)];
    const chargedBefore = await charged(quota);
    release();
    expect((await denied).admitted).toBe(false);
    expect([here, before, await used(quota), await charged(quota)]).toEqual([
      20,
      20,
      20,
      chargedBefore,
    ]);
    expect(await admitted(999, quota)).toBe(180);
  });

  it("has an answer dropped that was overtaken by one of the next window", async () => {
    const isolate = setUp();
    const { ask, admitted, stockUp, callsOf, used, charged } = isolate;
    const quota = counter({ limit: 200 });
    at(MINUTE - 10_000);
    await admitted(15, quota);
    await isolate.useUp(quota);
    const { release } = holdNext(isolate);
    const overtaken = ask(quota);
    await settle();
    at(MINUTE);
    const sent = await stockUp(quota, 5);
    const here = (await charged(quota)) - sent;
    release();
    expect((await overtaken).admitted).toBe(true);
    expect(await callsOf(() => admitted(here, quota))).toBe(0);
    expect(await used(quota)).toBe(sent + here);
    expect(await admitted(999, quota)).toBe(200 - sent - here);
  });

  it("drops what a later answer of the old window would bring", async () => {
    const isolate = setUp();
    const { ask, admitted, used } = isolate;
    const quota = counter({ limit: 200 });
    at(MINUTE - 10_000);
    await admitted(15, quota);
    await isolate.useUp(quota);
    const { release } = holdNext(isolate);
    const late = ask(quota);
    await settle();
    at(MINUTE);
    release();
    expect((await late).admitted).toBe(true);
    expect(await used(quota)).toBe(0);
    expect(await admitted(999, quota)).toBe(200);
  });
});

describe("a clock that goes back", () => {
  it("ends every lease, whose end is known by that clock, and gives its quota back", async () => {
    const { stockUp, ask, asked, callsOf, blocks, givenBack, charged } = setUp();
    const quota = counter({ windowMs: HOUR });
    at(20_000);
    const sent = await stockUp(quota, 5);
    at(19_999);
    asked.mockClear();
    expect(await callsOf(() => ask(quota))).toBe(1);
    expect(blocks()).toEqual([undefined]);
    expect(givenBack().flat()).toHaveLength(1);
    expect(await charged(quota)).toBe(sent + 1);
    await stockUp(quota, 5);
    expect(await callsOf(() => ask(quota))).toBe(0);
  });

  it("while a block is under way gives that block back", async () => {
    const isolate = setUp();
    const quota = counter({ windowMs: HOUR, limit: 100 });
    at(20_000);
    const before = await isolate.admitted(15, quota);
    const sent = before + (await isolate.useUp(quota));
    const { release } = holdNext(isolate);
    const first = isolate.ask(quota);
    await settle();
    at(10_000);
    release();
    expect((await first).admitted).toBe(true);
    await isolate.ask(counter());
    expect(await isolate.charged(quota)).toBe(sent + 1);
  });

  it.each([1, 1000, 4000, 9000, 20_000, 40_000])(
    "by %i ms admits no request too many",
    async (backMs) => {
      const memory = createMemoryStore();
      /** The store's clock goes on. Ours is behind it by so much, from the step on. */
      let behindMs = 0;
      const storeNow = () => Date.now() + behindMs;
      const isolate = withLeases(
        { ...memory, decide: (groups, _, unused) => memory.decide(groups, storeNow(), unused) },
        { timeoutMs: TIMEOUT_MS, background: (task) => void task },
      );
      const quota = counter({ limit: 51 });
      const send = async (requests: number) => {
        let count = 0;
        for (let request = 0; request < requests; request++) {
          if ((await isolate.decide([[quota]])).groups[0]?.admitted) count++;
        }
        return count;
      };
      // Until four are leased, of which two are used a while later.
      const countOf = async (store: Store) =>
        (await store.decide([[{ ...quota, cost: 0 }]])).groups[0]?.tallies[0]?.count as number;
      while ((await countOf(memory)) - (await countOf(isolate)) < 4) await send(1);
      at(45_000);
      await send(1);
      behindMs = backMs;
      at(45_000 - backMs);
      await send(1);
      // Just into the store's next window, in which another isolate uses half of the limit.
      vi.setSystemTime(NOW + MINUTE - backMs);
      await memory.adjust([{ ...quota, cost: 25 }], storeNow());
      expect(await send(200)).toBe(26);
    },
  );

  it("into the window before admits no more than its limit, nor than the next one's", async () => {
    const { store } = setUp();
    const quota = counter({ limit: 100 });
    const admittedAt = async (pastMs: number, requests: number) => {
      let count = 0;
      for (let request = 0; request < requests; request++) {
        if ((await store.decide([[quota]], NOW + pastMs)).groups[0]?.admitted) count++;
      }
      return count;
    };
    expect(await admittedAt(59_500, 40)).toBe(40);
    expect(await admittedAt(60_100, 40)).toBe(40);
    expect(await admittedAt(59_900, 99)).toBeLessThanOrEqual(60);
    expect(await admittedAt(60_100, 99)).toBeLessThanOrEqual(60);
  });
});

describe("a store's clock that is put back", () => {
  it("costs no more than the window that was known", async () => {
    const memory = createMemoryStore();
    const back = { ms: 0 };
    const store = withLeases(
      {
        ...memory,
        decide: (groups, _, unused) => memory.decide(groups, Date.now() - back.ms, unused),
      },
      { timeoutMs: TIMEOUT_MS, background: () => {} },
    );
    const quota = counter({ limit: 100 });
    const admitted = async () => {
      let count = 0;
      for (let request = 0; request < 300; request++) {
        if ((await store.decide([[quota]])).groups[0]?.admitted) count++;
      }
      return count;
    };
    expect(await admitted()).toBe(100);
    at(61_000);
    back.ms = HOUR;
    expect(await admitted()).toBe(100);
    at(121_000);
    expect(await admitted()).toBe(100);
  });
});
