import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { runs } from "../../suite/runs.ts";
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
const CUTS = runs(100);
/** The longest deadline that Weir accepts, in milliseconds. */
const TIMEOUT_MS = 30_000;

const servers = useServers();

/**
 * Delays the origin's responses to a path until `answer` is called. `reached` resolves when a
 * request arrives.
 */
function holdResponse(path: string, status: number, headers: Record<string, string | number> = {}) {
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
      config: { store, rules: RULES, prefix: `cut-${randomUUID()}`, timeoutMs: TIMEOUT_MS },
      vars: servers.varsFor(store),
    });
  });

  afterAll(() => worker.stop());

  const newClient = () => ({ "CF-Connecting-IP": `198.51.100.${++clients}` });

  /**
   * Returns the quota that a client has left. To read it, the function sends a request that costs
   * nothing.
   */
  async function remaining(path: string, headers: Record<string, string>): Promise<number> {
    servers.origin.on(path, (_, response) => response.writeHead(200, { "x-cost": "0" }).end());
    const answer = await send(worker.url, path, { headers });
    return Number(limitsOf(answer.headers)[0]?.r);
  }

  describe.each(WAYS_TO_HANG_UP)("when the client hangs up by %s", (way) => {
    it.each([
      ["/failed", 401, {}, 1],
      ["/priced", 200, { "x-cost": PRICE }, PRICE],
    ])("charges all responses of the origin: %s", async (path, status, fields, cost) => {
      const headers = newClient();
      const before = servers.origin.received.length;
      for (let cut = 0; cut < CUTS; cut++) {
        const { reached, answer } = holdResponse(path, status, fields);
        await hangUp(worker.url, { path, headers }, { way, when: reached });
        answer();
      }
      expect(servers.origin.received).toHaveLength(before + CUTS);
      await vi.waitFor(
        async () => expect(await remaining(path, headers)).toBe(1000 - CUTS * cost),
        PATIENCE,
      );
      // In earlier tests, the origin answers no client that has hung up, so a cost is unknown.
      const unexpected = worker.logs().filter((line) => !line.includes('"no-response"'));
      expect(unexpected).toEqual([]);
    });

    it("charges an incomplete request like a request without a response", async () => {
      const headers = newClient();
      const { reached } = holdResponse("/priced", 200, { "x-cost": PRICE });
      const cut = { method: "POST", path: "/priced", headers, body: "half", contentLength: 8 };
      await hangUp(worker.url, cut, { way, when: reached });
      await vi.waitFor(async () => expect(await remaining("/priced", headers)).toBe(999), PATIENCE);
    });

    it("closes the origin's connection if no client reads the response", async () => {
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
      const hungUpAt = performance.now();
      await closed.promise;
      // Weir closes the connection because of the client, and not because of a deadline.
      expect(performance.now() - hungUpAt).toBeLessThan(TIMEOUT_MS);
      await vi.waitFor(
        async () => expect(await remaining("/priced", headers)).toBe(1000 - PRICE),
        PATIENCE,
      );
    });
  });
});

describe("when the client hangs up during a call over REST", () => {
  let worker: RunningWorker;

  beforeAll(async () => {
    worker = await startWorker({
      config: { rules: RULES, prefix: `cut-${randomUUID()}`, timeoutMs: TIMEOUT_MS },
      vars: servers.varsFor("upstash"),
    });
  });

  afterAll(() => worker.stop());

  // Weir makes two calls: one decides, and one charges the response. It sends each of them twice,
  // because Redis has lost the script.
  it.each(
    WAYS_TO_HANG_UP.flatMap((way) =>
      ["the first", "the second", "the third", "the fourth"].map(
        (call, index) => [call, way, index + 1] as const,
      ),
    ),
  )("completes every call if the client hangs up in %s, by %s", async (_, way, cutAt) => {
    const headers = { "CF-Connecting-IP": `198.51.${WAYS_TO_HANG_UP.indexOf(way)}.${cutAt}` };
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
          // The delay gives the Worker time to notice that the client has hung up.
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        // The first call of each script gets the reply of a Redis that has lost its scripts.
        if (calls % 2 === 1) {
          response.writeHead(400).end('{"error":"NOSCRIPT No matching script."}');
          return;
        }
        await pass();
        passed += 1;
      },
    });
    await hangUp(worker.url, { path: "/priced", headers }, { way, when: cut.promise });
    await vi.waitFor(() => expect([calls, passed]).toEqual([4, 2]), PATIENCE);
    await servers.rest.inject();
    servers.origin.on("/priced", (_, response) => response.writeHead(200, { "x-cost": "0" }).end());
    const answer = await send(worker.url, "/priced", { headers });
    expect(limitsOf(answer.headers)).toMatchObject([{ name: "priced", r: 1000 - PRICE }]);
    expect(worker.logs()).toEqual([]);
  });
});
