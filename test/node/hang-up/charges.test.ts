import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { limitsOf } from "../support/quota-fields.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const QUOTA = { limit: 1000, window: "52w" } as const;
const RULES: ConfigInput["rules"] = [
  { name: "failed", match: { paths: ["/failed"] }, ...QUOTA, count: { status: [401] } },
  { name: "priced", match: { paths: ["/priced", "/endless"] }, ...QUOTA, cost: "header:x-cost" },
];
const PRICE = 7;
const CUTS = 30;

const servers = useServers();

/** Answers when it is told to; `reached` is when the request has come. */
function held(path: string, status: number, headers: Record<string, string | number> = {}) {
  const [reached, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  servers.origin.on(path, async (_, response) => {
    reached.resolve();
    await answered.promise;
    response.writeHead(status, headers).end("done");
  });
  return { reached: reached.promise, answer: () => answered.resolve() };
}

describe.each(REMOTE_STORES)("over the store %s", (store) => {
  let worker: RunningWorker;
  let clients = 0;

  beforeAll(async () => {
    worker = await startWorker({
      config: { store, rules: RULES, prefix: `cut-${randomUUID()}`, timeoutMs: 5000 },
      vars: servers.varsFor(store),
    });
  });

  afterAll(() => worker.stop());

  const newClient = () => ({ "CF-Connecting-IP": `198.51.100.${++clients}` });

  /** What a client has left of a rule, which a request that costs nothing shows. */
  async function left(path: string, headers: Record<string, string>): Promise<number> {
    servers.origin.on(path, (_, response) => response.writeHead(200, { "x-cost": "0" }).end());
    const answer = await send(worker.url, path, { headers });
    return Number(limitsOf(answer.headers)[0]?.r);
  }

  describe.each(WAYS_TO_HANG_UP)("when the client goes by %s", (way) => {
    it.each([
      ["/failed", 401, {}, 1],
      ["/priced", 200, { "x-cost": PRICE }, PRICE],
    ])(
      "charges for all the work that the origin has done: %s",
      async (path, status, fields, cost) => {
        const headers = newClient();
        const before = servers.origin.received.length;
        for (let cut = 0; cut < CUTS; cut++) {
          const { reached, answer } = held(path, status, fields);
          await hangUp(worker.url, { path, headers }, { way, when: reached });
          answer();
        }
        expect(servers.origin.received).toHaveLength(before + CUTS);
        await vi.waitFor(
          async () => expect(await left(path, headers)).toBe(1000 - CUTS * cost),
          5000,
        );
        expect(worker.logs()).toEqual([]);
      },
      20_000,
    );

    it("charges for a body that breaks off as for a request without an answer", async () => {
      const headers = newClient();
      const { reached } = held("/priced", 200, { "x-cost": PRICE });
      const cut = { method: "POST", path: "/priced", headers, body: "half", contentLength: 8 };
      await hangUp(worker.url, cut, { way, when: reached });
      await vi.waitFor(async () => expect(await left("/priced", headers)).toBe(999), 5000);
    });

    it("lets the origin's connection go when nobody reads its answer", async () => {
      const headers = newClient();
      const [reached, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      servers.origin.on("/endless", (_, response) => {
        response.writeHead(200, { "x-cost": String(PRICE) });
        const timer = setInterval(() => response.write("x".repeat(1000)), 10);
        response.on("close", () => {
          clearInterval(timer);
          closed.resolve();
        });
        reached.resolve();
      });
      await hangUp(worker.url, { path: "/endless", headers }, { way, when: reached.promise });
      const sentAt = performance.now();
      await closed.promise;
      expect(performance.now() - sentAt).toBeLessThan(3000);
      await vi.waitFor(async () => expect(await left("/priced", headers)).toBe(1000 - PRICE), 5000);
    });
  });
});

describe.each(WAYS_TO_HANG_UP)("when the client goes by %s during a call over REST", (way) => {
  let worker: RunningWorker;

  beforeAll(async () => {
    worker = await startWorker({
      config: { rules: RULES, prefix: `cut-${randomUUID()}`, timeoutMs: 5000 },
      vars: servers.varsFor("upstash"),
    });
  });

  afterAll(() => worker.stop());

  // The decision, and what charges for the response; each is sent twice where Redis forgot the script.
  it.each([
    ["the first", 1],
    ["the second", 2],
    ["the third", 3],
    ["the fourth", 4],
  ])("all that has begun is done: %s call", async (_, cutAt) => {
    const headers = { "CF-Connecting-IP": `198.51.100.${cutAt}` };
    servers.origin.on("/priced", (_, response) =>
      response.writeHead(200, { "x-cost": PRICE }).end(),
    );
    const cut = Promise.withResolvers<void>();
    let [calls, passed] = [0, 0];
    await servers.rest.inject({
      command: (command) => command,
      async answer(_, response, pass) {
        calls += 1;
        if (calls === cutAt) {
          cut.resolve();
          // Until the Worker has learnt that the client is gone.
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        // A Redis that has forgotten its scripts, for each of them once.
        if (calls % 2 === 1) {
          response.writeHead(400).end('{"error":"NOSCRIPT No matching script."}');
          return;
        }
        await pass();
        passed += 1;
      },
    });
    await hangUp(worker.url, { path: "/priced", headers }, { way, when: cut.promise });
    await vi.waitFor(() => expect([calls, passed]).toEqual([4, 2]), 5000);
    await servers.rest.inject();
    servers.origin.on("/priced", (_, response) => response.writeHead(200, { "x-cost": "0" }).end());
    const answer = await send(worker.url, "/priced", { headers });
    expect(limitsOf(answer.headers)).toMatchObject([{ name: "priced", r: 1000 - PRICE }]);
    expect(worker.logs()).toEqual([]);
  });
});
