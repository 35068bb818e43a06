import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp } from "../../dev/hang-up.ts";
import type { ConfigInput } from "../../src/config/index.ts";
import { FAILURES_TO_OPEN, PAUSE_MS } from "../../src/stores/breaker.ts";
import { send } from "../node/support/client.ts";
import { REMOTE_STORES, useServers } from "../node/support/servers.ts";
import { PATIENCE } from "../patience.ts";
import { type FaultyWorker, startFaultyWorker } from "./support/faulty-worker.ts";

const TIMEOUT_MS = 3000;
const LIMIT = 8;
const LOGINS = 60;
const ATTACKERS = 2;
/** How long a call to the recovered store takes, in milliseconds. Attackers hang up earlier. */
const SLOW_MS = 60;
const STAYS_MS = 15;
const RETRY_MS = 40;

const RULES: ConfigInput["rules"] = [
  { name: "login", match: { paths: ["/login"] }, limit: LIMIT, window: "52w" },
  {
    name: "strict",
    match: { paths: ["/strict"] },
    limit: 100_000,
    window: "52w",
    lease: false,
    onError: "closed",
  },
];

const servers = useServers();
let clients = 0;

const newClient = () => {
  clients += 1;
  return { "CF-Connecting-IP": `198.51.${clients >> 8}.${clients & 255}` };
};

/**
 * For each store, a function that makes it fail, and a function that makes it work again, but
 * slowly.
 */
const STATES = {
  upstash: {
    fail: () => servers.rest.inject({ answer: (_, response) => response.writeHead(500).end("{}") }),
    recover: () =>
      servers.rest.inject({ answer: (_request, _response, pass) => setTimeout(pass, SLOW_MS) }),
  },
  "durable-object": {
    fail: (worker: FaultyWorker) => worker.misbehave("throw"),
    recover: (worker: FaultyWorker) => worker.misbehave("slow"),
  },
} as const;

describe.each(REMOTE_STORES)("an open breaker over %s", (store) => {
  let worker: FaultyWorker;

  beforeAll(async () => {
    const config = { store, rules: RULES, timeoutMs: TIMEOUT_MS, prefix: randomUUID() };
    worker = await startFaultyWorker(config, servers.varsFor(store));
  });

  afterAll(() => worker.stop());

  it("closes although clients hang up on every probe", async () => {
    const { url, logs } = worker;
    const see = async (path: string, headers: Record<string, string>) =>
      await send(url, path, { headers });
    await see("/strict", newClient());
    await STATES[store].fail(worker);
    for (let call = 0; call < FAILURES_TO_OPEN + 3; call++) await see("/strict", newClient());
    await vi.waitFor(() => expect(logs().join()).toContain('"state":"open"'), PATIENCE);

    let isOver = false;
    const attack = Array.from({ length: ATTACKERS }, async () => {
      // Each attacker always has the same address. A new address for each request would need a new
      // Durable Object, which would slow the machine down.
      const cut = { path: "/strict", headers: newClient() };
      while (!isOver) {
        await hangUp(url, cut, { way: "reset", when: STAYS_MS });
        await delay(RETRY_MS);
      }
    });
    await STATES[store].recover(worker);
    await worker.advance(PAUSE_MS);
    try {
      // After a lost probe, the breaker would never close. Otherwise it closes after one pause and one probe, or a
      // little later on a busy machine.
      await vi.waitFor(() => expect(logs().join()).toContain('"state":"closed"'), PATIENCE);
      const honest = newClient();
      const answers = [];
      for (let login = 0; login < LOGINS; login++) answers.push(see("/login", honest));
      const statuses = (await Promise.all(answers)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(LIMIT);
      expect(statuses.filter((status) => status === 429)).toHaveLength(LOGINS - LIMIT);
      await vi.waitFor(async () => {
        expect((await see("/strict", newClient())).status).toBe(200);
      }, PATIENCE);
    } finally {
      isOver = true;
      await Promise.all(attack);
    }
    const states = logs().filter((line) => line.includes('"weir":"breaker","state"'));
    // On a busy machine, calls to a single object may time out. So the test checks only the log
    // lines about the whole store.
    const ofStore = states.filter((line) => !line.includes('"scope":"object"'));
    expect(ofStore[0]).toContain('"state":"open"');
    expect(ofStore.at(-1)).toContain('"state":"closed"');
  });
});
