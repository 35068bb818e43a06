import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it } from "vitest";
import type { DenialsQuery } from "../../../src/control/protocol.ts";
import { Statistics } from "../../../src/control/statistics.ts";
import type { Denials } from "../../../src/statistics/denials.ts";
import { MINUTE_MS } from "../../../src/statistics/sums.ts";
import { denialsOf, identity, minuteAt, uploadOf } from "./uploads.ts";

afterEach(() => reset());

const NOW = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS + 30_000;
const DAY_MS = 1440 * MINUTE_MS;
let isolates = 0;

/** Runs a task with the statistics of a new object. */
function withStatistics<Result>(
  task: (parts: {
    readonly sql: SqlStorage;
    readonly statistics: Statistics;
    /** Uploads denials at a time, from an isolate of its own. */
    readonly upload: (denials: readonly Denials[], now?: number) => void;
    readonly read: (query?: DenialsQuery, now?: number) => ReturnType<Statistics["denials"]>;
  }) => Promise<Result> | Result,
): Promise<Result> {
  const object = env.WEIR_CONTROL.getByName(crypto.randomUUID());
  return runInDurableObject(object, async (_, { storage }) => {
    const statistics = new Statistics(storage, NOW);
    const read = (query: DenialsQuery = {}, now = NOW) => statistics.denials(query, now);
    const upload = (denials: readonly Denials[], now = NOW) => {
      isolates += 1;
      const sums = { source: `isolate ${isolates}`, minutes: [minuteAt(now, 1)], denials };
      void statistics.add(uploadOf(1, sums), now);
      // A read writes what has been uploaded.
      statistics.denials({}, now);
    };
    return task({ sql: storage.sql, statistics, upload, read });
  });
}

