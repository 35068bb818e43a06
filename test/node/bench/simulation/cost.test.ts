import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it, vi } from "vitest";
import { CallMeter } from "../../../../bench/simulation/cost/call-meter.ts";
import { upkeepOfMonth } from "../../../../bench/simulation/cost/object-month.ts";
import { objects, redisByCommand, redisPlan } from "../../../../bench/simulation/cost/prices.ts";
import { Random } from "../../../../bench/simulation/random.ts";
import { startRedis } from "../../../../dev/redis.ts";
import { startUpstashRest } from "../../../../dev/upstash-rest.ts";
import type { Demand } from "../../../../src/engine/counter.ts";
import { NOTHING } from "../../../../src/stores/batch.ts";
import { createUpstashEntries } from "../../../../src/stores/upstash/upstash-store.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {}, DurableObject: class {} }));

const MINUTE = 60_000;
const MONTH_S = 30 * 86_400;

function counter(client: number, fields: Partial<Demand> = {}): Demand {
  const rule = { limit: 2, ceiling: 2, windowMs: MINUTE, offsetMs: 0, cost: 1 };
  return { key: `weir:cost:${client}`, identity: `${client}`, ...rule, ...fields };
}

it("the meter counts the commands that the script counts in Redis", async () => {
  const redis = await startRedis();
  const rest = await startUpstashRest({ redis });
  try {
    const { url, token } = rest;
    const store = createUpstashEntries({ url, token, clock: "edge", timeoutMs: 10_000 });
    const now = Date.now();
    await store.call([{ ...NOTHING, now }]);
    const meter = new CallMeter();
    const block = counter(3, { limit: 100, ceiling: 100, block: 10 });
    // New counters, admitted requests, denials, several clients in a call, and a block.
    for (const demands of [[1], [1], [1], [1, 2], [2, 4]].map((all) =>
      all.map((at) => counter(at)),
    )) {
      await compare(demands);
    }
    await compare([block]);
    await compare([block]);

    async function compare(demands: readonly Demand[]) {
      const before = meter.commands;
      const [first, ...others] = demands.map((demand) => ({ ...NOTHING, now, group: [demand] }));
      const { commands, answers } = await store.call([first as never, ...others]);
      const decided = answers.flatMap((each) =>
        each.flatMap(({ decided }) => (decided && "admitted" in decided ? decided : [])),
      );
      meter.recordCharges(
        undefined,
        demands.map((demand) => [demand]),
        decided,
        [],
      );
      expect(meter.commands - before).toBe(commands);
    }
  } finally {
    await rest.stop();
    await redis.stop();
  }
});

it("an object whose client comes once in days creates its table, sets an alarm and removes the row", async () => {
  const { alarms, rowsWritten } = await upkeepOfMonth(counter(1), 10 / MONTH_S, new Random(1, "a"));
  expect(alarms).toBeGreaterThan(3);
  expect(rowsWritten).toBe(4 * alarms);
});

it("prices are those beyond the included amounts, and the plan is the smallest with the bandwidth", () => {
  const month = { commands: 1e6, bytes: 60e9, objectCalls: 1e6, rowsWritten: 50e6 };
  expect(redisByCommand(month)).toBeCloseTo(2);
  expect(objects(month)).toBe(0);
  expect(objects({ ...month, objectCalls: 2e6, rowsWritten: 51e6 })).toBeCloseTo(1.15);
  expect(redisPlan(month, MONTH_S)).toMatchObject({ dollars: 20 });
  expect(redisPlan({ ...month, commands: 4e5, bytes: 1e9 }, MONTH_S)).toMatchObject({ dollars: 0 });
  expect(redisPlan({ ...month, commands: 11_000 * MONTH_S }, MONTH_S)).toBeUndefined();
  expect(redisPlan({ ...month, bytes: 21e12 }, MONTH_S)).toBeUndefined();
});

it("npm run simulate:cost prints the tables of the reader's own figures", async () => {
  const args = [
    "bench/simulation/cost/cost.ts",
    "--rps",
    "2",
    "--clients",
    "1,3",
    "--limit",
    "900",
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const rows = stdout.split("\n").filter((line) => /^\| 2 +\|/.test(line));
  expect(rows).toHaveLength(4);
  for (const row of rows) expect(row).toMatch(/\| +900 \|/);
  expect(stdout).toContain("**Extrapolated:**");
});
