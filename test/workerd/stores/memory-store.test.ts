import { describe, expect, it } from "vitest";
import { type Demand, storedKey, windowAt } from "../../../src/engine/counter.ts";
import { EXPIRY_GRACE_MS } from "../../../src/engine/fixed-window.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { counter } from "../../suite/counters.ts";
import { HOUR } from "../../suite/driver.ts";
import { randomOf } from "../../suite/random.ts";
import { verdictOf } from "../../suite/verdict.ts";

describe("a bounded memory store", () => {
  it("rejects a counter when it is full, and drops none", async () => {
    const store = createMemoryStore(2);
    const [first, second, third] = [counter(), counter(), counter()];
    await verdictOf(store.decide([[first, second]], 0));
    await expect(verdictOf(store.decide([[third]], 0))).rejects.toMatchObject({
      failure: "memory-full",
    });
    await expect(verdictOf(store.decide([[first]], 0))).resolves.toMatchObject({
      groups: [{ admitted: true, tallies: [{ count: 2 }] }],
    });
  });

  it("stores new counters after windows have ended", async () => {
    const store = createMemoryStore(2);
    await verdictOf(store.decide([[counter(), counter()]], 0));
    await expect(verdictOf(store.decide([[counter()]], 60_999))).rejects.toMatchObject({
      failure: "memory-full",
    });
    await expect(verdictOf(store.decide([[counter(), counter()]], 61_000))).resolves.toBeDefined();
  });

  it("stores new counters after others have expired, however often it was full", async () => {
    const store = createMemoryStore(4);
    const minute = () => counter();
    const hour = () => counter({ windowMs: HOUR });
    await verdictOf(store.decide([[hour(), hour(), minute(), minute()]], 0));
    await verdictOf(store.decide([[minute(), minute()]], 61_000));
    await expect(verdictOf(store.decide([[minute()]], 120_999))).rejects.toMatchObject({
      failure: "memory-full",
    });
    await verdictOf(store.decide([[minute(), minute()]], 121_000));
    // All counters expire before each request.
    for (let time = 2 * HOUR; time < 9 * HOUR; time += 61_000) {
      await verdictOf(store.decide([[minute(), minute(), minute(), minute()]], time));
    }
  });

  it("replaces a row that was written after others but expires before them", async () => {
    const store = createMemoryStore(2);
    const [first, second] = [counter({ windowMs: HOUR }), counter({ windowMs: HOUR })];
    await verdictOf(store.decide([[first, second]], 0));
    await expect(verdictOf(store.decide([[counter()]], 0))).rejects.toMatchObject({
      failure: "memory-full",
    });
    await store.reset([second], 0);
    await verdictOf(store.decide([[counter()]], 0));
    await expect(verdictOf(store.decide([[counter()]], 61_000))).resolves.toBeDefined();
  });

  it("keeps a counter that rolls over until its quota is repaid", async () => {
    const store = createMemoryStore(1);
    const rolling = counter({ limit: 1, ceiling: 9, rollsOver: true });
    for (let request = 0; request < 3; request++) await verdictOf(store.decide([[rolling]], 0));
    await expect(verdictOf(store.decide([[counter()]], 180_999))).rejects.toMatchObject({
      failure: "memory-full",
    });
    await expect(verdictOf(store.decide([[counter()]], 181_000))).resolves.toBeDefined();
  });

  it.each([1, 2, 3])(
    "is full exactly when a map that checks every row is full, seed %i",
    async (seed) => {
      const store = createMemoryStore(20);
      const random = randomOf(seed);
      const expiries = new Map<string, number>();
      const quotas = Array.from({ length: 60 }, () =>
        counter({ windowMs: [1000, 5000, 60_000][random(3)] as number, limit: 1_000_000 }),
      );
      let now = 0;
      for (let step = 0; step < 5000; step++) {
        now += random(4) === 0 ? random(2000) : 0;
        const quota = quotas[random(quotas.length)] as Demand;
        const key = storedKey(quota, now);
        if (random(8) === 0) {
          await store.reset([quota], now);
          expiries.delete(key);
          continue;
        }
        const live = [...expiries.values()].filter((expiresAt) => expiresAt > now).length;
        const isFull = live >= 20 && !((expiries.get(key) ?? 0) > now);
        const { failure } = await verdictOf(store.decide([[quota]], now)).then(
          () => ({ failure: undefined }),
          (error) => error,
        );
        expect(failure).toBe(isFull ? "memory-full" : undefined);
        if (!isFull) expiries.set(key, windowAt(now, quota).endsAt + EXPIRY_GRACE_MS);
      }
    },
  );

  it("has space for enforced rules even if rules in shadow mode fill their own space", async () => {
    const store = createMemoryStore(2);
    const shadow = () => counter({ shadow: true });
    await verdictOf(store.decide([[shadow()], [shadow()], [counter()]], 0));
    expect(await Promise.allSettled(store.decide([[counter()], [shadow()]], 0))).toMatchObject([
      { value: { admitted: true } },
      { reason: { failure: "memory-full" } },
    ]);
    await expect(verdictOf(store.decide([[counter()]], 0))).rejects.toMatchObject({
      failure: "memory-full",
    });
  });

  it("finds the counter of a rule in shadow mode if the counter is requested without this mode", async () => {
    const store = createMemoryStore(2);
    const shadowCounter = counter({ shadow: true });
    await verdictOf(store.decide([[shadowCounter]], 0));
    const { shadow, ...shown } = shadowCounter;
    const read = () => verdictOf(store.decide([[{ ...shown, cost: 0 }]], 0));
    expect(await read()).toMatchObject({ groups: [{ tallies: [{ count: 1 }] }] });
    await store.reset([shown], 0);
    expect(await read()).toMatchObject({ groups: [{ tallies: [{ count: 0 }] }] });
  });
});
