import { reset, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, it } from "vitest";
import type { Resolution } from "../../../src/control/protocol.ts";
import {
  BUCKET_MS,
  BucketTables,
  bucketAt,
  emptyRow,
  RETENTION_MS,
  RuleSlots,
  readReport,
} from "../../../src/control/statistics.ts";
import { noRuleSums } from "../../../src/statistics/sums.ts";
import { clientOf } from "./uploads.ts";

// Prints how long it takes to read and add up the statistics of 200 rules and a year.

const RULES = 200;
const REPEATS = 7;
const NOW = Math.floor(Date.now() / BUCKET_MS.day) * BUCKET_MS.day + BUCKET_MS.day / 2;

afterEach(reset);

it("reads a day of minutes, a month of hours and a year of days with 200 rules", async () => {
  const object = env.WEIR_CONTROL.getByName("reading");
  const durations = await runInDurableObject(object, (_, { storage }) => {
    const { sql } = storage;
    const slots = new RuleSlots(sql);
    const tables = new BucketTables(sql);
    const row = emptyRow();
    for (let rule = 0; rule < RULES; rule++) {
      const slot = slots.slotFor(`rule-number-${rule}`);
      const sums = { requests: 123_456, allowed: 120_000, limited: 3456, peak: 1 };
      row.rules.add(slot, { ...noRuleSums(), ...sums });
    }
    const identity = (i: number) => `${i}`.padStart(22, "x");
    storage.transactionSync(() => {
      for (const [resolution, count] of Object.entries({ minute: 1440, hour: 720, day: 366 })) {
        for (let i = 0; i < count; i++) {
          const at = NOW - i * BUCKET_MS[resolution as Resolution];
          tables.addTo(resolution as Resolution, at, [row]);
        }
      }
      for (let day = 0; day < 366; day++) {
        const at = NOW - day * BUCKET_MS.day;
        tables.add(
          [],
          Array.from({ length: 256 }, (__, i) => clientOf(identity(i + day), i + 1, at)),
        );
      }
    });
    return (["minute", "hour", "day"] as const).map((resolution) => {
      const query = { resolution, from: NOW - RETENTION_MS[resolution], until: NOW + 1 };
      const times = Array.from({ length: REPEATS }, () => {
        const startedAt = performance.now();
        const report = readReport(sql, slots, query, NOW);
        const duration = performance.now() - startedAt;
        expect(Object.keys(report.rules)).toHaveLength(RULES);
        expect(report.buckets.at(-1)?.at).toBe(bucketAt(resolution, NOW));
        expect(report.clients).toHaveLength(100);
        return duration;
      });
      const [median = 0] = times.sort((one, other) => one - other).slice(REPEATS / 2);
      return `${resolution}s: ${median.toFixed(1)} ms`;
    });
  });
  console.log(`Reading and adding up 200 rules: ${durations.join(", ")}`);
});
