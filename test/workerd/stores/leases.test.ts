import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Counter } from "../../../src/engine/fixed-window.ts";
import { denialCache } from "../../../src/stores/denial-cache.ts";
import { IDLE_MS } from "../../../src/stores/lease-book.ts";
import { leases } from "../../../src/stores/leases.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import type { GroupAnswer, Store } from "../../../src/stores/store.ts";
import { counter as anyCounter } from "../../suite/counters.ts";
import { HOUR, NOW } from "../../suite/driver.ts";

const MINUTE = 60_000;
const TIMEOUT_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterEach(() => {
  vi.useRealTimers();
});

function at(pastMs: number): void {
  vi.setSystemTime(NOW + pastMs);
}

function counter(fields: Partial<Counter> = {}): Counter {
  return anyCounter({ limit: 1000, leasable: true, ...fields });
}

interface Options {
  maxLeases?: number;
  /** The store's clock is ahead of ours by so much. */
  skewMs?: number;
  /** What a call takes, there and back. */
  roundTripMs?: number;
}

/** An isolate: leases over a store that others may use as well. */
function setUp({ maxLeases, skewMs = 0, roundTripMs = 0 }: Options = {}, memory = memoryStore()) {
  const clock = () => Date.now() + skewMs;
  const behind: Store = {
    async decide(groups, now, unused) {
      vi.setSystemTime(Date.now() + roundTripMs / 2);
      const verdict = await memory.decide(groups, now ?? clock(), unused);
      vi.setSystemTime(Date.now() + roundTripMs / 2);
      return verdict;
    },
    adjust: (counters, now) => memory.adjust(counters, now ?? clock()),
    reset: (counters, now) => memory.reset(counters, now ?? clock()),
  };
  const { decide: answer } = behind;
  const asked = vi.spyOn(behind, "decide");
  const tasks: Promise<unknown>[] = [];
  const store = leases(behind, {
    timeoutMs: TIMEOUT_MS,
    background: (task) => tasks.push(task),
    ...(maxLeases !== undefined && { maxLeases }),
  });

  async function ask(...group: Counter[]): Promise<GroupAnswer> {
    const { groups } = await store.decide([group]);
    return groups[0] as GroupAnswer;
  }

  /** How many of so many requests are admitted, one after the other. */
  async function admitted(requests: number, ...group: Counter[]): Promise<number> {
    let count = 0;
    for (let request = 0; request < requests; request++) {
      if ((await ask(...group)).admitted) count++;
    }
    return count;
  }

  /** How many calls something takes. */
  async function callsOf(action: () => Promise<unknown>): Promise<number> {
    const before = asked.mock.calls.length;
    await action();
    return asked.mock.calls.length - before;
  }

  /** What the store has charged. */
  async function charged(quota: Counter): Promise<number> {
    const { groups } = await memory.decide([[{ ...quota, cost: 0 }]], clock());
    return groups[0]?.tallies[0]?.count ?? 0;
  }

  /** What has been used: what is charged, but for what lies here. */
  async function used(quota: Counter): Promise<number | undefined> {
    return (await ask({ ...quota, cost: 0 })).tallies[0]?.count;
  }

  /** Requests until as much quota as this lies here. @returns how many */
  async function stockUp(quota: Counter, atLeast: number): Promise<number> {
    for (let sent = 1; sent <= 500; sent++) {
      await ask(quota);
      if ((await charged(quota)) - ((await used(quota)) as number) >= atLeast) return sent;
    }
    throw new Error(`${atLeast} never lay here`);
  }

  /** Requests until none lies here, so that the next one asks. @returns how many */
  async function useUp(quota: Counter): Promise<number> {
    for (let sent = 0; sent <= 500; sent++) {
      if ((await charged(quota)) === (await used(quota))) return sent;
      await ask(quota);
    }
    throw new Error("some always lay here");
  }

  /** Charges all that is left of a counter, as others do. */
  async function useUpElsewhere(quota: Counter): Promise<void> {
    const cost = quota.ceiling - (await charged(quota));
    await memory.adjust([{ ...quota, cost }], clock());
  }

  /** The blocks that were asked for, in order; undefined where there was none. */
  const blocks = () =>
    asked.mock.calls.flatMap(([groups]) => groups.flat().map((each) => each.block));
  /** What was given back with each call. */
  const givenBack = () => asked.mock.calls.map(([, , unused = []]) => unused);

  const observe = { blocks, givenBack, charged, used, callsOf };
  return {
    store,
    behind,
    answer,
    asked,
    tasks,
    memory,
    ask,
    admitted,
    stockUp,
    useUp,
    useUpElsewhere,
    ...observe,
  };
}

