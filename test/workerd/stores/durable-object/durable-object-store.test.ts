import {
  abortAllDurableObjects,
  evictDurableObject,
  reset,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Demand } from "../../../../src/engine/counter.ts";
import { SHARED_REACH } from "../../../../src/request/identity.ts";
import type { Entry } from "../../../../src/stores/batch.ts";
import type { CounterObject } from "../../../../src/stores/durable-object/counter-object.ts";
import { createDurableObjectStore } from "../../../../src/stores/durable-object/durable-object-store.ts";
import type { Store } from "../../../../src/stores/store.ts";
import { bans, counter } from "../../../suite/counters.ts";
import { DAY, HOUR, MINUTE } from "../../../suite/driver.ts";
import { verdictOf } from "../../../suite/verdict.ts";
import { kindOf, runIn } from "./objects-in-one.ts";

const store = createDurableObjectStore({
  namespace: env.COUNTERS,
  prefix: "test",
  timeoutMs: 10_000,
});

function objectOf({ identity }: Demand) {
  return env.COUNTERS.getByName(`test:${identity}`);
}

describe("a counter object", () => {
  afterEach(async () => {
    vi.useRealTimers();
    await reset();
  });

  function rowsOf(stub: DurableObjectStub<CounterObject>) {
    return runInDurableObject(stub, (_, { storage: { sql } }) => {
      const tables = sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'rows'").toArray();
      if (tables.length === 0) return [];
      return sql.exec("SELECT key, window, count, expires_at FROM rows").toArray();
    });
  }

  it("keeps counting after eviction", async () => {
    const login = counter({ limit: 3 });
    await verdictOf(store.decide([[login]]));
    await verdictOf(store.decide([[login]]));
    await evictDurableObject(objectOf(login));
    expect((await verdictOf(store.decide([[login]]))).groups[0]?.tallies[0]?.count).toBe(3);
    expect((await verdictOf(store.decide([[login]]))).groups[0]?.admitted).toBe(false);
  });

  it("decides by its own clock, and reports that time", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_100_000 });
    const verdict = await verdictOf(store.decide([[counter()]]));
    expect(verdict.now).toBe(1_700_000_100_000);
    expect(verdict.groups[0]?.tallies[0]?.resetMs).toBe(60_000);
  });

  it("stores a row for each window, which expires a second after the window", async () => {
    const now = Math.ceil(Date.now() / 60_000) * 60_000;
    const minute = counter({ key: "weir:login:1m:someone" });
    await verdictOf(store.decide([[minute]], now));
    await verdictOf(store.decide([[minute]], now + 30_000));
    expect(await rowsOf(objectOf(minute))).toEqual([
      {
        key: `${minute.key}:${now / 60_000}`,
        window: now / 60_000,
        count: 2,
        expires_at: now + 61_000,
      },
    ]);
  });

  it("writes nothing for a denied request", async () => {
    const [first, second] = [counter({ limit: 0 }), counter()];
    await verdictOf(store.decide([[first, { ...second, identity: first.identity }]]));
    expect(await rowsOf(objectOf(first))).toEqual([]);
  });

  it("denies a client banned in this millisecond until the ban ends, whatever is held", async () => {
    const now = Math.ceil(Date.now() / 60_000) * 60_000;
    const quota = counter({ limit: 1, ban: bans(60_000) });
    const object = objectOf(quota);
    await runIn(object, [{ ...quota, cost: 2 }], { now });
    const hold = { id: "held", isFinal: false };
    await runIn(object, [{ ...quota, ban: undefined } as never], { now, hold });
    const verdict = await runIn(object, [quota], { now });
    expect(verdict).toMatchObject({ admitted: false, tallies: [{ banMs: 60_000 }] });
    expect(verdict.tallies[0]).not.toHaveProperty("retryMs");
  });

  it("removes the rows of ended windows when a counter's next window begins", async () => {
    const now = Math.ceil(Date.now() / 60_000) * 60_000;
    const minute = counter();
    for (let window = 0; window < 5; window++) {
      await verdictOf(store.decide([[minute]], now + window * 60_000 + 5_000));
    }
    expect((await rowsOf(objectOf(minute))).map(({ window }) => window)).toEqual([
      now / 60_000 + 4,
    ]);
  });

  it("removes all storage with an alarm after all windows have ended", async () => {
    // The test runs at the beginning of an hour, so that the minute ends before the hour.
    vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / 3_600_000) * 3_600_000 });
    const minute = counter();
    const hour = counter({ identity: minute.identity, windowMs: 3_600_000 });
    await verdictOf(store.decide([[minute, hour]]));
    const stub = objectOf(minute);
    const alarmAt = () => runInDurableObject(stub, (_, { storage }) => storage.getAlarm());

    vi.setSystemTime((await alarmAt()) as number);
    expect(await runDurableObjectAlarm(stub)).toBe(true);
    expect(await rowsOf(stub)).toMatchObject([{ key: expect.stringContaining(hour.key) }]);

    vi.setSystemTime((await alarmAt()) as number);
    expect(await runDurableObjectAlarm(stub)).toBe(true);
    const tables = await runInDurableObject(stub, (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'rows'").toArray(),
    );
    expect(tables).toEqual([]);
    expect(await alarmAt()).toBeNull();
  });

  it("counts again after it has removed all storage", async () => {
    const minute = counter();
    const { now, groups } = await verdictOf(store.decide([[minute]]));
    const endsAt = now + (groups[0]?.tallies[0]?.resetMs as number);
    vi.useFakeTimers({ toFake: ["Date"], now: endsAt + 1000 });
    expect(await runDurableObjectAlarm(objectOf(minute))).toBe(true);
    expect((await verdictOf(store.decide([[minute]]))).groups[0]?.tallies[0]?.count).toBe(1);
    expect(await rowsOf(objectOf(minute))).toHaveLength(1);
  });
});

