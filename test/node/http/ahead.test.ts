import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import { startWorkerd, type Workerd, weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { type Answer, send } from "../support/client.ts";
import { limitsOf, policiesOf } from "../support/quota-fields.ts";
import { REMOTE_STORES, type RemoteStore, useServers } from "../support/servers.ts";

// A window of a day that began twelve hours ago, so it does not end while the tests run.
const start = new Date(Date.now() - 12 * 3_600_000).toISOString();
const day = { window: "1d", start, async: true } as const;
const RULES: ConfigInput["rules"] = [
  { name: "leased", match: { paths: ["/leased"] }, limit: 50, ...day },
  // Without leases, each read of the quota shows all charges and nothing else.
  { name: "reads", match: { paths: ["/reads", "/slow"] }, limit: 50, ...day, lease: false },
  {
    name: "tokens",
    match: { paths: ["/tokens"] },
    limit: 1000,
    cost: { reserve: 10, settle: "header:x-tokens", max: 100 },
    ...day,
  },
  { name: "open", match: { paths: ["/open"] }, limit: 50, ...day },
  { name: "local", match: { paths: ["/local"] }, limit: 4, ...day, onError: "local" },
];
const ISOLATES = 8;
const DISTANCE_MS = 150;
/** The path of the origin that each call to a Durable Object waits for. */
const GATE = "/gate";

const servers = useServers();

/** Decides what happens to each call to the store. Calling `pass` lets the store decide and answer. */
type OnCall = (pass: () => Promise<unknown>) => unknown;

/** Starts isolates that share a store. The last one is an app with the middleware. */
async function startIsolates(store: RemoteStore, count: number): Promise<Workerd> {
  const config = {
    store,
    rules: RULES,
    prefix: randomUUID(),
    timeoutMs: 10_000,
    quotaPath: "/quotas",
  };
  const main = (isApp: boolean) => `
    import { CounterObject as Counters, defineConfig, Hono, rateLimit, weir } from "./weir.mjs";
    export class CounterObject extends Counters {
      async run(...args) {
        await fetch("${servers.origin.url}${GATE}");
        return super.run(...args);
      }
    }
    const config = defineConfig(${JSON.stringify(config)});
    const app = new Hono();
    app.use(rateLimit(config));
    app.all("*", () => new Response("ok", { headers: { "x-tokens": "25" } }));
    export default ${isApp ? "app" : "weir(config)"};
  `;
  const vars = Object.entries(servers.varsFor(store)).map(([name, value]) => {
    return [name, { type: "text", value } as const];
  });
  const workers = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const modules = { "main.mjs": main(at === count - 1), "weir.mjs": await weirModule() };
      const object = { type: "durable-object", worker: "isolate-0", exportName: "CounterObject" };
      const env = { ...Object.fromEntries(vars), COUNTERS: object };
      const exports = { CounterObject: { type: "durable-object", storage: "sqlite" } } as const;
      return { config: { ...workerConfig(`isolate-${at}`, modules), env, exports } };
    }),
  );
  return startWorkerd(workers, { onLog: () => {} });
}

