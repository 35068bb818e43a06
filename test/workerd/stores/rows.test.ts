import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, it } from "vitest";
import { type Counter, decideGroup } from "../../../src/engine/fixed-window.ts";
import { Rows } from "../../../src/stores/rows.ts";
import { counter } from "../../suite/counters.ts";

const HOUR = 3_600_000;
const NOW = Math.ceil(Date.now() / HOUR) * HOUR;

/** Decides in an object's storage, and gives the rows that SQLite says it wrote for each decision. */
function rowsWrittenBy(...decisions: Counter[][]): Promise<number[]> {
  const stub = env.COUNTERS.getByName(crypto.randomUUID());
  return runInDurableObject(stub, async (_, { storage }) => {
    let cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
    const sql = {
      exec: (query: string, ...bindings: SqlStorageValue[]) => {
        const cursor = storage.sql.exec(query, ...bindings);
        cursors.push(cursor);
        return cursor;
      },
    };
    const setAlarm = (time: number) => storage.setAlarm(time);
    const rows = new Rows({ sql, setAlarm } as unknown as DurableObjectStorage, undefined);
    rows.read("the table, which is made by the first look", NOW);
    return decisions.map((counters) => {
      cursors = [];
      const { writes } = decideGroup(counters, NOW, (key) => rows.read(key, NOW));
      rows.write(writes, NOW);
      return cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
    });
  });
}

describe("rows written by a Durable Object", () => {
  it("are one for an admitted request, and none for a denied one", async () => {
    const quota = counter({ limit: 3, windowMs: HOUR });
    expect(await rowsWrittenBy([quota], [quota], [quota], [quota])).toEqual([1, 1, 1, 0]);
  });

  it("are one for each counter", async () => {
    const [minute, hour] = [counter(), counter({ windowMs: HOUR })];
    expect(await rowsWrittenBy([minute, hour], [minute, hour])).toEqual([2, 2]);
  });

  it("are one for a counter that rolls over, and one for a ban", async () => {
    const rolling = counter({ limit: 1, ceiling: 2, rollsOver: true });
    expect(await rowsWrittenBy([rolling], [rolling], [rolling])).toEqual([1, 1, 0]);
    const banned = counter({ limit: 1, banMs: HOUR });
    expect(await rowsWrittenBy([banned], [banned], [banned])).toEqual([1, 1, 0]);
  });
});
