import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Counter } from "../../../../src/engine/counter.ts";
import { withDenialCache } from "../../../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../../../src/stores/isolate/with-leases.ts";
import { createMemoryStore } from "../../../../src/stores/memory-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { counter as anyCounter } from "../../../suite/counters.ts";
import { NOW } from "../../../suite/driver.ts";

const options = { timeoutMs: 1000, background: () => {} };
const counter = (fields: Partial<Counter> = {}) =>
  anyCounter({ limit: 100, leasable: true, ...fields });
const at = (pastMs: number) => vi.setSystemTime(NOW + pastMs);
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: NOW }));
afterEach(() => void vi.useRealTimers());

async function admitted(requests: number, quota: Counter, ...stores: Store[]): Promise<number> {
  let count = 0;
  for (let request = 0; request < requests; request++) {
    for (const store of stores) if ((await store.decide([[quota]])).groups[0]?.admitted) count++;
  }
  return count;
}
const read = async (store: Store, quota: Counter) =>
  (await store.decide([[{ ...quota, cost: 0 }]])).groups[0]?.tallies[0]?.count as number;

/** 12 requests (97 charged ones are made 100 elsewhere): limit used up, and 3 or so lie here. */
async function nearlyFull(store: Store, memory: Store) {
  const quota = counter();
  await admitted(12, quota, store);
  await memory.adjust([{ ...quota, cost: 100 - (await read(memory, quota)) }]);
  const left = 100 - (await read(store, quota));
  expect(left).toBeGreaterThan(0);
  return { quota, left };
}

