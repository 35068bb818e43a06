import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { MIN_DATE } from "../../../cli/deployment/worker.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import { startWorkerd, type Workerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";

const MAIN = `
  import { defineConfig, weir } from "./weir.mjs";
  export { CounterObject } from "./weir.mjs";
  const rules = [{ name: "api", limit: 10, window: "52w", lease: false, onError: "closed" }];
  export default weir(defineConfig({ rules, timeoutMs: 10_000, prefix: ${JSON.stringify(`dates-${Date.now()}`)} }));
`;

const DAY_BEFORE = new Date(Date.parse(MIN_DATE) - 86_400_000).toISOString().slice(0, 10);

/** The date and the store of each Worker. */
const CASES = [
  [MIN_DATE, "upstash"],
  [MIN_DATE, "objects"],
  [DAY_BEFORE, "objects"],
] as const;

let origin: Origin;
let rest: UpstashRest;
let workerd: Workerd;

beforeAll(async () => {
  origin = await startOrigin();
  rest = await startUpstashRest({ redis: inject("redis"), delayMs: 50 });
  const modules = { "main.mjs": MAIN, "weir.mjs": await weirModule() };
  const text = (value: string) => ({ type: "text", value }) as const;
  const workers = CASES.map(([compatibilityDate, store], index) => {
    const name = `weir-${index}`;
    const stores = {
      upstash: {
        UPSTASH_REDIS_REST_URL: text(rest.url),
        UPSTASH_REDIS_REST_TOKEN: text(rest.token),
      },
      objects: { COUNTERS: { type: "durable-object", worker: name, exportName: "CounterObject" } },
    } as const;
    const config = {
      ...workerConfig(name, modules),
      compatibilityDate,
      env: { ...stores[store], ORIGIN_URL: text(origin.url) },
      exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
    } as const;
    return { config };
  });
  workerd = await startWorkerd(workers, { onLog: () => {} });
});

afterAll(async () => {
  await workerd.stop();
  await rest.stop();
  await origin.stop();
});

/**
 * Sends 40 requests of one client at once.
 *
 * @param maxWaitMs requests to a Worker with a date that is too old may never be answered
 * @returns how often each status occurred, and how long the requests took in milliseconds
 */
async function burst(index: number, maxWaitMs = Number.POSITIVE_INFINITY) {
  const url = workerd.urls[index] as URL;
  const headers = { "CF-Connecting-IP": "203.0.113.1" };
  const counts: Record<number, number> = {};
  const startedAt = performance.now();
  const answered = Array.from({ length: 40 }, async () => {
    const { status } = await send(url, "/", { headers });
    counts[status] = (counts[status] ?? 0) + 1;
  });
  const all = Promise.allSettled(answered);
  await (Number.isFinite(maxWaitMs) ? Promise.race([all, delay(maxWaitMs)]) : all);
  return { counts: { ...counts }, tookMs: performance.now() - startedAt };
}

const EXPECTED = { 200: 10, 429: 30 };

it.each([
  ["upstash", 0],
  ["objects", 1],
])(
  "a burst is decided with the oldest compatibility date that Weir supports, with %s",
  async (_, index) => {
    expect((await burst(index)).counts).toEqual(EXPECTED);
  },
);

it("requests that share calls fail or wait with a date before the oldest one", async () => {
  // The wait is many times as long as the same requests take with the oldest date on this machine.
  const { tookMs } = await burst(1);
  expect((await burst(2, 1000 + 10 * tookMs)).counts).not.toEqual(EXPECTED);
});
