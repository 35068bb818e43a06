import { describe, expect, it } from "vitest";
import type { QuotaEvent } from "../../../src/config/index.ts";
import { type Demand, windowAt } from "../../../src/engine/counter.ts";
import { quotaOf, withCrossings } from "../../../src/stores/crossings.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";
import { type Group, type Store, StoreError } from "../../../src/stores/store.ts";
import { HOUR, NOW } from "../../suite/driver.ts";

/** Returns a counter with the shares 0.5, 0.8 and 1 of a limit. */
function counterOf(limit: number, fields: Partial<Demand> = {}): Demand {
  const shares = [0.5, 0.8, 1];
  const notify = { rule: "api", policy: "api/1h", shares, capacity: fields.capacity ?? limit };
  const counter = { key: "weir:api:1h:client", identity: "client", limit, ceiling: limit, notify };
  return { ...counter, cost: 1, windowMs: HOUR, offsetMs: 0, ...fields };
}

/** Creates a store in memory, and the list of what it tells. */
function telling() {
  const events: QuotaEvent[] = [];
  const tasks: Promise<unknown>[] = [];
  const onCrossing = async (event: QuotaEvent) => void events.push(event);
  const store = withCrossings(createMemoryStore(), onCrossing, (task) => void tasks.push(task));
  /** Returns the shares that were told since the last call. */
  const told = async () => {
    await Promise.all(tasks.splice(0));
    return events.splice(0).map(({ share }) => share);
  };
  const decide = async (group: Group, now = NOW) => {
    const answer = await store.decide([group], now)[0];
    return [answer?.admitted, await told()];
  };
  const adjust = async (counter: Demand & { chargedIn?: number }, now = NOW) => {
    await store.adjust([counter], now);
    return told();
  };
  return { store, events, tasks, told, decide, adjust };
}

describe("the quota that reaches a share", () => {
  it.each([
    [0.8, 10, 8],
    [0.8, 1, 1],
    [0.5, 3, 2],
    [1, 3, 3],
    [0.07, 100, 7],
    [0.29, 100, 29],
    [0.1 + 0.2, 10, 3],
    [0.3, 10, 3],
    [0.57, 100, 57],
    [0.001, 1000, 1],
    [0.0001, 10, 1],
    [1 / 3, 3, 1],
    [1, 999_999_999_999_999, 999_999_999_999_999],
    [0.8, 999_999_999_999_999, 800_000_000_000_000],
  ])("%s of %s is %s", (share, limit, quota) => {
    expect(quotaOf(share, limit)).toBe(quota);
  });

  it("is exact for every share with two decimals of every limit up to 2000", () => {
    for (let limit = 1; limit <= 2000; limit++) {
      for (let percent = 1; percent <= 100; percent++) {
        const exact = Math.ceil((percent * limit) / 100);
        if (quotaOf(percent / 100, limit) !== exact) expect([percent, limit]).toBe(exact);
      }
    }
  });
});