describe("the storage of an object", () => {
  afterEach(reset);

  /** Reads the tables of an object and the time of its alarm. */
  function storedIn(quota: Demand) {
    return runInDurableObject(objectOf(quota), async (_, { storage }) => ({
      tables: storage.sql.exec("SELECT name FROM sqlite_master").toArray(),
      alarmAt: await storage.getAlarm(),
    }));
  }

  /** Counters without quota. The object of `first` is called first, the object of the other counter last. */
  const first = counter({ limit: 0, identity: "!" });
  const global = counter({ limit: 0, reach: Number.MAX_SAFE_INTEGER });

  const reads: [string, (quota: Demand) => Promise<unknown>][] = [
    [
      "a check of a new counter",
      (quota) => verdictOf(store.decide([[{ ...quota, checkOnly: true }]])),
    ],
    [
      "a read of its count",
      (quota) => verdictOf(store.decide([[{ ...quota, cost: 0, checkOnly: true }]])),
    ],
    [
      "a denied request of a new client",
      (quota) => verdictOf(store.decide([[{ ...quota, cost: 6 }]])),
    ],
    ["a request that costs nothing", (quota) => verdictOf(store.decide([[{ ...quota, cost: 0 }]]))],
    ["a reset", (quota) => store.reset([{ ...quota, ban: bans(60_000) }])],
    ["a refund", (quota) => store.adjust([{ ...quota, cost: -1 }])],
    [
      "a return of unused quota",
      (quota) =>
        verdictOf(
          store.decide([[{ ...quota, cost: 0 }]], undefined, [
            { counter: quota, quota: 1, window: Math.floor(Date.now() / 60_000) },
          ]),
        ),
    ],
    [
      "a denial by an object that is called before it",
      (quota) => verdictOf(store.decide([[quota, first]])),
    ],
    [
      "a denial by an object that more clients share",
      (quota) => verdictOf(store.decide([[{ ...quota, reach: SHARED_REACH }, global]])),
    ],
    ["a hold that is released", (quota) => verdictOf(store.decide([[quota, global]]))],
    ["the end of an unknown hold", (quota) => objectOf(quota).endHold(crypto.randomUUID(), false)],
    ["a late alarm", (quota) => runInDurableObject(objectOf(quota), (object) => object.alarm())],
  ];

  it.each(reads)("stays empty after %s", async (_, read) => {
    const quota = counter();
    await read(quota);
    expect(await storedIn(quota)).toEqual({ tables: [], alarmAt: null });
  });

  it.each<[string, Partial<Demand>]>([
    ["a charge", {}],
    ["a denial that starts a ban", { limit: 0, ban: bans(60_000) }],
    ["a reservation", { rollsOver: true, cost: 9, ceiling: 9 }],
  ])("has an alarm that will empty it after %s", async (_, fields) => {
    const quota = counter(fields);
    await verdictOf(store.decide([[quota]]));
    const { alarmAt } = await storedIn(quota);
    expect(alarmAt).toBeGreaterThan(Date.now());
  });

  it("keeps the row of a day and loses the row of an ended minute, whichever was stored first", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Math.ceil(Date.now() / DAY) * DAY });
    const day = counter({ windowMs: DAY });
    const minute = counter({ identity: day.identity });
    const rowsLeft = async () => {
      const { groups } = await verdictOf(store.decide([[{ ...day, cost: 0 }]]));
      expect(groups[0]?.tallies[0]?.count).toBeGreaterThan(0);
      return runInDurableObject(
        objectOf(day),
        (_, { storage }) => storage.sql.exec("SELECT key FROM rows").toArray().length,
      );
    };
    for (const group of [
      [day, minute],
      [minute, day],
    ]) {
      await verdictOf(store.decide([group]));
      expect(await rowsLeft()).toBe(2);
      const { alarmAt } = await storedIn(day);
      expect((alarmAt as number) - Date.now()).toBeLessThanOrEqual(HOUR + MINUTE + 1000);
      vi.setSystemTime(alarmAt as number);
      await runDurableObjectAlarm(objectOf(day));
      expect(await rowsLeft()).toBe(1);
      // The second group is stored hours later. At that time, the alarm is set for the end of the
      // day.
      vi.setSystemTime(Date.now() + 5 * HOUR);
    }
    vi.useRealTimers();
  });
});