/** Answers the next call that asks for a block, or any at all, only when it is told to. */
function holdNext({ asked, answer }: Pick<ReturnType<typeof setUp>, "asked" | "answer">) {
  const { promise: released, resolve: release, reject: fail } = Promise.withResolvers<void>();
  asked.mockImplementationOnce(async (...args) => {
    const verdict = await answer(...args);
    await released;
    return verdict;
  });
  return { release: () => release(), fail };
}

/** Lets everything go on that waits for nothing but promises. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

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

  it("that fails is told to nobody, and asked for again", async () => {
    const isolate = await busy();
    const { ask, tasks, blocks, asked, quota } = isolate;
    const { fail } = await untilFetched(isolate);
    fail(new Error("away"));
    await expect(Promise.all(tasks.splice(0))).resolves.toBeDefined();
    asked.mockClear();
    for (let request = 0; request < 50; request++) expect((await ask(quota)).admitted).toBe(true);
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

describe("what lies here", () => {
  it("counts as unused to who reads", async () => {
    const { admitted, used, charged } = setUp();
    const quota = counter();
    await admitted(20, quota);
    expect(await charged(quota)).toBeGreaterThan(20);
    expect(await used(quota)).toBe(20);
  });

  it("is seen by who only asks for room, and not taken by it", async () => {
    const { stockUp, useUpElsewhere, ask, callsOf, admitted, used, charged } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    await useUpElsewhere(quota);
    const check = (cost: number) => ask({ ...quota, cost, checkOnly: true });
    expect(await callsOf(() => check(here))).toBe(0);
    for (let again = 0; again < 9; again++) expect((await check(here)).admitted).toBe(true);
    expect((await check(here + 1)).admitted).toBe(false);
    expect(await admitted(2 * here, quota)).toBe(here);
    expect((await check(1)).admitted).toBe(false);
  });

  it("goes with what the store has for a larger cost", async () => {
    const { stockUp, ask, asked, charged, used } = setUp();
    const quota = counter({ cost: 2 });
    await stockUp(quota, 6);
    const [before, usedBefore] = [await charged(quota), (await used(quota)) as number];
    const here = before - usedBefore;
    asked.mockClear();
    const large = { ...quota, cost: here + 4 };
    const verdict = await ask(large);
    expect(verdict.admitted).toBe(true);
    expect(asked.mock.calls[0]?.[0]).toMatchObject([[{ cost: 4 }]]);
    expect(await used(quota)).toBe(usedBefore + large.cost);
    expect(verdict.tallies[0]?.count).toBe(usedBefore + large.cost);
  });

  it("is put back when the store has too little for a larger cost", async () => {
    const { stockUp, useUpElsewhere, ask, admitted, callsOf, charged, used } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    await useUpElsewhere(quota);
    expect((await ask({ ...quota, cost: here + 1 })).admitted).toBe(false);
    expect(await callsOf(async () => expect(await admitted(here, quota)).toBe(here))).toBe(0);
    expect(await admitted(1, quota)).toBe(0);
  });

  it("is put back when another counter of the group has no room", async () => {
    const { stockUp, ask, admitted, callsOf, charged, used } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await stockUp(quota, 5);
    const here = (await charged(quota)) - ((await used(quota)) as number);
    for (let request = 0; request < 9; request++) {
      expect((await ask(quota, full)).admitted).toBe(false);
      expect((await ask(full, quota)).admitted).toBe(false);
    }
    expect(await used(quota)).toBe((await charged(quota)) - here);
    expect(await callsOf(() => admitted(here, quota))).toBe(0);
  });

  it("is not put back for another group of the same call", async () => {
    const { stockUp, store, used, charged } = setUp();
    const [quota, full] = [counter(), counter({ limit: 0 })];
    await stockUp(quota, 5);
    const [before, chargedBefore] = [(await used(quota)) as number, await charged(quota)];
    const { groups } = await store.decide([[quota], [full]]);
    expect(groups.map(({ admitted }) => admitted)).toEqual([true, false]);
    expect([await used(quota), await charged(quota)]).toEqual([before + 1, chargedBefore]);
  });

  it("is of one counter alone, whatever the keys are called", async () => {
    const { admitted, used } = setUp();
    const names = ["__proto__", "constructor", "a", "a:", "a:1m", "a:1m:b"];
    const quotas = names.map((key) => counter({ key, limit: 50 }));
    for (const [index, quota] of quotas.entries()) {
      expect(await used(quota), quota.key).toBe(0);
      expect(await admitted(index + 3, quota), quota.key).toBe(index + 3);
    }
    for (const [index, quota] of quotas.entries()) expect(await used(quota)).toBe(index + 3);
  });

  it("makes a client's figures fall by one with each of its requests", async () => {
    const { ask, tasks } = setUp({ roundTripMs: 20 });
    const quota = counter({ limit: 300, windowMs: HOUR });
    for (let request = 1; request <= 300; request++) {
      const { admitted, tallies } = await ask(quota);
      expect([admitted, tallies[0]?.count]).toEqual([true, request]);
      await Promise.all(tasks.splice(0));
    }
    expect(await ask(quota)).toMatchObject({ admitted: false, tallies: [{ count: 300 }] });
  });

  it("serves who was denied while it was on its way", async () => {
    const isolate = setUp();
    const { ask, admitted, useUp, useUpElsewhere, memory, used } = isolate;
    const quota = counter();
    await admitted(31, quota);
    await useUp(quota);
    await useUpElsewhere(quota);
    await memory.adjust([{ ...quota, cost: -30 }], NOW);
    // A block comes in between a denial and the hearing of it.
    const block = holdNext(isolate);
    const first = ask(quota);
    await settle();
    await useUpElsewhere(quota);
    const denial = holdNext(isolate);
    const second = ask(quota);
    await settle();
    block.release();
    expect((await first).admitted).toBe(true);
    const before = (await used(quota)) as number;
    denial.release();
    expect(await second).toMatchObject({ admitted: true, tallies: [{ count: before + 1 }] });
  });

  it("is for at most as many counters as there may be leases", async () => {
    const { admitted, blocks, asked } = setUp({ maxLeases: 1 });
    const [one, other] = [counter({ limit: 50 }), counter({ limit: 50 })];
    await admitted(9, one);
    asked.mockClear();
    expect(await admitted(7, other)).toBe(7);
    expect(blocks()).toEqual(Array(7).fill(undefined));
    expect(await admitted(99, one)).toBe(41);
    expect(await admitted(99, other)).toBe(43);
  });
});

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
  it("behind what is known leaves it for later", async () => {
    const { stockUp, ask, asked, callsOf, blocks } = setUp();
    const quota = counter({ windowMs: HOUR });
    at(20_000);
    await stockUp(quota, 5);
    at(10_000);
    asked.mockClear();
    // A moment that the store may not have been at yet: asked, without a block.
    await ask(quota);
    expect(blocks()).toEqual([undefined]);
    at(20_000);
    expect(await callsOf(() => ask(quota))).toBe(0);
  });

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
    const memory = memoryStore();
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

  it("of many counters is given back two at a time", async () => {
    const { stockUp, ask, asked, givenBack } = setUp();
    for (let client = 0; client < 5; client++) await stockUp(counter(), 3);
    at(IDLE_MS);
    asked.mockClear();
    for (let request = 0; request < 4; request++) await ask(counter());
    expect(givenBack().map(({ length }) => length)).toEqual([2, 2, 1, 0]);
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
  async function giveUp(count: number) {
    const isolate = setUp();
    const quotas = Array.from({ length: count }, () => counter());
    for (const quota of quotas) await isolate.stockUp(quota, 2);
    isolate.asked.mockClear();
    await isolate.store.decide(quotas.map((quota) => [{ ...quota, ceiling: 999 }]));
    for (let request = 0; request < 12; request++) await isolate.ask(counter());
    return isolate.givenBack().map(({ length }) => length);
  }

  it("is given back eight at a time", async () => {
    expect((await giveUp(20)).slice(0, 4)).toEqual([8, 8, 4, 0]);
  });

  it("is lost of more than 64, who wait already", async () => {
    expect(await giveUp(70)).toEqual([...Array(8).fill(8), ...Array(5).fill(0)]);
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

describe("another tier of a client", () => {
  it("does not use quota that was bought for the first, which is given back", async () => {
    const { admitted, stockUp, ask, givenBack, asked, used } = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const sent = await stockUp(pro, 3);
    asked.mockClear();
    expect(await ask(free)).toMatchObject({ admitted: true, tallies: [{ count: sent + 1 }] });
    expect(givenBack()).toMatchObject([[{ counter: { ceiling: 1000 } }]]);
    expect(await admitted(99, free)).toBe(9 - sent);
    expect(await used(pro)).toBe(10);
    expect(await admitted(999, pro)).toBe(990);
  });

  it("does not use a block either that was under way for the first", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    at(MINUTE - 1);
    await isolate.admitted(50, pro);
    at(MINUTE);
    const { release } = holdNext(isolate);
    const first = isolate.ask(pro);
    await settle();
    expect((await isolate.ask(free)).admitted).toBe(false);
    release();
    expect((await first).admitted).toBe(true);
    expect(await isolate.admitted(99, free)).toBe(0);
  });

  it("has nothing put back that was taken for the first", async () => {
    const isolate = setUp();
    const pro = counter({ limit: 1000 });
    const free = { ...pro, limit: 10, ceiling: 10 };
    const full = counter({ limit: 0, leasable: false });
    await isolate.admitted(11, pro);
    await isolate.stockUp(pro, 3);
    const { release } = holdNext(isolate);
    const denied = isolate.ask(pro, full);
    expect(await isolate.admitted(9, free)).toBe(0);
    release();
    expect((await denied).admitted).toBe(false);
    expect(await isolate.admitted(9, free)).toBe(0);
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

describe("a call that fails", () => {
  it("puts back what was taken, and is the caller's failure", async () => {
    const { stockUp, ask, asked, used, charged, admitted, callsOf } = setUp();
    const [quota, other] = [counter(), counter({ leasable: false })];
    const sent = await stockUp(quota, 5);
    const here = (await charged(quota)) - sent;
    asked.mockRejectedValueOnce(new Error("away"));
    await expect(ask(quota, other)).rejects.toThrow("away");
    expect(await used(quota)).toBe(sent);
    expect(await callsOf(() => admitted(here, quota))).toBe(0);
  });

  it("puts back what was taken of every group", async () => {
    const { stockUp, store, asked, used } = setUp();
    const [one, other] = [counter(), counter()];
    const sent = [await stockUp(one, 5), await stockUp(other, 5)];
    asked.mockRejectedValueOnce(new Error("away"));
    const closed = counter({ leasable: false });
    await expect(store.decide([[one], [other], [closed]])).rejects.toThrow("away");
    expect([await used(one), await used(other)]).toEqual(sent);
  });

  it("is no block under way: the next request asks for one", async () => {
    const { admitted, ask, asked, blocks, useUp } = setUp();
    const quota = counter();
    await admitted(15, quota);
    await useUp(quota);
    asked.mockClear();
    asked.mockRejectedValueOnce(new Error("away"));
    await expect(ask(quota)).rejects.toThrow("away");
    await ask(quota);
    expect(blocks()).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it("does not touch who finds enough here", async () => {
    const { stockUp, asked, ask } = setUp();
    const quota = counter();
    await stockUp(quota, 5);
    asked.mockRejectedValue(new Error("away"));
    for (let request = 0; request < 3; request++) expect((await ask(quota)).admitted).toBe(true);
  });
});

describe("several isolates over one store", () => {
  it.each([1, 2, 3, 5])(
    "use all of a limit while they are busy, and no more: %i",
    async (count) => {
      const memory = memoryStore();
      const isolates = Array.from({ length: count }, () => setUp({ roundTripMs: 2 }, memory));
      const quota = counter({ limit: 500, windowMs: HOUR });
      let admitted = 0;
      for (let round = 0; round < 600; round++) {
        for (const { ask, tasks } of isolates) {
          if ((await ask(quota)).admitted) admitted++;
          await Promise.all(tasks.splice(0));
        }
      }
      expect(admitted).toBe(500);
    },
  );

  it("are told of what others hold as used, and of what they hold as not", async () => {
    const memory = memoryStore();
    const [one, other] = [setUp({}, memory), setUp({}, memory)];
    const quota = counter();
    const sent = await one.stockUp(quota, 5);
    const charged = await one.charged(quota);
    expect(await one.used(quota)).toBe(sent);
    expect(await other.used(quota)).toBe(charged);
  });
});

describe("over a cache of denials", () => {
  it("are used before a denial is told from memory", async () => {
    const memory = memoryStore();
    const asked = vi.spyOn(memory, "decide");
    const store = leases(denialCache(memory), { timeoutMs: TIMEOUT_MS, background: () => {} });
    const quota = counter();
    const ask = async (cost = 1) =>
      (await store.decide([[{ ...quota, cost }]])).groups[0]?.admitted;
    for (let request = 0; request < 20; request++) await ask();
    const { groups } = await memory.decide([[{ ...quota, cost: 0 }]]);
    const charged = groups[0]?.tallies[0]?.count ?? 0;
    await memory.adjust([{ ...quota, cost: 1000 }], NOW);
    expect(await ask(99)).toBe(false);
    asked.mockClear();
    expect(charged).toBeGreaterThan(20);
    for (let request = 20; request < charged; request++) expect(await ask()).toBe(true);
    expect(await ask()).toBe(false);
    expect(asked).not.toHaveBeenCalled();
  });
});
