import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../src/config/index.ts";
import { PATIENCE } from "../patience.ts";
import { runs } from "../suite/runs.ts";
import { type Outgoing, send } from "./support/client.ts";
import { REMOTE_STORES, useServers } from "./support/servers.ts";
import { type RunningWorker, startWorkers } from "./support/worker.ts";

const LIMIT = 5;
const LOGINS = 30;
/** The deadline of a decision, in milliseconds. A slow function takes longer. */
const TIMEOUT_MS = 400;
const BUSY_MS = 600;

const CONFIG: ConfigInput = {
  timeoutMs: TIMEOUT_MS,
  rules: [
    {
      name: "busy",
      match: { paths: ["/busy"] },
      key: "custom:slow",
      limit: 1000,
      window: "52w",
    },
    {
      name: "tokens",
      match: { paths: ["/llm"] },
      key: "global",
      limit: 1000,
      window: "52w",
      cost: { from: "custom:estimate", max: 100 },
    },
    {
      name: "login",
      match: { paths: ["/login"] },
      key: "header:x-user",
      limit: LIMIT,
      window: "52w",
      lease: false,
    },
    // A counter in another object, so that Durable Objects decide in two phases.
    {
      name: "all",
      match: { paths: ["/login"] },
      key: "header:x-all",
      limit: 1000,
      window: "52w",
      lease: false,
    },
  ],
};

/** A Worker whose function for keys keeps the isolate busy. */
const MAIN = `
  import { CounterObject, defineConfig, llmReserve, weir } from "./weir.mjs";
  const keys = {
    slow() {
      const end = Date.now() + ${BUSY_MS};
      while (Date.now() < end);
      return "busy";
    },
  };
  export default weir(defineConfig({ ...${JSON.stringify(CONFIG)}, custom: { keys, costs: { estimate: llmReserve() } } }));
  export { CounterObject };
`;

const servers = useServers();

/** A body with more than a hundred thousand names. */
const MANY_NAMES = `{${Array.from({ length: 110_000 }, (_, n) => `"${n.toString(36)}":1`)}}`;

const BUSY: Record<string, () => [path: string, options?: Outgoing]> = {
  "slow functions": () => ["/busy"],
  "large bodies": () => ["/llm", { method: "POST", body: MANY_NAMES }],
};

/** The number of busy requests, their kind, and the keys of the logins. All of them in `npm run test:long`. */
const CASES = (
  [
    [1, "slow functions", "one user"],
    [4, "slow functions", "one user"],
    [8, "slow functions", "one user"],
    [2, "slow functions", "two keys"],
    [4, "large bodies", "one user"],
    [8, "large bodies", "two keys"],
  ] as const
).filter(([busy, kind]) => busy < 8 || kind !== "slow functions" || runs(10) === 10);

let workers: readonly RunningWorker[];

beforeAll(async () => {
  workers = await startWorkers(
    REMOTE_STORES.map((store) => ({
      config: { rules: [] },
      main: MAIN,
      vars: servers.varsFor(store),
    })),
  );
});

afterAll(() => workers[0]?.stop());

describe.each(REMOTE_STORES)("logins while the isolate is busy, with the store %s", (store) => {
  let worker: RunningWorker;

  beforeAll(async () => {
    worker = workers[REMOTE_STORES.indexOf(store)] as RunningWorker;
    // The first call starts the store, and may take longer than the deadline.
    const warmUp = () => send(worker.url, "/login", { headers: { "x-user": "first" } });
    await vi.waitFor(async () => expect((await warmUp()).status).toBe(429), PATIENCE);
  });

  it.each(CASES)(
    "%i requests with %s: exactly the limit of logins passes (%s)",
    async (busy, kind, keys) => {
      const logsBefore = worker.logs().length;
      const user = crypto.randomUUID();
      const headers: Record<string, string> = {
        "x-user": user,
        ...(keys === "two keys" && { "x-all": user }),
      };
      const logins: Promise<{ status: number }>[] = [];
      const others: Promise<{ status: number }>[] = [];
      for (let index = 0; index < LOGINS; index++) {
        if (index % 4 === 0 && others.length < busy) {
          const [path, options] = (BUSY[kind] as (typeof BUSY)[string])();
          others.push(send(worker.url, path, options));
        }
        logins.push(send(worker.url, "/login", { headers }));
      }
      const statuses = (await Promise.all(logins)).map(({ status }) => status);
      await Promise.all(others);
      expect(statuses.filter((status) => status === 200)).toHaveLength(LIMIT);
      expect(statuses.filter((status) => status === 429)).toHaveLength(LOGINS - LIMIT);
      const logs = worker.logs().slice(logsBefore);
      // On a busy machine, a body may arrive too late for its own rule, and its decision may come too late. An
      // undecided login would have passed, so the statuses would show it.
      const expected = kind === "large bodies" ? /"denied|cost-unreadable|"undecided"/ : /"denied/;
      expect(logs.filter((line) => !expected.test(line))).toEqual([]);
    },
  );
});
