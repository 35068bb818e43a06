/**
 * Measures `concurrent: 4` with an origin that takes 50 ms: many requests at once from one client, spread over several
 * isolates, without `wait` and with it. The client retries after each 429. The origin counts its open requests. A second
 * measurement counts the calls to Redis, with 64 slots and 64 connections to one isolate.
 *
 * Usage: npm run bench:slots [-- --requests 1000 --isolates 8 --origin-ms 50]
 */

import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { listen } from "../../dev/loopback.ts";
import { startRedis } from "../../dev/redis.ts";
import { startUpstashRest } from "../../dev/upstash-rest.ts";
import { startWorkerd, weirModule, workerConfig } from "../../dev/workerd.ts";
import type { ConfigInput } from "../../src/config/index.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000" },
    isolates: { type: "string", default: "8" },
    "origin-ms": { type: "string", default: "50" },
  },
});
const REQUESTS = Number(values.requests);
const ISOLATES = Number(values.isolates);
const ORIGIN_MS = Number(values["origin-ms"]);
const REDIS_LATENCY_MS = 2;

/** What the origin sees. `busyMs` is the sum of the times for which requests were open. */
const origin = { open: 0, highest: 0, busyMs: 0, firstAt: 0, lastAt: 0 };
const server = createServer(async (_request, response) => {
  const startedAt = performance.now();
  origin.firstAt ||= startedAt;
  origin.open += 1;
  origin.highest = Math.max(origin.highest, origin.open);
  await delay(ORIGIN_MS);
  origin.open -= 1;
  response.end("ok");
  origin.lastAt = performance.now();
  origin.busyMs += origin.lastAt - startedAt;
});
const { host, port, stop: stopOrigin } = await listen(server);
const { stop: stopRedis, ...redis } = await startRedis({ requireServer: true });
const rest = await startUpstashRest({ redis, token: "bench", delayMs: REDIS_LATENCY_MS });

/** Starts isolates that share a store. Each isolate is a Worker of its own. */
async function startIsolates(
  store: "upstash" | "durable-object",
  concurrent: number,
  count: number,
  wait?: string,
) {
  const rules = [{ name: "model", key: "header:x-api-key", concurrent, wait }];
  const prefix = `${store}-${concurrent}-${wait}`;
  const config: ConfigInput = { store, rules, timeoutMs: 10_000, prefix };
  const main = `
    import { CounterObject, defineConfig, weir } from "./weir.mjs";
    export { CounterObject };
    export default weir(defineConfig(${JSON.stringify(config)}));
  `;
  const weir = await weirModule();
  const workers = Array.from({ length: count }, (_, at) => ({
    config: {
      ...workerConfig(`weir-${at}`, { "main.mjs": main, "weir.mjs": weir }),
      env: {
        ORIGIN_URL: { type: "text", value: `http://${host}:${port}` },
        UPSTASH_REDIS_REST_URL: { type: "text", value: rest.url },
        UPSTASH_REDIS_REST_TOKEN: { type: "text", value: rest.token },
        COUNTERS: { type: "durable-object", worker: "weir-0", exportName: "CounterObject" },
      },
      exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
    },
  }));
  return startWorkerd(workers as Parameters<typeof startWorkerd>[0], { onLog: () => {} });
}

/** Sends one request. @returns its status, and how long it has waited in Weir, in milliseconds */
async function send(url: string, agent: Agent) {
  const sent = request(url, { agent, headers: { "x-api-key": "bench" } }).end();
  const [response] = await once(sent, "response");
  response.resume();
  await once(response, "end");
  const [, waited = "0"] =
    /weir-wait;dur=(\d+)/.exec(response.headers["server-timing"] ?? "") ?? [];
  return { status: response.statusCode, waitedMs: Number(waited) };
}

for (const store of ["upstash", "durable-object"] as const) {
  for (const wait of [undefined, "60s"]) await measure(store, wait);
}

async function measure(store: "upstash" | "durable-object", wait: string | undefined) {
  const { urls, stop } = await startIsolates(store, 4, ISOLATES, wait);
  const agent = new Agent({ keepAlive: true });
  // The isolates start before the measurement.
  for (const url of urls) await send(String(url), agent);
  Object.assign(origin, { highest: 0, busyMs: 0, firstAt: 0 });
  let denied = 0;
  const waits: { readonly at: number; readonly waitedMs: number }[] = [];
  await Promise.all(
    Array.from({ length: REQUESTS }, async (_, at) => {
      while (true) {
        const { status, waitedMs } = await send(String(urls[at % urls.length]), agent);
        if (status === 200) return waits.push({ at, waitedMs });
        denied += 1;
        await delay(500 * Math.random() + 250);
      }
    }),
  );
  const used = origin.busyMs / (4 * (origin.lastAt - origin.firstAt));
  console.log(
    `${store}, ${ISOLATES} isolates, wait ${wait ?? "none"}: ${REQUESTS} requests served, ${denied} answers 429, at most ${origin.highest} open at the origin, ${(100 * used).toFixed(0)} % of its capacity used`,
  );
  if (wait) {
    const sorted = waits.map(({ waitedMs }) => waitedMs).sort((a, b) => a - b);
    const parts = [0, 0.25, 0.5, 0.75, 0.99, 1].map(
      (each) => sorted[Math.round(each * (sorted.length - 1))],
    );
    console.log(`  waits in ms, at 0, 25, 50, 75, 99 and 100 %: ${parts.join(", ")}`);
  }
  agent.destroy();
  await stop();
}

const CONNECTIONS = 64;
const { urls, stop } = await startIsolates("upstash", CONNECTIONS, 1);
const agent = new Agent({ keepAlive: true });
const callsBefore = rest.calls();
await Promise.all(
  Array.from({ length: CONNECTIONS }, async () => {
    for (let at = 0; at < REQUESTS / 10; at++) await send(String(urls[0]), agent);
  }),
);
const perRequest = (rest.calls() - callsBefore) / (CONNECTIONS * (REQUESTS / 10));
console.log(
  `one isolate, ${CONNECTIONS} connections: ${perRequest.toFixed(2)} calls to Redis a request`,
);
agent.destroy();
await stop();
await rest.stop();
await stopRedis();
await stopOrigin();
process.exit(0);
