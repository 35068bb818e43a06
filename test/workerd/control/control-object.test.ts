import { evictDurableObject, reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { StatisticsQuery, StatisticsUpload } from "../../../src/control/protocol.ts";
import {
  MINUTE_MS,
  type MinuteSums,
  noRuleSums,
  type RuleSums,
} from "../../../src/statistics/sums.ts";
import { clientOf, minuteAt, uploadOf } from "./uploads.ts";

const HOUR = 60 * MINUTE_MS;
const DAY = 24 * HOUR;
/** Ten minutes after noon, so that neither the hour nor the day changes during a test. */
const NOON = Math.floor(Date.now() / DAY) * DAY + 12 * HOUR;
const NOW = NOON + 10 * MINUTE_MS;

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

const globalObject = () => env.WEIR_CONTROL.getByName("global");
const at = (time: number) => vi.setSystemTime(time);
/** Uploads a second after the last upload, because the object writes at most once a second. */
const upload = (object: ReturnType<typeof globalObject>, sums: StatisticsUpload) => {
  at(Date.now() + 1000);
  return object.upload(sums);
};
/** The sums of one minute with one request of a rule, whose client then had this number of open requests. */
function withOpen(time: number, rule: string, openPeak: number): MinuteSums {
  const sums = minuteAt(time, 1, rule);
  return { ...sums, rules: { [rule]: { ...noRuleSums(), requests: 1, openPeak } } };
}
/** The sums of one minute with requests of a rule that have passed ahead, of which some were over its limit. */
function withAhead(time: number, rule: string, ahead: number, over: number): MinuteSums {
  const sums = minuteAt(time, ahead, rule, 1);
  const { requests, rules } = sums;
  const both = { ahead, over };
  return {
    ...sums,
    requests: { ...requests, ...both },
    rules: { [rule]: { ...noRuleSums(), ...rules[rule], ...both } },
  };
}
const all: StatisticsQuery = { resolution: "minute", from: NOW - DAY, until: NOW + DAY };

describe("totals", () => {
  it("add up uploads, and count a repeated one once", async () => {
    const object = globalObject();
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 3)] }));
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 3)] }));
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW, 4)] }));
    const { requests, rules, isolates } = await object.totals();
    expect(requests).toMatchObject({ requests: 7, allowed: 7 });
    expect(rules.search).toMatchObject({ requests: 7, allowed: 7 });
    expect(isolates).toBe(1);
  });

  it("survive the eviction of the object, and so does the number of the last upload", async () => {
    const object = globalObject();
    const { since } = await object.totals();
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 3)] }));
    await evictDurableObject(object);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 3)] }));
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW, 1)] }));
    const totals = await object.totals();
    expect(totals.requests.requests).toBe(4);
    expect(totals.since).toBeGreaterThanOrEqual(since);
  });

  it("never decrease when buckets are removed", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 3)] }));
    at(NOW + 400 * DAY);
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW + 400 * DAY, 1)] }));
    expect((await object.totals()).requests.requests).toBe(4);
    const days = await object.statistics({ resolution: "day", from: 0, until: NOW + 500 * DAY });
    expect(days.buckets.map(({ requests }) => requests.requests)).toEqual([1]);
  });
});

