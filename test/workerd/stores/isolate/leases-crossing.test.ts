import { describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/denial-cache.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Answer, Store } from "../../../../src/stores/store.ts";
import { NOW } from "../../../suite/driver.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import {
  counter as anyCounter,
  at,
  countAdmitted,
  flushPromises,
  leasesOver,
  readCount,
  stopClock,
} from "./leases-setup.ts";

stopClock();

const counter = (fields: Partial<Demand> = {}) => anyCounter({ limit: 100, ...fields });

/**
 * Creates a counter whose whole limit is charged in the store. The isolate's lease still has a
 * little unspent quota, and the function returns its amount as `left`.
 */
async function exhaustButLease(store: Store, memory: Store) {
  const quota = counter();
  await countAdmitted(12, quota, store);
  await memory.adjust([{ ...quota, cost: 100 - (await readCount(memory, quota)) }]);
  const left = 100 - (await readCount(store, quota));
  expect(left).toBeGreaterThan(0);
  return { quota, left };
}

describe("with leases,", () => {
  it("quota charged in one call by two clocks is not used in the next window", async () => {
    // This store imitates the Durable Object store, which calls two objects at once and returns the
    // time of the first object as `now`.
    const objects = new Map([
      ["enforced", createMemoryStore()],
      ["shadow", createMemoryStore()],
    ]);
    let laterMs = 0;
    let block = 0;
    const both: Store = {
      ...createMemoryStore(),
      decide: (groups) =>
        groups.map(async (group) => {
          const { identity } = group[0] as Demand;
          const now = Date.now() + (identity === "enforced" ? laterMs : 0);
          const [decided] = (objects.get(identity) as Store).decide([group], now);
          const answer = (await decided) as Answer;
          if (identity === "shadow" && groups.length === 2) {
            block = answer.tallies[0]?.charged ?? 0;
          }
          return answer;
        }),
    };
    const store = leasesOver(both);
    const [enforced, shadow] = [
      counter({ identity: "enforced", limit: 1_000_000 }),
      counter({ identity: "shadow", limit: 1000 }),
    ];
    const decide = async () =>
      (await verdictOf(store.decide([[enforced], [shadow]]))).groups[1]?.admitted;
    at(59_000);
    for (let request = 0; request < 400; request++) await decide();
    at(59_900);
    laterMs = 120;
    block = 0;
    while (block <= 1) await decide();
    at(61_000);
    laterMs = 0;
    let count = 0;
    for (let request = 0; request < 3000; request++) if (await decide()) count++;
    expect(count).toBe(1000);
  });

  it("a reset discards a block that arrives during its call", async () => {
    const memory = createMemoryStore();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const slow: Store = {
      ...memory,
      reset: async (counters) => {
        await reached;
        await memory.reset(counters);
      },
    };
    const store = leasesOver(slow);
    const quota = counter();
    const done = store.reset([quota]);
    await countAdmitted(8, quota, store);
    reach();
    await done;
    expect(await countAdmitted(200, quota, store)).toBe(100);
  });

  it("a reset leaves the leases of other isolates, in addition to the limit", async () => {
    const memory = createMemoryStore();
    const [one, other] = [leasesOver(memory), leasesOver(memory)];
    const quota = counter();
    await countAdmitted(12, quota, other);
    const unspent = (await readCount(memory, quota)) - (await readCount(other, quota));
    await one.reset([quota]);
    expect(unspent).toBeGreaterThan(0);
    expect(await countAdmitted(200, quota, one, other)).toBeLessThanOrEqual(100 + unspent);
  });

  it("a check does not count quota that the same call returns", async () => {
    const memory = createMemoryStore();
    const store = leasesOver(memory);
    const { quota, left } = await exhaustButLease(store, memory);
    const check = async () =>
      (await verdictOf(store.decide([[{ ...quota, cost: left + 1, checkOnly: true }]]))).groups[0]
        ?.admitted;
    at(4999);
    expect(await check()).toBe(false);
    at(5000);
    expect(await check()).toBe(false);
  });

  it("a denial, like an admission, reports unspent lease quota as unused", async () => {
    const memory = createMemoryStore();
    const store = leasesOver(memory);
    const { quota, left } = await exhaustButLease(store, memory);
    const { groups } = await verdictOf(store.decide([[{ ...quota, cost: left + 1 }]]));
    expect(groups).toMatchObject([{ admitted: false, tallies: [{ count: 100 - left }] }]);
  });

  it("a denial from memory comes only from counters whose quota is not leased", async () => {
    const memory = createMemoryStore();
    const store = leasesOver(withDenialCache(memory));
    const { quota, left } = await exhaustButLease(store, memory);
    const larger = { ...quota, cost: left + 1 };
    await verdictOf(store.decide([[larger]]));
    const exhausted = counter({ limit: 1 });
    expect(await countAdmitted(2, exhausted, store)).toBe(1);
    expect(store.denialOf?.([quota])).toBeUndefined();
    expect(store.denialOf?.([larger])).toMatchObject({ admitted: false });
    expect(store.denialOf?.([quota, exhausted])).toMatchObject({ admitted: false });
  });

  it("a denial cache does not deny quota that was just returned through it", async () => {
    const memory = createMemoryStore();
    const store = leasesOver(withDenialCache(memory));
    const { quota, left } = await exhaustButLease(store, memory);
    expect(
      (await verdictOf(store.decide([[{ ...quota, cost: left + 1 }]]))).groups[0]?.admitted,
    ).toBe(false);
    at(5000);
    await verdictOf(store.decide([[counter()]]));
    expect(await readCount(memory, quota)).toBe(100 - left);
    expect(await countAdmitted(1, quota, store)).toBe(1);
  });

  it("an answer that arrives out of order does not lower the reported count", async () => {
    const memory = createMemoryStore();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let isFirst = true;
    const store = leasesOver({
      ...memory,
      decide(...args) {
        const isHeld = isFirst;
        isFirst = false;
        const answers = memory.decide(...args);
        return isHeld ? answers.map((answer) => released.then(() => answer)) : answers;
      },
    });
    const quota = counter({ limit: 1000 });
    const first = verdictOf(store.decide([[quota]]));
    await countAdmitted(32, quota, store);
    release();
    await first;
    const { groups } = await verdictOf(store.decide([[quota]]));
    expect(groups[0]?.tallies[0]?.count).toBe(34);
  });

  it("a block is at most twice the quota used in the last ten seconds", async () => {
    const memory = createMemoryStore();
    const decideSpy = vi.spyOn(memory, "decide");
    const store = leasesOver(memory);
    const quota = counter({ limit: 1_000_000 });
    await countAdmitted(31, quota, store);
    await verdictOf(store.decide([[{ ...quota, cost: 100 }]]));
    expect(decideSpy.mock.lastCall?.[0][0]?.[0]?.block ?? 0).toBeLessThanOrEqual(2 * 131);
  });

  it("reading a counter above its ceiling takes one call", async () => {
    const memory = createMemoryStore();
    const decideSpy = vi.spyOn(memory, "decide");
    const store = leasesOver(memory);
    const quota = counter();
    await countAdmitted(1, quota, store);
    await memory.adjust([{ ...quota, cost: 200 }]);
    decideSpy.mockClear();
    await readCount(store, quota);
    expect(decideSpy).toHaveBeenCalledTimes(1);
  });

  it("a late answer does not end the wait for a block that was requested later", async () => {
    const memory = createMemoryStore();
    const releases: (() => void)[] = [];
    const store = leasesOver({
      ...memory,
      decide(...args) {
        const answers = memory.decide(...args);
        if (!args[0].flat().some(({ block }) => block)) return answers;
        const released = new Promise<void>((done) => releases.push(done));
        return answers.map((answer) => released.then(() => answer));
      },
    });
    const quota = counter({ limit: 1_000_000 });
    const send = async () => {
      void verdictOf(store.decide([[quota]]));
      await flushPromises();
    };
    for (let request = 0; request < 3; request++) await send();
    at(1000);
    for (let request = 0; request < 3; request++) await send();
    expect(releases).toHaveLength(2);
    releases[0]?.();
    for (let request = 0; request < 9; request++) await send();
    expect(releases).toHaveLength(2);
  });

  it("a local clock that jumps ahead within the store's window wastes no blocks", async () => {
    const memory = createMemoryStore();
    let storeNow = NOW;
    const store = leasesOver({
      ...memory,
      decide: (groups, _, unused) => memory.decide(groups, storeNow, unused),
    });
    const quota = counter({ limit: 1000 });
    storeNow = NOW + 1000;
    at(1000);
    const before = await countAdmitted(20, quota, store);
    // The local clock jumps ahead by a minute, but the store's window lasts for another 59 s.
    at(61_000);
    expect(before + (await countAdmitted(2000, quota, store))).toBeGreaterThan(970);
  });
});
