import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type {} from "../../../dev/provided.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Answer, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

const RULES: ConfigInput["rules"] = [
  {
    name: "login",
    match: { methods: ["POST"], paths: ["/login"] },
    limit: 5,
    window: "1h",
    onError: "closed",
  },
  { name: "rush", match: { paths: ["/rush"] }, limit: 100, window: "1h", lease: false },
  { name: "leased", match: { paths: ["/leased"] }, limit: 100, window: "1h" },
  { name: "client", match: { paths: ["/shared", "/own"] }, limit: 10, window: "1h" },
  { name: "everyone", match: { paths: ["/shared"] }, key: "global", limit: 50, window: "1h" },
  { name: "short", match: { paths: ["/short"] }, limit: 2, window: "1s" },
];

const redis = inject("redis");
const REDIS_VARS = {
  UPSTASH_REDIS_REST_URL: redis.restUrl,
  UPSTASH_REDIS_REST_TOKEN: redis.restToken,
};

const STORES: { store: string; vars?: Record<string, string>; config?: Partial<ConfigInput> }[] = [
  { store: "Durable Objects" },
  { store: "Redis, by Redis's clock", vars: REDIS_VARS },
  { store: "Redis, by the edge's clock", vars: REDIS_VARS, config: { clock: "edge" } },
  { store: "memory", config: { store: "memory" } },
];

let origin: Origin;
let workers: readonly RunningWorker[];
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  workers = await startWorkers(
    STORES.map(({ vars, config }) => ({
      // The prefix gives this run its own counters.
      config: { rules: RULES, prefix: `http-${randomUUID()}`, ...config },
      vars: { ORIGIN_URL: origin.url, ...vars },
    })),
  );
});

afterAll(async () => {
  await workers[0]?.stop();
  await origin.stop();
});

function sendFrom(client: string, path: string, method = "GET"): Promise<Answer> {
  return send(worker.url, path, { method, headers: { "CF-Connecting-IP": client } });
}

describe.each(STORES.map(({ store }, at) => ({ store, at })))(
  "limits counted in $store",
  ({ at }) => {
    beforeAll(async () => {
      await awayFromWindowEdge(3_600_000);
      worker = workers[at] as RunningWorker;
    });

    it("admit five requests to /login, and deny the sixth of that client only", async () => {
      const before = origin.received.length;
      const statuses: number[] = [];
      for (let attempt = 1; attempt <= 6; attempt++) {
        statuses.push((await sendFrom("203.0.113.1", "/login", "POST")).status);
      }
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
      expect(origin.received).toHaveLength(before + 5);
      expect((await sendFrom("203.0.113.2", "/login", "POST")).status).toBe(200);
      expect((await sendFrom("203.0.113.1", "/login", "GET")).status).toBe(200);
    });

    it.each(["rush", "leased"])(
      "admit exactly the limit if 400 requests arrive at the same time: %s",
      async (rule) => {
        const before = origin.received.length;
        const answers = await Promise.all(times(400, () => sendFrom("203.0.113.1", `/${rule}`)));
        expect(tally(answers)).toEqual({ 200: 100, 429: 300 });
        expect(origin.received).toHaveLength(before + 100);
        if (rule === "leased") return;
        // Each admitted request has a different remaining quota, so each was counted exactly once. With leases, the
        // numbers of simultaneous requests may differ by the leased quota.
        const remaining = answers.filter(({ status }) => status === 200).map(remainingOf("rush"));
        expect(remaining.toSorted((a, b) => a - b)).toEqual(times(100, (index) => index));
      },
    );

    it("apply to each client and to all clients together, for 200 simultaneous requests", async () => {
      const clients = times(8, (index) => `203.0.113.${100 + index}`);
      const answers = await Promise.all(
        times(25, () => clients)
          .flat()
          .map(async (client) => ({ client, ...(await sendFrom(client, "/shared")) })),
      );
      expect(tally(answers)).toEqual({ 200: 50, 429: 150 });
      for (const client of clients) {
        const admitted = answers.filter((each) => each.client === client && each.status === 200);
        expect(admitted.length).toBeLessThanOrEqual(10);
        expect((await sendFrom(client, "/shared")).status).toBe(429);
        // If the common limit denies a request, the client loses none of its own quota. Its denials may come
        // from memory, so only a request under its own limit alone shows the exact count.
        const { status, headers } = await sendFrom(client, "/own");
        expect(status).toBe(admitted.length < 10 ? 200 : 429);
        expect(remainingOf("client")({ headers })).toBe(Math.max(0, 9 - admitted.length));
      }
    });

    it("admit a client again after its window has ended, at the latest after Retry-After", async () => {
      let last = await sendTimed();
      for (let requests = 1; last.status === 200 && requests < 100; requests++)
        last = await sendTimed();
      expect(last).toMatchObject({ status: 429, headers: { "retry-after": "1" } });
      const promisedAt = last.answeredAt + 1000;
      while (last.status === 429) {
        expect(last.sentAt).toBeLessThan(promisedAt);
        last = await sendTimed();
      }
      expect(last.status).toBe(200);
      expect(remainingOf("short")(last)).toBe(1);
    });
  },
);

async function sendTimed() {
  const sentAt = Date.now();
  const answer = await sendFrom("203.0.113.1", "/short");
  return { ...answer, sentAt, answeredAt: Date.now() };
}

function remainingOf(policy: string) {
  return ({ headers }: Pick<Answer, "headers">): number =>
    Number(limitsOf(headers).find(({ name }) => name === policy)?.r);
}

function tally(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
