import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const LIMIT = 1000;
const CUTS = 10;
/** The quota that each client of the service has taken before the cut. */
const TAKEN = 4;
/** How long Redis and the app each take, in milliseconds. */
const SLOW_MS = 40;

const CONFIG: ConfigInput = {
  prefix: `cut-${randomUUID()}`,
  timeoutMs: 5000,
  rules: [
    {
      name: "failed",
      match: { paths: ["/login"] },
      limit: LIMIT,
      window: "52w",
      count: { status: [401] },
    },
    {
      name: "called",
      match: { paths: ["/never"] },
      key: "header:x-key",
      limit: LIMIT,
      window: "52w",
    },
  ],
};

/** A Worker with a middleware and an app. The app also calls the service over RPC. */
const MAIN = `
  import { CounterObject, defineConfig, Hono, rateLimit, WeirService } from "./weir.mjs";
  const config = defineConfig(${JSON.stringify(CONFIG)});
  const app = new Hono();
  let handled = 0;
  let called = 0;
  app.use(rateLimit(config));
  app.post("/login", async (c) => {
    await scheduler.wait(${SLOW_MS});
    handled += 1;
    return c.text("no", 401);
  });
  app.get("/login", (c) => c.json(handled));
  app.get("/called", (c) => c.json(called));
  app.get("/limits/:method/:key", async (c) => {
    const { method, key } = c.req.param();
    if (method !== "value") called += 1;
    const limits = c.executionCtx.exports.Limits;
    if (method === "take") return c.json(await limits.limit("called", { key }));
    if (method === "give") return c.json(await limits.limit("called", { key, cost: -3 }));
    if (method === "reset") return c.json((await limits.reset("called", { key })) ?? null);
    return c.json(await limits.getValue("called", { key }));
  });
  export class Limits extends WeirService { config = config; }
  export { CounterObject };
  export default app;
`;

const servers = useServers();
let worker: RunningWorker;

beforeAll(async () => {
  worker = await startWorker({ config: CONFIG, main: MAIN, vars: servers.varsFor("upstash") });
  await servers.rest.inject({ answer: (_request, _response, pass) => setTimeout(pass, SLOW_MS) });
});

afterAll(() => worker.stop());

async function get<Result>(path: string): Promise<Result> {
  return JSON.parse(`${(await send(worker.url, path)).body}`);
}

/** Resolves when the app has begun a further call of the service, which then waits for Redis. */
async function callAfter(calls: number): Promise<void> {
  while ((await get<number>("/called")) === calls) await delay(1);
}

const remaining = async (key: string) =>
  (await get<{ remaining: number }[]>(`/limits/value/${key}`))[0]?.remaining;

describe.each(WAYS_TO_HANG_UP)("when the client hangs up by %s", (way) => {
  it.each([
    ["during the decision", SLOW_MS / 2],
    ["while the app runs", SLOW_MS * 1.5],
    ["during the charge", SLOW_MS * 2.5],
  ])("the middleware charges the app's response: %s", async (_, when) => {
    const headers = { "CF-Connecting-IP": `198.51.100.${Math.round(when)}`, "X-Way": way };
    if (way === "end") headers["CF-Connecting-IP"] = `198.51.101.${Math.round(when)}`;
    const before = await get<number>("/login");
    const cut = { method: "POST", path: "/login", headers };
    await Promise.all(Array.from({ length: CUTS }, () => hangUp(worker.url, cut, { way, when })));
    await vi.waitFor(async () => {
      const answer = await send(worker.url, "/login", { headers });
      const done = JSON.parse(`${answer.body}`) - before;
      // On a busy machine, some clients hang up before Weir has read their request.
      expect(done).toBeGreaterThan(0);
      expect(limitsOf(answer.headers)[0]?.r).toBe(LIMIT - done);
    }, PATIENCE);
    expect(worker.logs()).toEqual([]);
  });

  it.each<[string, string, number]>([
    ["takes the quota", "take", LIMIT - TAKEN - 1],
    ["gives the quota back", "give", LIMIT - TAKEN + 3],
    ["resets the client", "reset", LIMIT],
  ])("the service %s", async (_, method, rest) => {
    const key = randomUUID();
    for (let times = 0; times < TAKEN; times++) await send(worker.url, `/limits/take/${key}`);
    const cut = { path: `/limits/${method}/${key}` };
    const calls = await get<number>("/called");
    await hangUp(worker.url, cut, { way, when: callAfter(calls) });
    await vi.waitFor(async () => expect(await remaining(key)).toBe(rest), PATIENCE);
    expect(worker.logs()).toEqual([]);
  });
});
