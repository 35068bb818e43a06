import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type {} from "../../../dev/provided.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import type { ConfigInput, RuleInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

// A window of a day that began twelve hours ago, so it does not end while the tests run.
const start = new Date(Date.now() - 12 * 3_600_000).toISOString();
const LIMITS = [
  { limit: 1, window: "1d" },
  { limit: 100, window: "2d" },
] as const;

/** Rules that the reader has used up, and a rule for the logins of another client. */
const RULES: RuleInput[] = [
  ...Array.from({ length: 100 }, (_, at): RuleInput => {
    const match = { headers: { "x-api-key": true } };
    return { name: `rule${at}`, match, key: "header:x-api-key", limits: LIMITS, start };
  }),
  { name: "login", match: { paths: ["/login"] }, limit: 5, window: "1d", start, onError: "open" },
];
const STORES = ["upstash", "durable-object"] as const;

/** The addresses of 600 reads, 60 from each. */
const readers = (network: string) =>
  Array.from({ length: 600 }, (_, at) => `${network}.${at % 10}`);

let origin: Origin;
let rest: UpstashRest;
let workers: readonly RunningWorker[];

beforeAll(async () => {
  origin = await startOrigin();
  rest = await startUpstashRest({ redis: inject("redis") });
  const vars = {
    ORIGIN_URL: origin.url,
    UPSTASH_REDIS_REST_URL: rest.url,
    UPSTASH_REDIS_REST_TOKEN: rest.token,
  };
  const config: ConfigInput = { rules: RULES, quotaPath: "/rate-limit" };
  workers = await startWorkers(
    STORES.map((store) => ({ config: { ...config, store, prefix: randomUUID() }, vars })),
  );
});

afterAll(async () => {
  await workers[0]?.stop();
  await rest.stop();
  await origin.stop();
});

describe.each(STORES)("over %s", (store) => {
  const sendTo = (path: string, client: string, key?: string) => {
    const { url } = workers[STORES.indexOf(store)] as RunningWorker;
    const headers = { "CF-Connecting-IP": client, ...(key && { "X-Api-Key": key }) };
    return send(url, path, { headers });
  };

  it.each([
    ["/rate-limit", "198.51.100"],
    ["/rate-limit?path=/x", "198.51.101"],
  ])(
    "lets exactly 5 of 30 logins of another client pass during 600 reads of a denied client: %s",
    async (path, network) => {
      for (let sent = 0; sent < 2; sent++) await sendTo("/x", "203.0.113.1", "used");
      const reads = readers(network).map((reader) => sendTo(path, reader, "used"));
      const logins = Array.from({ length: 30 }, () => sendTo("/login", `${network}.200`));
      const statuses = (await Promise.all(logins)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(5);
      expect(statuses.filter((status) => status === 429)).toHaveLength(25);
      for (const { status } of await Promise.all(reads)) expect(status).toBe(200);
    },
  );

  it("lets exactly 5 of 30 logins of another client pass during 60 reads with made-up keys", async () => {
    const reads = Array.from({ length: 60 }, () =>
      sendTo("/rate-limit?path=/x", "198.51.102.1", randomUUID()),
    );
    const logins = Array.from({ length: 30 }, () => sendTo("/login", "203.0.113.200"));
    const statuses = (await Promise.all(logins)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(25);
    await Promise.all(reads);
  });
});