describe.each(REMOTE_STORES)("a rule with async over the store %s", (store) => {
  let workerd: Workerd;
  let clients = 0;
  let calls = 0;

  beforeAll(async () => {
    workerd = await startIsolates(store, ISOLATES + 1);
    await onCalls((pass) => pass());
    // The first request of an isolate takes longer.
    const each = workerd.urls.map((_, at) => sendTo("/reads", newClient(), at));
    await Promise.all(each);
  });

  afterEach(() => onCalls((pass) => pass()));

  afterAll(() => workerd.stop());

  async function onCalls(onCall: OnCall): Promise<void> {
    servers.origin.on(GATE, (_, response) => {
      calls += 1;
      onCall(async () => response.end());
    });
    const answer = (_: unknown, __: unknown, pass: () => unknown) => {
      calls += 1;
      onCall(async () => pass());
    };
    if (store === "upstash") await servers.rest.inject({ answer });
  }

  /** Makes all calls to the store wait. */
  async function holdCalls() {
    const [called, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await onCalls(async (pass) => {
      called.resolve();
      await released.promise;
      await pass();
    });
    return { called: called.promise, release: () => released.resolve() };
  }

  const newClient = () => `2001:db8:${(++clients).toString(16)}::1`;

  function sendTo(path: string, client: string, isolate = 0): Promise<Answer> {
    const headers = { "CF-Connecting-IP": client };
    return send(workerd.urls[isolate] as URL, path, { headers });
  }

  /** Reads the quota that a client has left, by a read that never passes ahead. */
  async function remainingOf(path: string, client: string, isolate = 0): Promise<unknown> {
    const { headers } = await sendTo(`/quotas?path=${path}`, client, isolate);
    return limitsOf(headers)[0]?.r;
  }

  /** @param isolate the one that has sent the requests, because it knows its leases */
  const isCharged = (path: string, client: string, remaining: number, isolate?: number) =>
    vi.waitFor(
      async () => expect(await remainingOf(path, client, isolate)).toBe(remaining),
      PATIENCE,
    );

  it.each([
    { entrance: "the Worker", isolate: 0 },
    { entrance: "the middleware", isolate: ISOLATES },
  ])(
    "answers before the store, with the policy and the state that $entrance knows",
    async ({ isolate }) => {
      const client = newClient();
      const first = await holdCalls();
      const answer = await sendTo("/leased", client, isolate);
      expect(answer.status).toBe(200);
      expect(policiesOf(answer.headers)).toEqual([{ name: "leased", q: 50, w: 86_400 }]);
      expect(answer.headers.ratelimit).toBeUndefined();
      await first.called;
      first.release();
      await isCharged("/leased", client, 49, isolate);
      const second = await holdCalls();
      expect(limitsOf((await sendTo("/leased", client, isolate)).headers)).toMatchObject([
        { r: 48 },
      ]);
      second.release();
    },
  );

  it("shows exact quotas if the store answers before the origin", async () => {
    const client = newClient();
    const { release } = await holdCalls();
    servers.origin.on("/slow", async (_, response) => {
      release();
      await isCharged("/slow", client, 49);
      response.end("ok");
    });
    expect(limitsOf((await sendTo("/slow", client)).headers)).toMatchObject([{ r: 49 }]);
  });

  it.each([
    { isolates: 1, most: 51 },
    { isolates: ISOLATES, most: 58 },
  ])(
    "admits at most $most of 1,000 requests at once in $isolates isolates, with few calls",
    async ({ isolates, most }) => {
      const client = newClient();
      await onCalls((pass) => delay(DISTANCE_MS).then(pass));
      const before = calls;
      const answers = await Promise.all(
        Array.from({ length: 1000 }, (_, at) => sendTo("/leased", client, at % isolates)),
      );
      const passed = answers.filter(({ status }) => status === 200).length;
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(1000 - passed);
      expect(passed).toBeGreaterThanOrEqual(50);
      expect(passed).toBeLessThanOrEqual(most);
      expect(calls - before).toBeLessThanOrEqual(10 * isolates);
      expect(await remainingOf("/leased", client)).toBe(0);
    },
  );

  it("settles the cost of a response that came before the store's answer", async () => {
    const client = newClient();
    const { release } = await holdCalls();
    servers.origin.on("/tokens", (_, response) => response.setHeader("x-tokens", "25").end());
    expect((await sendTo("/tokens", client)).status).toBe(200);
    release();
    await isCharged("/tokens", client, 975);
  });

  describe.each(WAYS_TO_HANG_UP)("when a client hangs up by %s", (way) => {
    const cut = async (client: string, when: Promise<unknown> | number, path = "/reads") =>
      hangUp(
        workerd.urls[0] as URL,
        { path, headers: { "CF-Connecting-IP": client } },
        { way, when },
      );

    it("while the call of a request that passed ahead is away, charges it and decides others", async () => {
      const client = newClient();
      const { called, release } = await holdCalls();
      await cut(client, called);
      // This request has no call of its own while the first one's is away.
      const waiting = sendTo("/reads", client);
      const other = sendTo("/reads", newClient());
      await delay(50);
      release();
      expect((await waiting).status).toBe(200);
      expect((await other).status).toBe(200);
      await isCharged("/reads", client, 48);
    });

    it("before the call has left, charges the request", async () => {
      const client = newClient();
      // The batches of an isolate have at most eight calls in flight.
      const { release } = await holdCalls();
      const others = Array.from({ length: 8 }, () => sendTo("/reads", newClient()));
      await Promise.all(others);
      const reached = Promise.withResolvers<void>();
      servers.origin.on("/reads", (_, response) => {
        reached.resolve();
        setTimeout(() => response.end("ok"), 50);
      });
      await cut(client, reached.promise);
      servers.origin.on("/reads", (_, response) => response.end("ok"));
      await delay(50);
      release();
      await isCharged("/reads", client, 49);
    });

    it("after the store's answer, charges the request and its response", async () => {
      const client = newClient();
      const reached = Promise.withResolvers<void>();
      const answered = Promise.withResolvers<void>();
      servers.origin.on("/tokens", async (_, response) => {
        reached.resolve();
        await answered.promise;
        response.setHeader("x-tokens", "25").end();
      });
      const charged = reached.promise.then(() => isCharged("/tokens", client, 990));
      await cut(client, charged, "/tokens");
      answered.resolve();
      await isCharged("/tokens", client, 975);
    });
  });
});

describe("while Redis fails", () => {
  let workerd: Workerd;

  beforeAll(async () => {
    await servers.rest.inject();
    workerd = await startIsolates("upstash", 2);
    await servers.rest.inject({ answer: (_, response) => response.destroy() });
  });

  afterAll(() => workerd.stop());

  it.each([
    { path: "/open", isolate: 0, statuses: [200, 200, 200] },
    // The share of one isolate is a quarter of the limit.
    { path: "/local", isolate: 1, statuses: [200, 200, 429] },
  ])(
    "the first request to $path passes ahead, and onError decides the next ones",
    async ({ path, isolate, statuses }) => {
      const answers: Answer[] = [];
      for (const _ of statuses) {
        const headers = { "CF-Connecting-IP": "203.0.113.1" };
        answers.push(await send(workerd.urls[isolate] as URL, path, { headers }));
      }
      expect(answers.map(({ status }) => status)).toEqual(statuses);
      const policies = answers.map(({ headers }) => headers["ratelimit-policy"] !== undefined);
      expect(policies).toEqual([true, false, statuses[2] === 429]);
    },
  );
});
