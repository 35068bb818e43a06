import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { type Demand, windowAt } from "../../../../src/engine/counter.ts";
import { adjustGroup, decideGroup } from "../../../../src/engine/fixed-window.ts";
import { CounterTable } from "../../../../src/stores/durable-object/counter-object.ts";
import { bans, counter } from "../../../suite/counters.ts";

const HOUR = 3_600_000;
const NOW = Math.ceil(Date.now() / HOUR) * HOUR;

/** A call to an object. */
interface Call {
  /** @default "decide" */
  readonly kind?: "decide" | "adjust" | "alarm";
  /** @default none, as for an alarm */
  readonly counters?: readonly Demand[];
  /** Milliseconds after the first call. @default 0 */
  readonly at?: number;
}

/**
 * The number of rows that a call wrote, as SQLite reports it, and the number of alarms that the
 * call set.
 */
interface Writes {
  readonly rows: number;
  readonly alarms: number;
}

/**
 * Makes decisions in an object that has a table and an alarm.
 *
 * @returns the number of rows that each decision wrote
 */
async function rowsWrittenBy(...decisions: Demand[][]): Promise<number[]> {
  const writes = await writesOf(
    true,
    decisions.map((counters) => ({ counters })),
  );
  return writes.map(({ rows }) => rows);
}

/**
 * Makes calls to an object, and returns the writes of each call.
 *
 * @param hasTable whether the object already has a table with a row that expires in an hour
 */
function writesOf(hasTable: boolean, calls: readonly Call[]): Promise<Writes[]> {
  const stub = env.COUNTERS.getByName(crypto.randomUUID());
  return runInDurableObject(stub, async (_, { storage }) => {
    let cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
    let alarms = 0;
    const sql = {
      exec: (query: string, ...bindings: SqlStorageValue[]) => {
        const cursor = storage.sql.exec(query, ...bindings);
        cursors.push(cursor);
        return cursor;
      },
    };
    const setAlarm = (time: number) => {
      alarms += 1;
      return storage.setAlarm(time);
    };
    const deleteAll = () => storage.deleteAll();
    const table = new CounterTable(
      { sql, setAlarm, deleteAll } as unknown as DurableObjectStorage,
      undefined,
    );
    const any = { window: 0, count: 1, expiresAt: NOW + HOUR };
    if (hasTable) table.write(new Map([["any", any]]), NOW);
    const written: Writes[] = [];
    for (const { kind = "decide", counters = [], at = 0 } of calls) {
      [cursors, alarms] = [[], 0];
      const now = NOW + at;
      if (kind === "alarm") await table.clean(now);
      else {
        const compute = kind === "decide" ? decideGroup : adjustGroup;
        const { writes } = compute(counters, now, (key) => table.read(key, now));
        table.write(writes, now);
      }
      const rows = cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
      written.push({ rows, alarms });
    }
    return written;
  });
}

