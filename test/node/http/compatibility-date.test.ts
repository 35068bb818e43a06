import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { MIN_DATE } from "../../../cli/deployment/worker.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import { startWorkerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";

const MAIN = `
  import { defineConfig, weir } from "./weir.mjs";
  export { CounterObject } from "./weir.mjs";
  const rules = [{ name: "api", limit: 10, window: "52w", lease: false, onError: "closed" }];
  export default weir(defineConfig({ rules, timeoutMs: 10_000, prefix: ${JSON.stringify(`dates-${Date.now()}`)} }));
`;

let origin: Origin;
let rest: UpstashRest;

beforeAll(async () => {
  origin = await startOrigin();
  rest = await startUpstashRest({ redis: inject("redis"), delayMs: 50 });
});

afterAll(async () => {
  await rest.stop();
  await origin.stop();
});

/** With a date that is too old, requests may never be answered. With other dates, an answer takes milliseconds. */
const MAX_WAIT_MS = 20_000;

/** Sends 40 requests of one client at once. Returns how often each status occurred. */
async function statusesWith(compatibilityDate: string, store: "upstash" | "objects") {
  const modules = { "main.mjs": MAIN, "weir.mjs": await weirModule() };
  const text = (value: string) => ({ type: "text", value }) as const;
  const stores = {
    upstash: {
      UPSTASH_REDIS_REST_URL: text(rest.url),
      UPSTASH_REDIS_REST_TOKEN: text(rest.token),
    },
    objects: {
      COUNTERS: { type: "durable-object", worker: "weir", exportName: "CounterObject" },
    },
  } as const;
  const config = {
    ...workerConfig("weir", modules),
    compatibilityDate,
    env: { ...stores[store], ORIGIN_URL: text(origin.url) },
    exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
  } as const;
  const workerd = await startWorkerd([{ config }], { onLog: () => {} });
  try {
    const [url] = workerd.urls as [URL];
    const headers = { "CF-Connecting-IP": "203.0.113.1" };
    const counts: Record<number, number> = {};
    const answered = Array.from({ length: 40 }, async () => {
      const { status } = await send(url, "/", { headers });
      counts[status] = (counts[status] ?? 0) + 1;
    });
    await Promise.race([Promise.allSettled(answered), delay(MAX_WAIT_MS)]);
    return { ...counts };
  } finally {
    await workerd.stop();
  }
}

it.each(["upstash", "objects"] as const)(
  "a burst is decided with the oldest compatibility date that Weir supports, with %s",
  async (store) => {
    expect(await statusesWith(MIN_DATE, store)).toEqual({ 200: 10, 429: 30 });
  },
);

it("requests that share calls fail or wait with a date before the oldest one", async () => {
  const dayBefore = new Date(Date.parse(MIN_DATE) - 86_400_000).toISOString().slice(0, 10);
  expect(await statusesWith(dayBefore, "objects")).not.toEqual({ 200: 10, 429: 30 });
});
