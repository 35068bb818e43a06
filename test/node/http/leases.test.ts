import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type {} from "../../../dev/provided.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Answer, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { limitsOf, policiesOf } from "../support/quota-fields.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

// A window of a day that began twelve hours ago, so it does not end while the tests run.
const start = new Date(Date.now() - 12 * 3_600_000).toISOString();
const day = { window: "1d", start } as const;
const RULES: ConfigInput["rules"] = [
  { name: "hot", match: { paths: ["/hot"] }, limit: 100_000, ...day },
  { name: "falling", match: { paths: ["/falling"] }, limit: 60, ...day },
  { name: "rush", match: { paths: ["/rush"] }, limit: 100, ...day },
  { name: "unleased", match: { paths: ["/unleased"] }, limit: 1000, ...day, lease: false },
  { name: "login", match: { paths: ["/login"] }, limit: 2, ...day },
  { name: "strict", match: { paths: ["/strict"] }, limit: 2, ...day, lease: false },
  { name: "client", match: { paths: ["/both"] }, limit: 3, ...day },
  { name: "everyone", match: { paths: ["/both"] }, key: "global", limit: 1000, ...day },
  { name: "shadowed", match: { paths: ["/both"] }, limit: 500, ...day, mode: "shadow" },
];

const CLOCKS = ["store", "edge"] as const;

const redis = inject("redis");
let origin: Origin;
let rest: UpstashRest;
let workers: readonly RunningWorker[];
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  rest = await startUpstashRest({ redis });
  const vars = {
    ORIGIN_URL: origin.url,
    UPSTASH_REDIS_REST_URL: rest.url,
    UPSTASH_REDIS_REST_TOKEN: rest.token,
  };
  workers = await startWorkers(
    CLOCKS.map((clock) => {
      const config = { rules: RULES, clock, prefix: `leases-${randomUUID()}` };
      return { config, vars };
    }),
  );
});

afterAll(async () => {
  await workers[0]?.stop();
  await rest.stop();
  await origin.stop();
});

function sendTo(path: string, client = "203.0.113.1"): Promise<Answer> {
  return send(worker.url, path, { headers: { "CF-Connecting-IP": client } });
}

/** Sends requests one after the other. Returns the answers and the number of calls over REST. */
async function sendSome(count: number, path: string, client?: string) {
  const before = rest.calls();
  const answers: Answer[] = [];
  for (let sent = 0; sent < count; sent++) answers.push(await sendTo(path, client));
  return { answers, calls: rest.calls() - before };
}

function remainingOf(policy: string) {
  return ({ headers }: Pick<Answer, "headers">): number =>
    Number(limitsOf(headers).find(({ name }) => name === policy)?.r);
}

/** Returns `count` numbers: `from`, `from` - 1, and so on. */
function countdown(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => from - index);
}

describe.each(CLOCKS)("over Redis, with the clock %s", (clock) => {
  beforeAll(async () => {
    worker = workers[CLOCKS.indexOf(clock)] as RunningWorker;
    // This request loads the script into Redis.
    await sendTo("/hot", "203.0.113.99");
  });

  // This test comes first, because it expects an exact number of calls. After other tests, Weir may
  // need a call to return the unused quota of those tests.
  it.each([
    { path: "/login", policy: "login" },
    { path: "/strict", policy: "strict" },
  ])("a denial of $path from memory equals a denial from the store", async ({ path, policy }) => {
    const { answers, calls } = await sendSome(3, path);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(calls).toBe(3);
    const more = await sendSome(9, path);
    expect(more.calls).toBe(0);
    const first = answers[2] as Answer;
    const problem = JSON.parse(first.body.toString());
    for (const { status, headers, body } of more.answers) {
      expect(status).toBe(429);
      expect(Object.keys(headers).sort()).toEqual(Object.keys(first.headers).sort());
      expect(headers["retry-after"]).toMatch(/^\d+$/);
      const waitSeconds = Number(headers["retry-after"]);
      expect(Math.abs(waitSeconds - Number(first.headers["retry-after"]))).toBeLessThan(60);
      expect(limitsOf(headers)).toEqual([{ name: policy, r: 0, t: waitSeconds }]);
      expect(policiesOf(headers)).toEqual(policiesOf(first.headers));
      // The number of seconds decreases from request to request, in the body and in Retry-After.
      const detail = problem.detail.replace(/\d+ s\.$/, `${waitSeconds} s.`);
      expect(JSON.parse(body.toString())).toEqual({ ...problem, detail });
    }
  });

  it("a busy client causes far fewer calls than it sends requests", async () => {
    const { answers, calls } = await sendSome(300, "/hot");
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(calls).toBeLessThan(60);
    expect(calls).toBeGreaterThan(1);
  });

  it("the only request of a client takes one call", async () => {
    let calls = 0;
    for (let host = 1; host <= 9; host++) {
      calls += (await sendSome(1, "/hot", `198.51.100.${host}`)).calls;
    }
    expect(calls).toBe(9);
  });

  it("r falls by one with each request of a client, down to 0", async () => {
    const { answers } = await sendSome(61, "/falling");
    expect(answers.map(({ status }) => status)).toEqual([...Array(60).fill(200), 429]);
    expect(answers.map(remainingOf("falling"))).toEqual([...countdown(59, 60), 0]);
    for (const { headers } of answers) {
      expect(policiesOf(headers)).toEqual([{ name: "falling", q: 60, w: 86_400 }]);
      const [limit] = limitsOf(headers);
      expect(limit?.t).toBeGreaterThan(3600);
      expect(limit?.t).toBeLessThanOrEqual(86_400);
    }
  });

  it("exactly the limit is admitted if 400 requests arrive at the same time", async () => {
    const before = origin.received.length;
    const answers = await Promise.all(Array.from({ length: 400 }, () => sendTo("/rush")));
    const { answers: more } = await sendSome(20, "/rush");
    const admitted = [...answers, ...more].filter(({ status }) => status === 200);
    expect(admitted).toHaveLength(100);
    expect(origin.received).toHaveLength(before + 100);
    for (const each of admitted) {
      expect(remainingOf("rush")(each)).toBeGreaterThanOrEqual(0);
      expect(remainingOf("rush")(each)).toBeLessThan(100);
    }
    for (const { status, headers } of answers) {
      if (status === 429) expect(headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    }
  });

  it("a rule with lease: false takes one call per request, and shows the store's figures", async () => {
    const { answers, calls } = await sendSome(30, "/unleased");
    expect(calls).toBe(30);
    expect(answers.map(remainingOf("unleased"))).toEqual(countdown(999, 30));
  });

  it("a denial from memory charges no other client, and shows every policy", async () => {
    const client = "203.0.113.7";
    const { answers } = await sendSome(4, "/both", client);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    const more = await sendSome(9, "/both", client);
    for (const { status, headers } of more.answers) {
      expect(status).toBe(429);
      expect(limitsOf(headers)).toMatchObject([
        { name: "client", r: 0 },
        { name: "everyone", r: 997 },
      ]);
    }
    const { answers: others } = await sendSome(3, "/both", "203.0.113.8");
    expect(others.map(remainingOf("everyone"))).toEqual([996, 995, 994]);
    expect(others.map(remainingOf("client"))).toEqual([2, 1, 0]);
  });
});