describe("alarms of a Durable Object", () => {
  /**
   * Makes a request at each of these minutes after midnight, and runs the alarms that are due.
   *
   * @param lengths the lengths of the client's windows, in milliseconds
   * @returns the minutes at which alarms rang
   */
  function alarmsOf(minutes: readonly number[], lengths: readonly number[]): Promise<number[]> {
    const stub = env.COUNTERS.getByName(crypto.randomUUID());
    const counters = lengths.map((windowMs) => counter({ limit: 9999, windowMs }));
    return runInDurableObject(stub, async (_, { storage }) => {
      const rang: number[] = [];
      let alarmAt = Number.POSITIVE_INFINITY;
      const rows = new CounterTable(
        {
          sql: storage.sql,
          setAlarm: (time: number) => {
            alarmAt = time;
          },
          deleteAll: async () => {
            storage.sql.exec("DROP TABLE rows");
          },
        } as unknown as DurableObjectStorage,
        undefined,
      );
      const start = Math.ceil(NOW / (24 * HOUR)) * 24 * HOUR;
      const until = async (time: number) => {
        while (alarmAt <= time) {
          const now = alarmAt;
          alarmAt = Number.POSITIVE_INFINITY;
          rang.push((now - start) / 60_000);
          await rows.clean(now);
          const left = storage.sql
            .exec("SELECT 1 FROM sqlite_master WHERE name = 'rows'")
            .toArray();
          expect(alarmAt < Number.POSITIVE_INFINITY, "an alarm is set while there are rows").toBe(
            left.length > 0,
          );
        }
      };
      for (const past of minutes) {
        const now = start + past * 60_000;
        await until(now);
        rows.write(decideGroup(counters, now, (key) => rows.read(key, now)).writes, now);
      }
      await until(Number.MAX_SAFE_INTEGER);
      return rang;
    });
  }

  const everyMinute = (minutes: number) => Array.from({ length: minutes }, (_, minute) => minute);
  const [aMinute, aDay] = [60_000, 24 * HOUR];

  it.each([
    { windows: "a minute", lengths: [aMinute], step: 1 },
    { windows: "a minute", lengths: [aMinute], step: 2 },
    { windows: "ten minutes", lengths: [10 * aMinute], step: 1 },
    { windows: "an hour", lengths: [HOUR], step: 1 },
    { windows: "a minute and a day", lengths: [aMinute, aDay], step: 1 },
  ])(
    "ring at most once an hour with a window of $windows and a request each $step min",
    async ({ lengths, step }) => {
      const rang = await alarmsOf(
        everyMinute(3 * 60).filter((minute) => minute % step === 0),
        lengths,
      );
      const gaps = rang.slice(1).map((minute, index) => minute - (rang[index] as number));
      expect(rang[0]).toBeGreaterThanOrEqual(60);
      expect(gaps.filter((gap) => gap < 60)).toEqual([]);
      expect(rang.length).toBeLessThanOrEqual(5);
    },
  );

  it("ring once a day with a window of a day", async () => {
    expect(await alarmsOf(everyMinute(3 * 24 * 60), [aDay])).toHaveLength(3);
  });

  it("ring once for a client that sends one request, within an hour of the end of its window", async () => {
    expect(await alarmsOf([0], [aMinute])).toEqual([60]);
    expect(await alarmsOf([0], [aDay])).toEqual([24 * 60 + 1 / 60]);
    expect(await alarmsOf([0], [aMinute, aDay])).toEqual([60, 24 * 60 + 1 / 60]);
  });
});