describe("a store that tells the use of shares", () => {
  it.each([
    [1, [[0.5, 0.8, 1], []]],
    [3, [[], [0.5], [0.8, 1], []]],
    [10, [[], [], [], [], [0.5], [], [], [0.8], [], [1], []]],
  ])("tells each share of a limit of %s once", async (limit, expected) => {
    const { decide } = telling();
    const told = [];
    for (const _ of expected) told.push((await decide([counterOf(limit)]))[1]);
    expect(told).toEqual(expected);
  });

  it("tells what was used", async () => {
    const { decide, events, store, tasks } = telling();
    await decide([counterOf(10, { cost: 4 })]);
    await store.decide([[counterOf(10, { cost: 3, shadow: true })]], NOW)[0];
    await Promise.all(tasks);
    const resetAt = windowAt(NOW, counterOf(10)).endsAt;
    const event = {
      rule: "api",
      policy: "api/1h",
      client: "client",
      share: 0.5,
      used: 7,
      limit: 10,
    };
    expect(events).toEqual([{ ...event, mode: "shadow", resetAt }]);
  });

  it("tells two shares that one cost reaches, in order", async () => {
    const { decide } = telling();
    expect(await decide([counterOf(10, { cost: 9 })])).toEqual([true, [0.5, 0.8]]);
  });

  it("tells one of many simultaneous requests", async () => {
    const { store, told } = telling();
    const groups = Array.from({ length: 30 }, () => [counterOf(10)]);
    await Promise.all(groups.map((group) => store.decide([group], NOW)[0]));
    expect(await told()).toEqual([0.5, 0.8, 1]);
  });

  it("tells nothing after a denial, a check, a read or a refund", async () => {
    const { decide, adjust } = telling();
    expect(await decide([counterOf(10, { cost: 11 })])).toEqual([false, []]);
    expect(await decide([counterOf(10, { cost: 5, checkOnly: true })])).toEqual([true, []]);
    expect(await decide([counterOf(10, { cost: 6 })])).toEqual([true, [0.5]]);
    expect(await decide([counterOf(10, { cost: 0 })])).toEqual([true, []]);
    expect(await adjust(counterOf(10, { cost: 0 }))).toEqual([]);
    expect(await adjust(counterOf(10, { cost: -1 }))).toEqual([]);
  });

  it("leaves the failures of the store to the caller", async () => {
    const failure = new StoreError("timeout", "no answer");
    const fail = () => Promise.reject(failure);
    const failing = { decide: () => [fail()], adjust: fail, reset: fail };
    const tasks: Promise<unknown>[] = [];
    const store = withCrossings(failing, fail, (task) => void tasks.push(task));
    for (const counter of [counterOf(10), counterOf(10, { cost: -1 })]) {
      await expect(store.adjust([counter], NOW)).rejects.toBe(failure);
      await expect(store.decide([[counter]], NOW)[0]).rejects.toBe(failure);
    }
    expect(await Promise.all(tasks)).toEqual([undefined, undefined]);
  });

  it("tells nothing of a group that another counter denies", async () => {
    const { decide } = telling();
    const other = counterOf(2, { key: "weir:other:1h:client", cost: 3 });
    expect(await decide([counterOf(10, { cost: 9 }), other])).toEqual([false, []]);
    expect(await decide([counterOf(10, { cost: 9 })])).toEqual([true, [0.5, 0.8]]);
  });

  it("tells a share once in a window, also after a refund below it and after a reset", async () => {
    const { decide, adjust, store } = telling();
    expect(await decide([counterOf(10, { cost: 5 })])).toEqual([true, [0.5]]);
    await adjust(counterOf(10, { cost: -1 }));
    expect(await decide([counterOf(10)])).toEqual([true, []]);
    await store.reset([counterOf(10)], NOW);
    expect(await decide([counterOf(10, { cost: 8 })])).toEqual([true, [0.8]]);
    expect(await decide([counterOf(10, { cost: 5 })], NOW + HOUR)).toEqual([true, [0.5]]);
  });

  it("tells a share of a higher limit", async () => {
    const { decide } = telling();
    expect(await decide([counterOf(10, { cost: 6 })])).toEqual([true, [0.5]]);
    expect(await decide([counterOf(20, { cost: 4 })])).toEqual([true, [0.5]]);
  });

  it("tells a share of the next window, although the last window's was counted by a later clock", async () => {
    const events: QuotaEvent[] = [];
    const tasks: Promise<unknown>[] = [];
    const memory = createMemoryStore();
    const { endsAt } = windowAt(NOW, counterOf(10));
    // As with the store's clock, what was told is counted a moment later than the charge.
    const store: Store = {
      ...memory,
      decide: (groups, now = NOW) =>
        memory.decide(
          groups,
          groups.some(([counter]) => counter?.key.includes("/")) ? now + 2 : now,
        ),
    };
    const telling = withCrossings(
      store,
      async (event) => void events.push(event),
      (task) => void tasks.push(task),
    );
    for (const now of [endsAt - 1, endsAt]) {
      await telling.decide([[counterOf(10, { cost: 5 })]], now)[0];
      await Promise.all(tasks);
    }
    expect(events.map(({ resetAt }) => resetAt)).toEqual([endsAt, endsAt + HOUR]);
  });

  it("tells a share if the store cannot count what was told", async () => {
    const events: QuotaEvent[] = [];
    const tasks: Promise<unknown>[] = [];
    const store = createMemoryStore();
    const failing: Store = {
      ...store,
      decide: (groups, now) =>
        groups.some(([counter]) => counter?.key.includes("/"))
          ? groups.map(() => Promise.reject(new StoreError("timeout", "no answer")))
          : store.decide(groups, now),
    };
    const telling = withCrossings(
      failing,
      async (event) => void events.push(event),
      (task) => void tasks.push(task),
    );
    await telling.decide([[counterOf(10, { cost: 8 })]], NOW)[0];
    await Promise.all(tasks);
    expect(events.map(({ share }) => share)).toEqual([0.5, 0.8]);
  });

  it("tells a charge after the response, also above the limit", async () => {
    const { adjust } = telling();
    expect(await adjust(counterOf(10, { cost: 7 }))).toEqual([0.5]);
    expect(await adjust(counterOf(10, { cost: 8 }))).toEqual([0.8, 1]);
    expect(await adjust(counterOf(10, { cost: 8 }))).toEqual([]);
  });

  it.each([
    ["windows", {}, 1],
    ["sliding windows", { windowMs: HOUR / 10, subWindows: 10 }, 12],
  ])("tells no settlement of an ended window: %s", async (_, fields, windows) => {
    const { decide, adjust } = telling();
    const counter = counterOf(10, { ...fields, cost: 5 });
    const chargedIn = windowAt(NOW, counter).index;
    expect(await adjust({ ...counter, chargedIn })).toEqual([0.5]);
    const later = NOW + windows * counter.windowMs;
    expect(await decide([{ ...counter, cost: 6 }], later)).toEqual([true, [0.5]]);
    expect(await adjust({ ...counter, cost: 2, chargedIn }, later)).toEqual([]);
    expect(await adjust({ ...counter, cost: 2, chargedIn: chargedIn + windows }, later)).toEqual([
      0.8,
    ]);
  });

  it("tells a sliding window's share once in each interval of its length", async () => {
    const { decide } = telling();
    const sliding = { windowMs: HOUR / 10, subWindows: 10 };
    const told: number[] = [];
    // The use of the client rises above a half and falls below it again and again.
    for (let at = 0; at <= 42; at += 6) {
      const counter = counterOf(10, { ...sliding, cost: at % 12 === 0 ? 4 : 3 });
      const [, shares] = await decide([counter], NOW + at * sliding.windowMs);
      if ((shares as number[]).includes(0.5)) told.push(at);
    }
    expect(told).toEqual([6, 18, 30, 42]);
  });

  it("tells shares of the capacity if quota rolls over or is reserved", async () => {
    const { decide } = telling();
    const counter = counterOf(10, { capacity: 20, ceiling: 30, rollsOver: true });
    expect(await decide([{ ...counter, cost: 9 }])).toEqual([true, []]);
    expect(await decide([counter])).toEqual([true, [0.5]]);
    expect(await decide([{ ...counter, cost: 20 }])).toEqual([true, [0.8, 1]]);
  });

  it("tells the share that a block reaches, and not again after the block was given back", async () => {
    const { decide, store, told } = telling();
    const counter = counterOf(100);
    await decide([{ ...counter, cost: 45 }]);
    expect(await decide([{ ...counter, block: 6 }])).toEqual([true, [0.5]]);
    const { index: window } = windowAt(NOW, counter);
    await store.adjust([], NOW, [{ counter, quota: 5, window }]);
    expect(await told()).toEqual([]);
    expect(await decide([{ ...counter, cost: 5 }])).toEqual([true, []]);
  });
});
