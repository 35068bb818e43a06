import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it, vi } from "vitest";
import { Statistics } from "../../../src/control/statistics.ts";
import { MINUTE_MS } from "../../../src/statistics/sums.ts";
import { clientOf, denialsOf, minuteAt, uploadOf } from "./uploads.ts";

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

const NOW = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS + 10_000;

/**
 * Uploads sums to a global object that has written before.
 *
 * @returns the number of rows that SQLite reports as written
 */
function rowsWrittenFor(limitsClients: boolean, uploads: number): Promise<number> {
  return runInDurableObject(
    env.WEIR_CONTROL.getByName(crypto.randomUUID()),
    async (_, { storage }) => {
      const cursors: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
      const sql = {
        exec: (query: string, ...bindings: SqlStorageValue[]) => {
          const cursor = storage.sql.exec(query, ...bindings);
          cursors.push(cursor);
          return cursor;
        },
      };
      const transactionSync = (task: () => void) => storage.transactionSync(task);
      const counted = { sql, transactionSync } as unknown as DurableObjectStorage;
      const statistics = new Statistics(counted, NOW);
      const clients = limitsClients ? [clientOf("a", 1, NOW), clientOf("b", 1, NOW)] : [];
      const denials = limitsClients ? [denialsOf("a", NOW), denialsOf("b", NOW)] : [];
      const sums = { minutes: [minuteAt(NOW, 1)], clients, denials };
      await statistics.add(uploadOf(1, sums), NOW);
      cursors.length = 0;
      const later = NOW + 5000;
      vi.useFakeTimers({ now: later });
      const adds = Array.from({ length: uploads }, (__, i) =>
        statistics.add(uploadOf(2, { ...sums, source: `${i}` }), later),
      );
      await vi.advanceTimersByTimeAsync(1000);
      await Promise.all(adds);
      return cursors.reduce((sum, { rowsWritten }) => sum + rowsWritten, 0);
    },
  );
}

it("writes four rows for an upload, and one more if it names denied clients", async () => {
  expect(await rowsWrittenFor(false, 1)).toBe(4);
  expect(await rowsWrittenFor(true, 1)).toBe(5);
});

it("writes as few rows for many uploads in one second as for two", async () => {
  expect(await rowsWrittenFor(false, 20)).toBe(8);
  expect(await rowsWrittenFor(true, 20)).toBe(10);
});

it("counts sums once if the first attempt to write them fails", async () => {
  const object = env.WEIR_CONTROL.getByName(crypto.randomUUID());
  const counts = await runInDurableObject(object, async (_, { storage }) => {
    let isFull = false;
    const transactionSync = (task: () => void) =>
      storage.transactionSync(() => {
        task();
        if (isFull) throw new Error("database or disk is full");
      });
    const failing = { sql: storage.sql, transactionSync } as unknown as DurableObjectStorage;
    const statistics = new Statistics(failing, NOW);
    const first = uploadOf(1, { minutes: [minuteAt(NOW, 2, "new")] });
    isFull = true;
    await expect(statistics.add(first, NOW)).rejects.toThrow("full");
    isFull = false;
    await statistics.add(first, NOW + 5000);
    const { requests, rules } = statistics.totals(NOW + 5000);
    const stored = new Statistics(failing, NOW + 5000).totals(NOW + 5000);
    return [requests.requests, rules.new?.requests, stored.rules.new?.requests];
  });
  expect(counts).toEqual([2, 2, 2]);
});

it("answers a call without sums at once, although sums wait for the next write", async () => {
  const object = env.WEIR_CONTROL.getByName(crypto.randomUUID());
  const isAnswered = await runInDurableObject(object, async (_, { storage }) => {
    const statistics = new Statistics(storage, NOW);
    await statistics.add(uploadOf(1, { minutes: [minuteAt(NOW, 1)] }), NOW);
    vi.useFakeTimers({ now: NOW + 100 });
    const waiting = { source: "other", minutes: [minuteAt(NOW, 1)] };
    const write = statistics.add(uploadOf(1, waiting), NOW + 100);
    let answered = false;
    void statistics.add(uploadOf(0, { source: "third" }), NOW + 100).then(() => (answered = true));
    await vi.advanceTimersByTimeAsync(1);
    const result = answered;
    await vi.advanceTimersByTimeAsync(1000);
    await write;
    return result;
  });
  expect(isAnswered).toBe(true);
});