describe("calls to objects", () => {
  /** Returns the methods that `run` calls on objects. */
  async function callsDuring(run: (store: Store) => Promise<unknown>): Promise<string[]> {
    const calls: string[] = [];
    const background: Promise<unknown>[] = [];
    const namespace = {
      getByName(name: string) {
        const stub = env.COUNTERS.getByName(name);
        return {
          run: (entries: readonly Entry[]) => {
            calls.push(kindOf(entries));
            return stub.run(entries);
          },
          endHold: (id: string, keep: boolean) => {
            calls.push("endHold");
            return stub.endHold(id, keep);
          },
        };
      },
    } as unknown as DurableObjectNamespace<CounterObject>;
    await run(
      createDurableObjectStore({
        namespace,
        prefix: "test",
        timeoutMs: 10_000,
        background: (task) => background.push(task),
      }),
    );
    await Promise.all(background);
    return calls;
  }

  const callsOf = (...counters: Demand[]) =>
    callsDuring((store) => verdictOf(store.decide([counters])));

  /** Creates two counters, in the order in which a decision calls their objects. */
  function twoObjects(first: Partial<Demand> = {}, second: Partial<Demand> = {}) {
    const id = crypto.randomUUID();
    return [
      counter({ identity: `${id} 1`, ...first }),
      counter({ identity: `${id} 2`, ...second }),
    ] as const;
  }

  it("are one for rules with one key, admitted or denied", async () => {
    const { identity } = counter();
    expect(await callsOf(counter({ identity }), counter({ identity }))).toEqual(["decide"]);
    expect(await callsOf(counter({ identity, limit: 0 }))).toEqual(["decide"]);
  });

  it("are two, and one to end the hold, for rules with two keys", async () => {
    expect(await callsOf(...twoObjects())).toEqual(["hold", "decide", "endHold"]);
  });

  it("are one for rules with two keys if the first key's object denies", async () => {
    expect(await callsOf(...twoObjects({ limit: 0 }))).toEqual(["hold"]);
  });

  it("are two for rules with two keys if the first denies and the second may ban", async () => {
    const calls = await callsOf(...twoObjects({ limit: 0 }, { ban: bans(MINUTE) }));
    expect(calls).toEqual(["hold", "decide"]);
  });

  it("are four for rules with two shared keys, and one if the second key's object denies", async () => {
    const shared = { reach: SHARED_REACH };
    const admitted = await callsOf(...twoObjects(shared, shared));
    expect(admitted).toEqual(["decide", "hold", "decide", "endHold"]);
    expect(await callsOf(...twoObjects(shared, { ...shared, limit: 0 }))).toEqual(["decide"]);
  });

  it("are two more, and one to end the hold, for each further shared key", async () => {
    const shared = [1, 2, 3].map((more) => counter({ reach: SHARED_REACH + more }));
    expect(await callsOf(counter(), ...shared.slice(0, 2))).toEqual([
      ...["hold", "decide", "hold", "decide"],
      ...["endHold", "endHold"],
    ]);
    expect(await callsOf(...shared)).toEqual([
      ...["decide", "decide", "hold", "hold", "decide"],
      ...["endHold", "endHold"],
    ]);
  });

  it("are few to an object that the clients of a burst share, each of which has an own one too", async () => {
    const shared = counter({ limit: 30, reach: SHARED_REACH });
    const admitted: boolean[] = [];
    const calls = await callsDuring(async (store) => {
      const burst = Array.from({ length: 40 }, () => {
        const group = [counter({ identity: crypto.randomUUID() }), shared];
        return verdictOf(store.decide([group]));
      });
      for (const { groups } of await Promise.all(burst))
        admitted.push(groups[0]?.admitted === true);
    });
    expect(admitted.filter(Boolean)).toHaveLength(30);
    expect(calls.filter((call) => call === "hold")).toHaveLength(40);
    expect(calls.filter((call) => call === "endHold")).toHaveLength(40);
    expect(calls.filter((call) => call === "decide").length).toBeLessThanOrEqual(8);
  });

  it("are as many as the keys for rules that charge nothing before the response", async () => {
    const check = { checkOnly: true };
    expect(await callsOf(...twoObjects(check, check))).toEqual(["decide", "decide"]);
  });

  it("are three for rules with two keys if the second key's object denies", async () => {
    expect(await callsOf(...twoObjects({}, { limit: 0 }))).toEqual(["hold", "decide", "endHold"]);
  });

  it("is one for giving a reserve back to the shard that was charged", async () => {
    const refund = { ...counter({ cost: -1 }), chargedIn: 0 };
    expect(await callsDuring((store) => store.adjust([refund]))).toEqual(["adjust"]);
  });

  it("are one more to return quota to an object that the decision does not call", async () => {
    const [own, other] = [counter(), counter()];
    const unused = [own, other].map((each) => ({ counter: each, quota: 1, window: 0 }));
    const calls = await callsDuring((store) => verdictOf(store.decide([[own]], undefined, unused)));
    expect(calls.toSorted()).toEqual(["decide", "return"]);
  });
});