describe("rows written by a Durable Object", () => {
  it("get an earlier alarm if a refund brings the end of a debt forward", async () => {
    const quota = counter({ limit: 1, ceiling: 9, cost: 9, windowMs: HOUR, rollsOver: true });
    const refund = (cost: number) => ({ kind: "adjust", counters: [{ ...quota, cost }] }) as const;
    const calls = [{ counters: [quota] }, refund(-4), refund(-1), refund(-4), refund(9)];
    const writes = await writesOf(false, calls);
    expect(writes.map(({ alarms }) => alarms)).toEqual([1, 1, 1, 1, 0]);
  });

  it("are one for an admitted request, and none for a denied one", async () => {
    const quota = counter({ limit: 3, windowMs: HOUR });
    expect(await rowsWrittenBy([quota], [quota], [quota], [quota])).toEqual([1, 1, 1, 0]);
  });

  it("are two more for an object's first request, which creates the table and sets an alarm", async () => {
    const quota = counter({ limit: 3, windowMs: HOUR });
    const tooMuch = { ...quota, cost: 9 };
    const decisions = [[tooMuch], [quota], [quota]].map((counters) => ({ counters }));
    expect(await writesOf(false, decisions)).toEqual([
      { rows: 0, alarms: 0 },
      { rows: 3, alarms: 1 },
      { rows: 1, alarms: 0 },
    ]);
  });

  it("are one more for each row that a new window removes", async () => {
    const counters = [counter({ limit: 9 }), counter({ limit: 9 })];
    const minutes = [0, 2, 2, 4].map((minute) => ({ counters, at: minute * 60_000 }));
    const [, next, same, last] = await writesOf(true, minutes);
    expect(next).toEqual({ rows: 2 + 2, alarms: 0 });
    expect(same).toEqual({ rows: 2, alarms: 0 });
    expect(last).toEqual({ rows: 2 + 2, alarms: 0 });
  });

  it("are one for a return of a charge", async () => {
    const quota = counter({ limit: 3, windowMs: HOUR });
    const returned = { kind: "adjust", counters: [{ ...quota, cost: -1 }] } as const;
    const charged = { counters: [quota] };
    const writes = await writesOf(true, [charged, returned, charged, charged, returned]);
    expect(writes.map(({ rows }) => rows)).toEqual([1, 1, 1, 1, 1]);
  });

  it("are one for a settlement, and none for a refund in a window that has ended", async () => {
    const quota = counter({ limit: 3, windowMs: HOUR });
    const { index } = windowAt(NOW, quota);
    const settle = (cost: number, chargedIn: number) =>
      ({ kind: "adjust", counters: [{ ...quota, cost, chargedIn }] }) as const;
    const calls = [
      { counters: [quota] },
      settle(-1, index),
      settle(5, index),
      settle(-1, index - 1),
    ];
    const writes = await writesOf(true, calls);
    expect(writes.map(({ rows }) => rows)).toEqual([1, 1, 1, 0]);
  });

  it("are one for each row that an alarm removes, which sets one more alarm while rows are left", async () => {
    const [minutes, hour] = [[counter(), counter()], counter({ windowMs: HOUR })];
    const alarmAfter = (minute: number) => ({ kind: "alarm", at: minute * 60_000 + 1000 }) as const;
    const calls = [{ counters: [...minutes, hour] }, alarmAfter(1), alarmAfter(60)];
    expect(await writesOf(false, calls)).toEqual([
      { rows: 3 + 2, alarms: 1 },
      { rows: 2, alarms: 1 },
      { rows: 1, alarms: 0 },
    ]);
  });

  it("are one for each counter", async () => {
    const [minute, hour] = [counter(), counter({ windowMs: HOUR })];
    expect(await rowsWrittenBy([minute, hour], [minute, hour])).toEqual([2, 2]);
  });

  it("are one for a slot that is taken, renewed or given back, and none for a denied request", async () => {
    const all = counter({ limit: 1 });
    const take = (slot: number) => ({ counters: [{ ...all, slot }] });
    const adjust = (cost: number) =>
      ({ kind: "adjust", counters: [{ ...all, slot: 1, cost }] }) as const;
    // A slot is taken for a waiting call, and again by its decision.
    const calls = [take(1), take(2), adjust(0), adjust(-1), take(3), take(3)];
    expect(await writesOf(true, calls)).toEqual([
      { rows: 1, alarms: 0 },
      { rows: 0, alarms: 0 },
      { rows: 1, alarms: 0 },
      { rows: 1, alarms: 0 },
      { rows: 1, alarms: 0 },
      { rows: 1, alarms: 0 },
    ]);
  });

  it("are one for a counter that rolls over, and one for a ban", async () => {
    const rolling = counter({ limit: 1, ceiling: 2, rollsOver: true });
    expect(await rowsWrittenBy([rolling], [rolling], [rolling])).toEqual([1, 1, 0]);
    const banned = counter({ limit: 1, ban: bans(HOUR) });
    expect(await rowsWrittenBy([banned], [banned], [banned])).toEqual([1, 1, 0]);
    const escalating = counter({ limit: 1, ban: bans(HOUR, 2 * HOUR) });
    expect(await rowsWrittenBy([escalating], [escalating], [escalating])).toEqual([1, 2, 0]);
  });
});
