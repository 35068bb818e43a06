import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type {} from "../../dev/provided.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { send } from "./support/client.ts";
import { type Origin, startOrigin } from "./support/origin.ts";
import { type RunningWorker, startWorkers } from "./support/worker.ts";

// The windows are so long that no window ends during a test.
const RULES: ConfigInput["rules"] = [
  { name: "plain", match: { paths: ["/plain"] }, limit: 100, window: "52w" },
  { name: "rolling", match: { paths: ["/rolling"] }, limit: 60, capacity: 100, window: "52w" },
  { name: "sharded", match: { paths: ["/sharded"] }, limit: 100, window: "52w", shards: 4 },
];

const WORKERS = 3;
const REQUESTS = 300;

const { restUrl, restToken } = inject("redis");

const CLOCKS = ["store", "edge"] as const;
const ENVIRONMENTS = ["staging", "production"].map((name) => `${name}-${randomUUID()}`);

let origin: Origin;
/** The Workers of both clocks, and the Workers of both environments. */
let workersOf: Record<(typeof CLOCKS)[number] | "environments", readonly RunningWorker[]>;

beforeAll(async () => {
  origin = await startOrigin();
  const vars = {
    ORIGIN_URL: origin.url,
    UPSTASH_REDIS_REST_URL: restUrl,
    UPSTASH_REDIS_REST_TOKEN: restToken,
  };
  const ofClocks = CLOCKS.flatMap((clock) => {
    // The prefix gives this run its own counters.
    const config = { rules: RULES, clock, prefix: `several-${randomUUID()}` };
    return Array.from({ length: WORKERS }, () => ({ config, vars }));
  });
  const rules: ConfigInput["rules"] = [
    { name: "api", limit: 2, window: "52w" },
    { name: "trial", limit: 2, window: "52w", mode: "shadow" },
  ];
  const ofEnvironments = ENVIRONMENTS.map((prefix) => ({
    config: { rules },
    vars: { ...vars, WEIR_PREFIX: prefix },
  }));
  const workers = await startWorkers([...ofClocks, ...ofEnvironments]);
  workersOf = {
    store: workers.slice(0, WORKERS),
    edge: workers.slice(WORKERS, 2 * WORKERS),
    environments: workers.slice(2 * WORKERS),
  };
});

afterAll(async () => {
  await workersOf.store[0]?.stop();
  await origin.stop();
});

describe.each(CLOCKS)("three Workers that count in one Redis, with the clock %s,", (clock) => {
  /** Sends requests of one client to all Workers at once, and counts the responses by status. */
  async function rush(path: string): Promise<Record<number, number>> {
    const statuses = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => {
        const { url } = workersOf[clock][index % WORKERS] as RunningWorker;
        return (await send(url, path, { headers: { "CF-Connecting-IP": "203.0.113.1" } })).status;
      }),
    );
    const counts: Record<number, number> = {};
    for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
    return counts;
  }

  it("admit exactly the limit if 300 requests arrive at the same time", async () => {
    expect(await rush("/plain")).toEqual({ 200: 100, 429: 200 });
  });

  it("admit exactly the capacity if quota rolls over", async () => {
    expect(await rush("/rolling")).toEqual({ 200: 100, 429: 200 });
  });

  it("admit at most the limit, and nearly all of it, if it is spread over shards", async () => {
    const { 200: admitted = 0, 429: denied = 0 } = await rush("/sharded");
    expect(admitted + denied).toBe(REQUESTS);
    expect(admitted).toBeLessThanOrEqual(100);
    expect(admitted).toBeGreaterThanOrEqual(90);
  });
});

describe("two environments with one configuration and one Redis", () => {
  it("count separately if each has its own WEIR_PREFIX", async () => {
    const { host, port } = inject("redis");
    const redis = new Redis({ host, port });
    for (const [at, prefix] of ENVIRONMENTS.entries()) {
      const worker = workersOf.environments[at] as RunningWorker;
      const headers = { "CF-Connecting-IP": "203.0.113.9" };
      const statuses: number[] = [];
      for (let sent = 0; sent < 3; sent++) {
        statuses.push((await send(worker.url, "/", { headers })).status);
      }
      expect(statuses).toEqual([200, 200, 429]);
      const keys = await redis.keys(`${prefix}:*`);
      expect(new Set(keys.map((key) => key.split(":")[1]))).toEqual(new Set(["api", "trial"]));
    }
    redis.disconnect();
  });
});
