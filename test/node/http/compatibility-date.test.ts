import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MIN_DATE, MIN_DATE_FOR_OBJECTS } from "../../../cli/deployment/worker.ts";
import { startWorkerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";

const MAIN = `
  import { defineConfig, weir } from "./weir.mjs";
  export { CounterObject } from "./weir.mjs";
  const rules = [{ name: "api", limit: 1, window: "52w", lease: false, onError: "closed" }];
  export default weir(defineConfig({ rules, timeoutMs: 10_000 }));
`;

let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
});

afterAll(() => origin.stop());

/** Returns the statuses of two requests to a Worker with Durable Objects. */
async function statusesWith(compatibilityDate: string, flags: string[]): Promise<number[]> {
  const modules = { "main.mjs": MAIN, "weir.mjs": await weirModule() };
  const config = {
    ...workerConfig("weir", modules),
    compatibilityDate,
    compatibilityFlags: flags,
    env: {
      COUNTERS: { type: "durable-object", worker: "weir", exportName: "CounterObject" },
      ORIGIN_URL: { type: "text", value: origin.url },
    },
    exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
  } as const;
  const workerd = await startWorkerd([{ config }], { onLog: () => {} });
  try {
    const [url] = workerd.urls as [URL];
    const headers = { "CF-Connecting-IP": "203.0.113.1" };
    return [(await send(url, "/", { headers })).status, (await send(url, "/", { headers })).status];
  } finally {
    await workerd.stop();
  }
}

/** Returns the date of the day before. */
function dayBefore(date: string): string {
  return new Date(Date.parse(date) - 86_400_000).toISOString().slice(0, 10);
}

describe("a Worker that counts in Durable Objects", () => {
  it.each([
    ["works", MIN_DATE_FOR_OBJECTS, [], [200, 429]],
    ["cannot call them", dayBefore(MIN_DATE_FOR_OBJECTS), [], [503, 503]],
    ["works", MIN_DATE, ["rpc"], [200, 429]],
  ])("%s with the compatibility date %s and the flags %j", async (_, date, flags, expected) => {
    expect(await statusesWith(date, flags)).toEqual(expected);
  });

  it("answers no request with a date before the oldest one", async () => {
    expect(await statusesWith(dayBefore(MIN_DATE), ["rpc"])).toEqual([500, 500]);
  });
});