describe("the denials in the control object", () => {
  it("of a client by one policy in one minute are one entry, from all isolates", async () => {
    const found = await withStatistics(({ upload, read }) => {
      upload([
        denialsOf("a", NOW, { count: 3, firstAt: NOW - 900, retryAfterMs: 800, colo: "FRA" }),
      ]);
      upload([denialsOf("a", NOW - 500, { count: 4, firstAt: NOW - 2000, colo: "SIN" })]);
      upload([denialsOf("a", NOW, { mode: "shadow" }), denialsOf("b", NOW - 1)]);
      return read();
    });
    const all = { rule: "login", policy: "login/1m", client: identity("a") };
    expect(found).toHaveLength(3);
    expect(found).toContainEqual({
      ...{ ...all, mode: "enforce", count: 7, firstAt: NOW - 2000, lastAt: NOW },
      ...{ retryAfterMs: 800, colo: "FRA", id: expect.any(Number) },
    });
    expect(found).toContainEqual(expect.objectContaining({ client: identity("b"), count: 1 }));
  });

  it("are readable before they are written, and survive the object", async () => {
    const object = env.WEIR_CONTROL.getByName(crypto.randomUUID());
    const [shown, restored] = await runInDurableObject(object, async (_, { storage }) => {
      const statistics = new Statistics(storage, NOW);
      const sums = (at: number) => ({ minutes: [minuteAt(at, 1)], denials: [denialsOf("a", at)] });
      await statistics.add(uploadOf(1, sums(NOW - 10)), NOW - 10);
      void statistics.add(uploadOf(2, sums(NOW)), NOW);
      return [statistics.denials({}, NOW), new Statistics(storage, NOW).denials({}, NOW)];
    });
    expect(shown).toMatchObject([{ count: 2, firstAt: NOW - 10, lastAt: NOW }]);
    expect(restored).toEqual(shown);
  });

  it("count once although an upload is repeated", async () => {
    const found = await withStatistics(async ({ statistics, read }) => {
      const upload = uploadOf(1, { minutes: [minuteAt(NOW, 1)], denials: [denialsOf("a", NOW)] });
      await statistics.add(upload, NOW);
      await statistics.add(upload, NOW + 5000);
      return read();
    });
    expect(found).toMatchObject([{ count: 1 }]);
  });

  it("are missing in an upload of an older version, which counts", async () => {
    const [found, requests] = await withStatistics(async ({ statistics, read }) => {
      await statistics.add(uploadOf(1, { minutes: [minuteAt(NOW, 1)] }), NOW);
      return [read(), statistics.totals(NOW).requests.requests];
    });
    expect([found, requests]).toEqual([[], 1]);
  });

  it.each([
    ["a client that is not a hash", { client: "203.0.113.7" }],
    ["no time", { lastAt: Number.NaN }],
  ])("do not have %s", async (_, fields) => {
    const found = await withStatistics(({ upload, read }) => {
      upload([denialsOf("a", NOW, fields)]);
      return read();
    });
    expect(found).toEqual([]);
  });

  it("are once on all pages together, although more denials of the same minute come", async () => {
    await withStatistics(({ upload, read }) => {
      const clients = Array.from({ length: 30 }, (_, index) => `${index}`);
      upload(clients.map((client, index) => denialsOf(client, NOW + index)));
      const first = read({ limit: 10 });
      upload([denialsOf("0", NOW + 100), denialsOf("late", NOW - 100)]);
      const others = read({ before: first.at(-1)?.id });
      const seen = [...first, ...others].map(({ client }) => client);
      expect(seen.toSorted()).toEqual(clients.map(identity).toSorted());
    });
  });

  it("take at most sixty entries for a client that is denied 100,000 times in an hour", async () => {
    const [found, rows] = await withStatistics(({ sql, upload, read }) => {
      const start = Math.floor(NOW / MINUTE_MS) * MINUTE_MS - 59 * MINUTE_MS;
      for (let second = 0; second < 3600; second += 5) {
        const at = start + second * 1000;
        upload([denialsOf("a", at, { count: 139 })], at);
      }
      const { count } = sql.exec<{ count: number }>("SELECT count(*) AS count FROM denials").one();
      return [read({}, NOW + MINUTE_MS), count];
    });
    expect(found).toHaveLength(60);
    expect(rows).toBe(60);
    expect(found.reduce((sum, { count }) => sum + count, 0)).toBe(720 * 139);
  });

  it("are at most 2,000, of which the oldest are removed", async () => {
    const [lengths, oldest] = await withStatistics(({ upload, read }) => {
      const lengths: number[] = [];
      for (let minute = 0; minute < 30; minute++) {
        const at = NOW - (30 - minute) * MINUTE_MS;
        upload(
          Array.from({ length: 150 }, (_, i) => denialsOf(`${minute}-${i}`, at + i)),
          at,
        );
        lengths.push(read().length);
      }
      return [lengths, read().at(-1)];
    });
    expect(Math.max(...lengths)).toBeLessThanOrEqual(2000);
    expect(Math.min(...lengths.slice(14))).toBeGreaterThanOrEqual(1900);
    expect(oldest?.lastAt).toBeGreaterThan(NOW - 15 * MINUTE_MS);
  });

  it("are at most 2,000 of one minute, and those with the smallest numbers are left out", async () => {
    const found = await withStatistics(({ upload, read }) => {
      upload([denialsOf("often", NOW - 20_000, { count: 50 })]);
      for (let part = 0; part < 30; part++) {
        upload(Array.from({ length: 150 }, (_, i) => denialsOf(`${part}-${i}`, NOW + part)));
      }
      return read();
    });
    expect(found.length).toBeLessThanOrEqual(2000);
    expect(found.length).toBeGreaterThanOrEqual(1900);
    expect(found.at(-1)).toMatchObject({ client: identity("often"), count: 50 });
    expect(found[0]?.lastAt).toBe(NOW + 29);
  });

  it("are kept for 7 days", async () => {
    const [shown, rows] = await withStatistics(({ sql, upload, read }) => {
      upload([denialsOf("old", NOW - 7 * DAY_MS - MINUTE_MS)], NOW - 7 * DAY_MS - MINUTE_MS);
      upload([denialsOf("kept", NOW - 7 * DAY_MS + MINUTE_MS)], NOW - 7 * DAY_MS + MINUTE_MS);
      upload([], NOW);
      const { count } = sql.exec<{ count: number }>("SELECT count(*) AS count FROM denials").one();
      return [read(), count];
    });
    expect(shown).toMatchObject([{ client: identity("kept") }]);
    expect(rows).toBe(1);
  });

  it("are selected by rule, client and time, and page by page, the newest first", async () => {
    await withStatistics(({ upload, read }) => {
      for (let minute = 0; minute < 10; minute++) {
        const at = NOW - (9 - minute) * MINUTE_MS;
        upload([denialsOf("a", at), denialsOf("b", at + 1, { rule: "search" })], at);
      }
      const times = (query: DenialsQuery) => read(query).map(({ lastAt }) => lastAt);
      const all = times({});
      expect(all).toHaveLength(20);
      expect(all).toEqual(all.toSorted((one, other) => other - one));
      expect(times({ rule: "search" })).toEqual(all.filter((_, index) => index % 2 === 0));
      expect(times({ clients: [identity("a")] })).toEqual(all.filter((_, i) => i % 2 === 1));
      expect(times({ clients: [] })).toEqual([]);
      expect(times({ since: NOW - 2 * MINUTE_MS, until: NOW - MINUTE_MS })).toEqual(
        all.slice(3, 6),
      );
      expect(times({ since: NOW - 2 * MINUTE_MS + 1, until: NOW - MINUTE_MS - 1 })).toEqual(
        all.slice(4, 5),
      );
      const pages: number[] = [];
      let before: number | undefined;
      do {
        const page = read({ before, limit: 3 });
        pages.push(...page.map(({ lastAt }) => lastAt));
        before = page.at(-1)?.id;
      } while (before !== undefined);
      expect(pages).toEqual(all);
    });
  });
});