describe("leases, where things cross", () => {
  it("of groups decided by two clocks, what was charged in one window is not used in the next", async () => {
    // As durableObjectStore answers: two objects, asked at once, and `now` is the first one's.
    const objects = new Map([
      ["live", createMemoryStore()],
      ["trial", createMemoryStore()],
    ]);
    let laterMs = 0;
    let block = 0;
    const both: Store = {
      ...createMemoryStore(),
      async decide(groups) {
        const answers = await Promise.all(
          groups.map(async (group) => {
            const { identity } = group[0] as Counter;
            const now = Date.now() + (identity === "live" ? laterMs : 0);
            const {
              groups: [answer],
            } = await (objects.get(identity) as Store).decide([group], now);
            if (identity === "trial" && groups.length === 2)
              block = answer?.tallies[0]?.charged ?? 0;
            return { now, answer };
          }),
        );
        return {
          now: answers[0]?.now ?? Date.now(),
          groups: answers.map(({ answer }) => answer as never),
        };
      },
    };
    const store = withLeases(both, options);
    const [live, trial] = [
      counter({ identity: "live", limit: 1_000_000 }),
      counter({ identity: "trial", limit: 1000 }),
    ];
    const ask = async () => (await store.decide([[live], [trial]])).groups[1]?.admitted;
    at(59_000);
    for (let request = 0; request < 400; request++) await ask();
    at(59_900);
    laterMs = 120;
    block = 0;
    while (block <= 1) await ask();
    at(61_000);
    laterMs = 0;
    let count = 0;
    for (let request = 0; request < 3000; request++) if (await ask()) count++;
    expect(count).toBe(1000);
  });

  it("a reset forgets a block that comes in while it is under way", async () => {
    const memory = createMemoryStore();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const slow: Store = {
      ...memory,
      reset: async (counters) => {
        await reached;
        await memory.reset(counters);
      },
    };
    const store = withLeases(slow, options);
    const quota = counter();
    const done = store.reset([quota]);
    await admitted(8, quota, store);
    reach();
    await done;
    expect(await admitted(200, quota, store)).toBe(100);
  });

  it("a reset leaves what lies elsewhere to be used, beside the limit", async () => {
    const memory = createMemoryStore();
    const [one, other] = [withLeases(memory, options), withLeases(memory, options)];
    const quota = counter();
    await admitted(12, quota, other);
    const lies = (await read(memory, quota)) - (await read(other, quota));
    await one.reset([quota]);
    expect(lies).toBeGreaterThan(0);
    expect(await admitted(200, quota, one, other)).toBeLessThanOrEqual(100 + lies);
  });

  it("who asks only for room is not told of quota that is given back with the same call", async () => {
    const memory = createMemoryStore();
    const store = withLeases(memory, options);
    const { quota, left } = await nearlyFull(store, memory);
    const check = async () =>
      (await store.decide([[{ ...quota, cost: left + 1, checkOnly: true }]])).groups[0]?.admitted;
    at(4999);
    expect(await check()).toBe(false);
    at(5000);
    expect(await check()).toBe(false);
  });

  it("a denial tells of what lies here as unused, as an admission does", async () => {
    const memory = createMemoryStore();
    const store = withLeases(memory, options);
    const { quota, left } = await nearlyFull(store, memory);
    const { groups } = await store.decide([[{ ...quota, cost: left + 1 }]]);
    expect(groups).toMatchObject([{ admitted: false, tallies: [{ count: 100 - left }] }]);
  });

  it("quota that is given back through a cache of denials is to be had there at once", async () => {
    const memory = createMemoryStore();
    const store = withLeases(withDenialCache(memory), options);
    const { quota, left } = await nearlyFull(store, memory);
    expect((await store.decide([[{ ...quota, cost: left + 1 }]])).groups[0]?.admitted).toBe(false);
    at(5000);
    await store.decide([[counter()]]);
    expect(await read(memory, quota)).toBe(100 - left);
    expect(await admitted(1, quota, store)).toBe(1);
  });

  it("an answer that was overtaken within its window does not lower what is told as used", async () => {
    const memory = createMemoryStore();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let isFirst = true;
    const store = withLeases(
      {
        ...memory,
        async decide(...args) {
          const holds = isFirst;
          isFirst = false;
          const verdict = await memory.decide(...args);
          if (holds) await released;
          return verdict;
        },
      },
      options,
    );
    const quota = counter({ limit: 1000 });
    const first = store.decide([[quota]]);
    await admitted(32, quota, store);
    release();
    await first;
    const { groups } = await store.decide([[quota]]);
    expect(groups[0]?.tallies[0]?.count).toBe(34);
  });

  it("a block is at most twice what was seen here in ten seconds", async () => {
    const memory = createMemoryStore();
    const asked = vi.spyOn(memory, "decide");
    const store = withLeases(memory, options);
    const quota = counter({ limit: 1_000_000 });
    await admitted(31, quota, store);
    await store.decide([[{ ...quota, cost: 100 }]]);
    expect(asked.mock.lastCall?.[0][0]?.[0]?.block ?? 0).toBeLessThanOrEqual(2 * 131);
  });

  it("a read of a counter above its ceiling is one call", async () => {
    const memory = createMemoryStore();
    const asked = vi.spyOn(memory, "decide");
    const store = withLeases(memory, options);
    const quota = counter();
    await admitted(1, quota, store);
    await memory.adjust([{ ...quota, cost: 200 }]);
    asked.mockClear();
    await read(store, quota);
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it("a late answer does not end the wait for the block that was asked for after it", async () => {
    const memory = createMemoryStore();
    const releases: (() => void)[] = [];
    const store = withLeases(
      {
        ...memory,
        async decide(...args) {
          const verdict = await memory.decide(...args);
          if (args[0].flat().some(({ block }) => block))
            await new Promise<void>((done) => releases.push(done));
          return verdict;
        },
      },
      options,
    );
    const quota = counter({ limit: 1_000_000 });
    const settle = async () => {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    };
    const send = async () => {
      void store.decide([[quota]]);
      await settle();
    };
    for (let request = 0; request < 3; request++) await send();
    at(1000);
    for (let request = 0; request < 3; request++) await send();
    expect(releases).toHaveLength(2);
    releases[0]?.();
    for (let request = 0; request < 9; request++) await send();
    expect(releases).toHaveLength(2);
  });

  it("a clock of ours that leaps ahead, within the store's window, wastes no blocks", async () => {
    const memory = createMemoryStore();
    let storeNow = NOW;
    const store = withLeases(
      { ...memory, decide: (groups, _, unused) => memory.decide(groups, storeNow, unused) },
      { timeoutMs: 1000, background: () => {} },
    );
    const quota = counter({ limit: 1000, leasable: true });
    const admitted = async (requests: number) => {
      let count = 0;
      for (let request = 0; request < requests; request++) {
        if ((await store.decide([[quota]])).groups[0]?.admitted) count++;
      }
      return count;
    };
    storeNow = NOW + 1000;
    vi.setSystemTime(NOW + 1000);
    const before = await admitted(20);
    // Ours is put right by a minute; the store's window lasts for 59 s more.
    vi.setSystemTime(NOW + 61_000);
    expect(before + (await admitted(2000))).toBeGreaterThan(970);
  });
});