describe("a hold", () => {
  const now = Math.ceil(Date.now() / 60_000) * 60_000;
  const hold = { id: "held", isFinal: false };
  const open = async (quota: Demand) => {
    const object = objectOf(quota);
    await runIn(object, [quota], { now, hold });
    return object;
  };
  const usedOf = async (...counters: Demand[]) => {
    const checks = counters.map((each) => ({ ...each, cost: 0 }));
    const { tallies } = await runIn(objectOf(checks[0] as Demand), checks, { now });
    return tallies.map(({ count }) => count);
  };

  it("leaves an object that counts again when it is released", async () => {
    const quota = counter({ limit: 1 });
    const object = await open(quota);
    const [, verdict] = await Promise.all([
      object.endHold(hold.id, false),
      runIn(object, [quota], { now }),
    ]);
    expect(verdict).toMatchObject({ admitted: true, tallies: [{ count: 1 }] });
    // The release has removed the last row, and the other decision has written it again.
    await evictDurableObject(object);
    expect(await runIn(object, [quota], { now })).toMatchObject({ admitted: false });
    expect(await runInDurableObject(object, (_, { storage }) => storage.getAlarm())).not.toBeNull();
  });

  it("leaves the other rows of the object when it is released", async () => {
    const quota = counter({ limit: 2 });
    const other = { ...quota, key: `${quota.key} other` };
    const object = await open(quota);
    await runIn(object, [other], { now });
    await object.endHold(hold.id, false);
    expect(await usedOf(quota, other)).toEqual([0, 1]);
  });

  it("returns its quota once, however often it is released", async () => {
    const quota = counter({ limit: 2 });
    const object = await open(quota);
    await runIn(object, [quota], { now });
    expect(await object.endHold(hold.id, false)).toBe(true);
    await object.endHold(hold.id, false);
    expect(await usedOf(quota)).toEqual([1]);
  });

  it("stays charged if the object restarts before the hold is ended, which the object tells", async () => {
    const quota = counter({ limit: 1 });
    await open(quota);
    await abortAllDurableObjects();
    expect(await objectOf(quota).endHold(hold.id, false)).toBe(false);
    expect(await runIn(objectOf(quota), [quota], { now })).toMatchObject({ admitted: false });
  });
});
