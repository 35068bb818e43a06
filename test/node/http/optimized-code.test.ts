import { afterAll, beforeAll, expect, inject, it, vi } from "vitest";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import { startWorkerd, type Workerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
import { IS_LONG } from "../../suite/runs.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";

const CONNECTIONS = 32;
/** So many rules make V8 optimize the code for a call's entries after some hundred requests. */
const SHADOW_RULES = Array.from({ length: 14 }, (_, at) => ({
  name: `shadow-${at}`,
  match: { paths: ["/calls"] },
  mode: "shadow",
  limit: 1e6,
  window: "52w",
}));
const RULES = [
  { name: "calls", match: { paths: ["/calls"] }, limit: 1e6, window: "52w" },
  { name: "slots", match: { paths: ["/slots"] }, concurrent: 8, wait: "60s" },
  {
    name: "ahead",
    match: { paths: ["/ahead"] },
    limit: 1e6,
    window: "52w",
    async: true,
    lease: false,
  },
  ...SHADOW_RULES,
];

let origin: Origin;
let rest: UpstashRest;
let workerd: Workerd;

beforeAll(async () => {
  origin = await startOrigin();
  rest = await startUpstashRest({ redis: inject("redis"), delayMs: 20 });
  const prefix = `optimized-${Date.now()}`;
  const main = `
    import { defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify({ rules: RULES, timeoutMs: 10_000, prefix, quotaPath: "/quotas" })}));
  `;
  const modules = { "main.mjs": main, "weir.mjs": await weirModule() };
  const text = (value: string) => ({ type: "text", value }) as const;
  const env = {
    UPSTASH_REDIS_REST_URL: text(rest.url),
    UPSTASH_REDIS_REST_TOKEN: text(rest.token),
    ORIGIN_URL: text(origin.url),
  };
  // V8 otherwise optimizes this code after 18,000 requests.
  vi.stubEnv("MINIFLARE_WORKERD_V8_FLAGS", "--invocation-count-for-turbofan=10");
  workerd = await startWorkerd([{ config: { ...workerConfig("weir", modules), env } }], {
    onLog: () => {},
  });
  vi.unstubAllEnvs();
});

afterAll(async () => {
  await workerd.stop();
  await rest.stop();
  await origin.stop();
});

/** Sends requests, of which many are open at a time. @returns how often each status occurred */
async function sendMany(path: string, requests: number, clients: number) {
  const counts: Record<number, number> = {};
  let sent = 0;
  const connections = Array.from({ length: CONNECTIONS }, async () => {
    while (sent < requests) {
      sent += 1;
      const headers = { "CF-Connecting-IP": `2001:db8:${(sent % clients).toString(16)}::1` };
      const { status } = await send(workerd.urls[0] as URL, path, { headers });
      counts[status] = (counts[status] ?? 0) + 1;
    }
  });
  await Promise.all(connections);
  return counts;
}

it("answers every request that shares calls with others, after V8 has optimized the code", async () => {
  expect(await sendMany("/calls", 2000, 2000)).toEqual({ 200: 2000 });
});

it("answers every request that waits for others, after V8 has optimized the code", async () => {
  expect(await sendMany("/slots", 700, 1)).toEqual({ 200: 700 });
});

it("answers and decides every request that passes ahead of the store, after V8 has optimized the code", async () => {
  const requests = IS_LONG ? 9000 : 1500;
  expect(await sendMany("/ahead", requests, 300)).toEqual({ 200: requests });
  const clients = Array.from({ length: 300 }, (_, at) => at);
  const used = await Promise.all(
    clients.map(async (client) => {
      const headers = { "CF-Connecting-IP": `2001:db8:${client.toString(16)}::1` };
      const read = await send(workerd.urls[0] as URL, "/quotas?path=/ahead", { headers });
      return 1e6 - Number(limitsOf(read.headers)[0]?.r);
    }),
  );
  expect(used).toEqual(clients.map(() => requests / 300));
});