describe("statistics", () => {
  it("add late sums to the minute, the hour and the day to which they belong", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 1)] }));
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOON - 1, 2), minuteAt(NOW, 4)] }));
    const counts = async (resolution: StatisticsQuery["resolution"]) => {
      const { buckets } = await object.statistics({ ...all, resolution });
      return buckets.map(({ at: time, requests }) => [time, requests.requests]);
    };
    expect(await counts("minute")).toEqual([
      [NOON - MINUTE_MS, 2],
      [NOW, 5],
    ]);
    expect(await counts("hour")).toEqual([
      [NOON - HOUR, 2],
      [NOON, 5],
    ]);
    expect(await counts("day")).toEqual([[NOON - 12 * HOUR, 7]]);
  });

  it("accept the times from a day ago to a minute ahead, and move others to the nearest", async () => {
    const object = globalObject();
    at(NOW);
    const minutes = [minuteAt(NOW - 5 * DAY, 1), minuteAt(NOW + 5 * DAY, 2)];
    await upload(object, uploadOf(1, { minutes }));
    const { buckets } = await object.statistics({ ...all, from: 0, until: NOW + 9 * DAY });
    expect(buckets.map((bucket) => bucket.at)).toEqual([NOW - DAY, NOW + MINUTE_MS]);
  });

  it("are kept by minute for a day, by hour for 30 days and by day for a year", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 1)] }));
    const kept = { minute: DAY, hour: 30 * DAY, day: 365 * DAY };
    for (const [index, [name, keptMs]] of Object.entries(kept).entries()) {
      const later = NOW + keptMs;
      at(later);
      await upload(object, uploadOf(index + 2, { minutes: [minuteAt(later, 1)] }));
      const resolution = name as StatisticsQuery["resolution"];
      const { buckets } = await object.statistics({ resolution, from: NOW, until: later + 1 });
      expect(buckets, name).toHaveLength(index + 2);
    }
  });

  it("end before the minute that begins at the end of the asked time", async () => {
    const object = globalObject();
    at(NOW);
    const minutes = [minuteAt(NOW - 1, 1), minuteAt(NOW, 2)];
    await upload(object, uploadOf(1, { minutes }));
    const countsUntil = async (until: number) => {
      const { buckets } = await object.statistics({ ...all, until });
      return buckets.map(({ requests }) => requests.requests);
    };
    expect(await countsUntil(NOW)).toEqual([1]);
    expect(await countsUntil(NOW + 1)).toEqual([1, 2]);
  });

  it("have the sums of one rule in each bucket, also while the rule did not exist", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOON, 1, "old")] }));
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW, 2, "new")] }));
    const { rules, ruleBuckets } = await object.statistics({ ...all, rule: "new" });
    expect(ruleBuckets?.map(({ requests }) => requests)).toEqual([0, 2]);
    expect(Object.keys(rules)).toEqual(["new"]);
    const unknown = await object.statistics({ ...all, rule: "none" });
    expect(unknown.ruleBuckets?.map(({ requests }) => requests)).toEqual([0, 0]);
  });

  it("have zeros for a rule in buckets in which no rule applied, or with a row cut short", async () => {
    const object = globalObject();
    at(NOW);
    const unmatched = { ...minuteAt(NOON, 3), rules: {} };
    const minutes = [unmatched, minuteAt(NOON + MINUTE_MS, 5), minuteAt(NOW, 2)];
    await upload(object, uploadOf(1, { minutes }));
    await runInDurableObject(object, (_, { storage }) => {
      storage.sql.exec("UPDATE minute_sums SET rules = x'010203' WHERE at = ?", NOON + MINUTE_MS);
    });
    const { buckets, ruleBuckets } = await object.statistics({ ...all, rule: "search" });
    expect(buckets).toHaveLength(3);
    expect(ruleBuckets?.map(({ requests }) => requests)).toEqual([0, 0, 2]);
  });

  it("have zeros for a rule in an hour and a day without any rule", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [{ ...minuteAt(NOW, 3), rules: {} }] }));
    for (const resolution of ["hour", "day"] as const) {
      const report = await object.statistics({ ...all, resolution, rule: "search" });
      expect(report.ruleBuckets?.map(({ requests }) => requests)).toEqual([0]);
    }
  });

  it("sum up rules over minutes, hours and days as the buckets do", async () => {
    const object = globalObject();
    for (let hour = 48; hour >= 0; hour -= 3) {
      const time = NOW - hour * HOUR;
      at(time);
      await upload(object, uploadOf(100 - hour, { minutes: [minuteAt(time, hour + 1)] }));
    }
    for (const resolution of ["minute", "hour", "day"] as const) {
      for (const from of [NOW - 50 * HOUR, NOON - 20 * HOUR, NOW - 7 * HOUR]) {
        const report = await object.statistics({ resolution, from, until: NOW + 1 });
        const sum = report.buckets.reduce((total, { requests }) => total + requests.requests, 0);
        expect(report.rules.search?.requests).toBe(sum);
      }
    }
  });

  it("have the largest peak of a rule in each bucket and over the whole time", async () => {
    const object = globalObject();
    at(NOW);
    const minutes = [minuteAt(NOON, 1, "search", 0.5), minuteAt(NOW, 1, "search", 0.25)];
    await upload(object, uploadOf(1, { minutes }));
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW, 1, "other", 1)] }));
    await upload(object, uploadOf(3, { minutes: [minuteAt(NOW, 1, "search", 0.125)] }));
    await evictDurableObject(object);
    const { rules, ruleBuckets } = await object.statistics({ ...all, rule: "search" });
    expect(rules.search?.peak).toBe(0.5);
    expect(ruleBuckets?.map(({ peak }) => peak)).toEqual([0.5, 0.25]);
    const days = await object.statistics({ ...all, resolution: "day" });
    expect(days.rules).toMatchObject({ search: { peak: 0.5 }, other: { peak: 1 } });
    expect((await object.totals()).rules.search).toMatchObject({ requests: 3, peak: 0.5 });
  });

  it("have the highest number of open requests of a rule, and the totals that of five minutes", async () => {
    const object = globalObject();
    at(NOW);
    const minutes = [withOpen(NOON, "search", 4), withOpen(NOW, "search", 2)];
    await upload(object, uploadOf(1, { minutes }));
    // An isolate with an older version sends no such number.
    await upload(object, uploadOf(2, { minutes: [minuteAt(NOW, 1), minuteAt(NOW, 1, "other")] }));
    await upload(object, uploadOf(3, { minutes: [withOpen(NOW, "constructor", 3)] }));
    await upload(object, uploadOf(4, { minutes: [withOpen(NOW, "search", 1)] }));
    await evictDurableObject(object);
    const peaks = (rules: Readonly<Record<string, RuleSums>>) =>
      Object.entries(rules).map(([name, { openPeak }]) => [name, openPeak]);
    const found = (search: number) => [
      ["search", search],
      ["other", undefined],
      ["constructor", 3],
    ];
    for (const resolution of ["minute", "hour", "day"] as const) {
      const { rules, buckets } = await object.statistics({ ...all, resolution });
      expect(peaks(rules)).toEqual(found(4));
      expect(Object.keys(buckets[0] ?? {})).toEqual(["at", "requests", "store"]);
    }
    const recent = await object.statistics({ ...all, from: NOW, rule: "search" });
    expect(peaks(recent.rules)).toEqual([["search", 2]]);
    expect(peaks((await object.totals()).rules)).toEqual(found(2));
    at(NOW + 6 * MINUTE_MS);
    expect((await object.totals()).rules.search).toMatchObject({ requests: 4 });
    expect((await object.totals()).rules.search).not.toHaveProperty("openPeak");
  });

  it("add up the requests that passed ahead and were over, of all requests and of each rule", async () => {
    const object = globalObject();
    at(NOW);
    const minutes = [withAhead(NOON, "search", 5, 2), withAhead(NOW, "search", 3, 0)];
    await upload(object, uploadOf(1, { minutes }));
    await upload(object, uploadOf(2, { minutes: [withAhead(NOW, "constructor", 7, 1)] }));
    await upload(object, uploadOf(3, { minutes: [minuteAt(NOW, 1, "other")] }));
    await evictDurableObject(object);
    const expected = {
      search: { ahead: 8, over: 2 },
      constructor: { ahead: 7, over: 1 },
      other: { ahead: 0, over: 0 },
    };
    for (const resolution of ["minute", "hour", "day"] as const) {
      const { rules, buckets } = await object.statistics({ ...all, resolution });
      expect(rules).toMatchObject(expected);
      expect(Object.keys(buckets[0] ?? {})).toEqual(["at", "requests", "store"]);
    }
    const { requests, rules } = await object.totals();
    expect(requests).toMatchObject({ ahead: 15, over: 3 });
    expect(rules).toMatchObject(expected);
    const one = await object.statistics({ ...all, rule: "search" });
    expect(one.ruleBuckets).toMatchObject([
      { allowed: 5, ahead: 5, over: 2 },
      { allowed: 3, ahead: 3, over: 0 },
    ]);
    const none = await object.statistics({ ...all, rule: "none" });
    expect(none.ruleBuckets).toMatchObject([{ ahead: 0 }, { ahead: 0 }]);
  });

  it("add open requests and requests that passed ahead to a row that an earlier version has stored", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { minutes: [minuteAt(NOW, 1)] }));
    await runInDurableObject(object, (_, { storage }) => {
      for (const table of ["minute_sums", "hour_sums", "day_sums", "total_sums"]) {
        storage.sql.exec(
          `UPDATE ${table} SET head = json_remove(head, '$.openPeaks', '$.aheads', '$.overs', '$.requests.ahead')`,
        );
      }
    });
    await evictDurableObject(object);
    expect((await object.statistics(all)).rules.search).not.toHaveProperty("openPeak");
    expect((await object.totals()).requests.ahead).toBe(0);
    await upload(object, uploadOf(2, { minutes: [withOpen(NOW, "search", 2)] }));
    expect((await object.statistics(all)).rules.search).toMatchObject({ requests: 2, openPeak: 2 });
    expect((await object.totals()).rules.search).toMatchObject({ requests: 2, openPeak: 2 });
    await upload(object, uploadOf(3, { minutes: [withAhead(NOW, "search", 4, 1)] }));
    const added = { requests: 6, openPeak: 2, ahead: 4, over: 1 };
    expect((await object.statistics(all)).rules.search).toMatchObject(added);
    expect((await object.totals()).rules.search).toMatchObject(added);
  });

  it("list the clients most limited in the asked time", async () => {
    const object = globalObject();
    at(NOW);
    const clients = [
      clientOf("often", 9, NOW),
      clientOf("once", 1, NOW),
      clientOf("before", 5, NOON - 1),
    ];
    await upload(object, uploadOf(1, { clients }));
    await upload(object, uploadOf(2, { clients: [clientOf("often", 2, NOW)] }));
    const top = async (from: number) => {
      const report = await object.statistics({ ...all, from });
      return report.clients.map(({ client, count }) => [client, count]);
    };
    expect(await top(NOON)).toEqual([
      ["often", 11],
      ["once", 1],
    ]);
    expect((await top(NOW - DAY)).map(([client]) => client)).toEqual(["often", "before", "once"]);
  });

  it("have the time from which the clients are counted, which are kept by hour", async () => {
    const object = globalObject();
    at(NOW);
    const clients = [clientOf("early", 9, NOON + 1), clientOf("late", 1, NOW)];
    await upload(object, uploadOf(1, { clients }));
    const lastMinute = await object.statistics({ ...all, from: NOW - MINUTE_MS });
    expect(lastMinute.clients.map(({ client }) => client)).toEqual(["early", "late"]);
    expect(lastMinute.clientsFrom).toBe(NOON);
    const hours = await object.statistics({ ...all, resolution: "hour", from: NOW - 2 * HOUR });
    expect(hours.clientsFrom).toBe(NOON - 2 * HOUR);
  });

  it("tell how many isolates were seen, and how many of them do not call the store", async () => {
    const object = globalObject();
    at(NOW);
    await upload(object, uploadOf(1, { source: "one" }));
    await upload(object, uploadOf(1, { source: "two", breakerOpen: true }));
    await upload(object, uploadOf(1, { source: "three", breakerOpen: true }));
    expect(await object.statistics(all)).toMatchObject({ isolates: 3, openBreakers: 2 });
    at(Date.now() + 31_000);
    expect(await object.statistics(all)).toMatchObject({ isolates: 0, openBreakers: 0 });
  });
});

it("counts the rules without a slot together", async () => {
  const object = globalObject();
  const names = Array.from({ length: 1001 }, (_, i) => [`rule-${i}`, noRuleSums()] as const);
  const rules = Object.fromEntries(names.map(([name, sums]) => [name, { ...sums, requests: 1 }]));
  await upload(object, uploadOf(1, { minutes: [{ ...minuteAt(NOW, 1), rules }] }));
  const totals = await object.totals();
  expect(Object.keys(totals.rules)).toHaveLength(1000);
  expect(totals.rules["(other)"]?.requests).toBe(2);
});
