import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type FaultyRest, type RestFault, startFaultyRest } from "../../../dev/faulty-rest.ts";
import type {} from "../../../dev/provided.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { type RunningWorker, startWorker, startWorkers } from "../support/worker.ts";
import { MARKERS, RULES, requestsOf } from "./clients.ts";
import { leaksIn } from "./leaks.ts";
import { privacyWorker } from "./worker.ts";

const ADDRESSES = [MARKERS["an IPv4 address"], MARKERS["an IPv6 address"]];
/**
 * The number of requests that each client sends for each rule. It is higher than all quotas except
 * the leased quota, so that Weir denies some requests.
 */
const ROUNDS = 8;

type Fault = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Returns all data of a request to the store, which the store could quote in its reply. */
async function quoteRequest({ headers, url }: IncomingMessage, body: Buffer): Promise<string> {
  return `${headers.authorization} ${url} ${body} ${JSON.stringify(headers)}`;
}

function replyQuoting(status: number, type: string, write: (quote: string) => string): Fault {
  return async (request, response) => {
    const quote = await quoteRequest(request, await buffer(request));
    response.writeHead(status, { "content-type": type }).end(write(quote));
  };
}

const error = (message: string) => JSON.stringify({ error: message });
const FAULTS: Record<string, RestFault> = {
  "rejects the token and quotes it": {
    answer: replyQuoting(401, "application/json", (quote) => error(`WRONGPASS invalid: ${quote}`)),
  },
  "quotes the command in an error": {
    answer: replyQuoting(400, "application/json", (quote) => error(`ERR unknown: ${quote}`)),
  },
  "quotes the command in an error with status 200": {
    answer: replyQuoting(200, "application/json", (quote) => error(quote)),
  },
  "replies with 503 in HTML": {
    answer: replyQuoting(503, "text/html", (quote) => `<h1>503</h1><pre>${quote}</pre>`),
  },
  "replies with the request as the result": {
    answer: replyQuoting(200, "application/json", (quote) => JSON.stringify({ result: [quote] })),
  },
  "never replies": { answer: () => {} },
  "is at a closed port": { isClosed: true },
};

const MISCONFIGURED: Record<
  string,
  { vars?: Record<string, string>; config?: Partial<ConfigInput> }
> = {
  "a token that contains a space": {
    vars: { UPSTASH_REDIS_REST_TOKEN: `${MARKERS["the store's token"]} x` },
  },
  "a store URL that contains the token": {
    vars: { UPSTASH_REDIS_REST_URL: `redis://:${MARKERS["the store's token"]}@h` },
  },
  "an origin URL that contains a password": {
    vars: { ORIGIN_URL: `http://u:${MARKERS["a password"]}@origin` },
  },
  "an origin at a closed port": {
    vars: { ORIGIN_URL: "http://127.0.0.1:1" },
    config: { store: "memory" },
  },
  "a native limiter that is not bound": { config: { nativeLimiter: { binding: "NATIVE" } } },
};

/** A secret that is the name of a rule. */
const NAMED_RULES: ConfigInput["rules"] = (["enforce", "shadow"] as const).map((mode, index) => ({
  name: `${MARKERS["a cookie"]}${index}`,
  limit: 3,
  window: "52w",
  mode,
}));

/** The configuration of each test over REST, by its name. */
const CONFIGS: Record<string, Partial<ConfigInput>> = {
  store: { clock: "store" },
  edge: { clock: "edge" },
  named: { rules: NAMED_RULES },
  ...Object.fromEntries(Object.keys(FAULTS).map((name) => [name, { timeoutMs: 100 }])),
  ...Object.fromEntries(
    Object.entries(MISCONFIGURED).map(([name, { config }]) => [
      name,
      { timeoutMs: 100, ...config },
    ]),
  ),
};

interface RestWorker {
  readonly worker: RunningWorker;
  readonly rest: FaultyRest;
  readonly prefix: string;
}

let origin: Origin;
/** The Workers of all tests over REST, by the names of their configurations. They run in one workerd. */
const workers = new Map<string, RestWorker>();

beforeAll(async () => {
  origin = await startOrigin();
  origin.on("/charged", (_, response) => response.writeHead(401, { "x-cost": "2" }).end());
  const cases = await Promise.all(
    Object.entries(CONFIGS).map(async ([name, fields]) => {
      const rest = await startFaultyRest(inject("redis"));
      const prefix = `privacy-${randomUUID()}`;
      const vars = { ...varsFor(rest), ...MISCONFIGURED[name]?.vars };
      return { name, rest, prefix, options: privacyWorker(configOf({ prefix, ...fields }), vars) };
    }),
  );
  const running = await startWorkers(cases.map(({ options }) => options));
  for (const [at, { name, rest, prefix }] of cases.entries()) {
    workers.set(name, { worker: running[at] as RunningWorker, rest, prefix });
  }
});

afterAll(async () => {
  const all = [...workers.values()];
  await Promise.all([all[0]?.worker.stop(), ...all.map(({ rest }) => rest.stop())]);
  await origin.stop();
});

const caseOf = (name: string) => workers.get(name) as RestWorker;
const logOf = (worker: RunningWorker) => worker.logs().join("\n");

function configOf(fields: Partial<ConfigInput>): ConfigInput {
  // The log must have a line for each denial, however fast the requests are.
  const denialLog = 1000;
  return { rules: RULES, jwt: { secret: "JWT_SECRET" }, headers: "both", denialLog, ...fields };
}

function varsFor(rest: FaultyRest): Record<string, string> {
  return {
    ORIGIN_URL: origin.url,
    UPSTASH_REDIS_REST_URL: rest.url,
    UPSTASH_REDIS_REST_TOKEN: MARKERS["the store's token"],
  };
}

/** Sends all requests of all clients several times. Returns the text of all responses. */
async function sendAll(
  worker: RunningWorker,
  rounds: number,
): Promise<{ responses: string; statuses: Set<number> }> {
  const texts: string[] = [];
  const statuses = new Set<number>();
  for (const address of ADDRESSES) {
    for (let round = 0; round < rounds; round++) {
      const requests = requestsOf(address);
      const answers = await Promise.all(
        requests.map(({ path, headers }) => send(worker.url, path, { headers })),
      );
      for (const { status, headers, body } of answers) {
        texts.push(JSON.stringify(headers), `${body}`);
        statuses.add(status);
      }
    }
  }
  return { responses: texts.join("\n"), statuses };
}

/**
 * Reads all keys with a prefix, and their values. DUMP would read a value of any type, but
 * js-redis-server does not have this command. Weir stores only strings, and this function fails if
 * it finds another type.
 */
async function storedInRedis(prefix: string): Promise<{ keys: number; content: Buffer }> {
  const { host, port } = inject("redis");
  const redis = new Redis({ host, port });
  try {
    const keys = await redis.keysBuffer(`${prefix}:*`);
    const types = await Promise.all(keys.map((key) => redis.type(key)));
    expect([...new Set(types)]).toEqual(["string"]);
    const values = await Promise.all(keys.map((key) => redis.getBuffer(key)));
    const content = [...keys, ...values].map((part) => part ?? Buffer.alloc(0));
    return { keys: keys.length, content: Buffer.concat(content) };
  } finally {
    redis.disconnect();
  }
}

/** Returns the content of all files below a folder, by path. */
async function filesIn(folder: string): Promise<Record<string, Buffer>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const read = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    const content = Buffer.concat([Buffer.from(path), await readFile(path)]);
    return [path, content] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

const ADMIN_TOKEN = "admin-token-of-the-privacy-tests-40-letters";

/** Waits for the denials of all rules in the control object. Returns the answers of the API, and the pages, with them. */
async function pagesOfDenials(worker: RunningWorker): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const read = async (path: string) => `${(await send(worker.url, path, { headers })).body}`;
  const api = "/_weir/api/denials?limit=1000";
  type Answer = { denials: { rule: string; client: string; mode: string }[] };
  const denials = async () => (JSON.parse(await read(api)) as Answer).denials;
  const isShadow = ({ mode }: { mode: string }) => mode === "shadow";
  await expect.poll(async () => (await denials()).some(isShadow), PATIENCE).toBe(true);
  const { rule, client } = (await denials()).find((each) => each.rule === "ip") ?? {};
  const paths = [api, "/_weir/denials", `/_weir/clients?client=${client}&rule=${rule}`];
  const pages = await Promise.all(paths.map(async (path) => [path, await read(path)] as const));
  for (const [, text] of pages) expect(text).toContain(client);
  return Object.fromEntries(pages);
}

describe("responses, log and store contain no address, key or secret", () => {
  it.each(["store", "edge"] as const)("in Redis, with the clock %s", async (clock) => {
    const { worker, prefix } = caseOf(clock);
    const { responses, statuses } = await sendAll(worker, ROUNDS);
    // The runtime writes the log to a pipe, so the last lines can arrive after the responses.
    await expect.poll(() => logOf(worker)).toMatch(/"weir":"denied","mode":"shadow"/);
    const logs = logOf(worker);
    const stored = await storedInRedis(prefix);

    // The search proves something only if there is data to search. So the test expects admitted
    // and denied requests, stored keys and log lines.
    expect(statuses).toEqual(new Set([200, 401, 429]));
    expect(stored.keys).toBeGreaterThan(20);
    const where = { "the log": logs, responses, Redis: stored.content };
    expect(leaksIn(where, MARKERS)).toEqual([]);
  });

  it("in Durable Objects", async () => {
    const folder = await mkdtemp(join(tmpdir(), "weir-privacy-"));
    try {
      const config = configOf({ store: "durable-object" });
      const vars = { ORIGIN_URL: origin.url, WEIR_ADMIN_TOKEN: ADMIN_TOKEN };
      const worker = await startWorker(privacyWorker(config, vars), folder);
      const { responses, statuses } = await sendAll(worker, ROUNDS);
      const pages = await pagesOfDenials(worker);
      const logs = logOf(worker);
      await worker.stop();
      const files = await filesIn(folder);

      expect(statuses).toEqual(new Set([200, 401, 429]));
      const rows = Object.values(files).filter((content) => content.includes("weir:header:52w:"));
      expect(rows.length).toBeGreaterThan(0);
      const stored = Object.values(files).filter((content) => content.includes('"policy":"ip"'));
      expect(stored.length).toBeGreaterThan(0);
      expect(leaksIn({ "the log": logs, responses, ...pages, ...files }, MARKERS)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("in the data points of Analytics Engine, which the log shows", async () => {
    const config = configOf({ store: "memory", usage: { binding: "USAGE" }, timeoutMs: 10_000 });
    const options = privacyWorker(config, { ORIGIN_URL: origin.url });
    const main = `
      import { CounterObject, defineConfig, weir } from "./weir.mjs";
      export { CounterObject };
      const USAGE = { writeDataPoint: (point) => console.log("point " + JSON.stringify(point)) };
      const handler = weir(defineConfig({ custom: ${options.custom}, ...${JSON.stringify(config)} }));
      export default {
        fetch: (request, env, ctx) => handler.fetch(request, { ...env, USAGE }, ctx),
      };
    `;
    const worker = await startWorker({ ...options, main });
    await sendAll(worker, ROUNDS);
    await expect.poll(() => logOf(worker)).toContain('"settled"');
    const logs = logOf(worker);
    await worker.stop();
    for (const outcome of ["allowed", "limited", "shadow-limited", "settled"]) {
      expect(logs).toMatch(new RegExp(`point .*"${outcome}"`));
    }
    expect(leaksIn({ "the log": logs }, MARKERS)).toEqual([]);
  });

  it("except a secret that is the name of a rule: the search finds it everywhere", async () => {
    const { worker, prefix } = caseOf("named");
    const { responses } = await sendAll(worker, 1);
    const logs = logOf(worker);
    const stored = await storedInRedis(prefix);
    const leaks = leaksIn({ "the log": logs, responses, Redis: stored.content }, MARKERS);
    expect(leaks.filter(({ form }) => form === "plain")).toEqual(
      ["the log", "responses", "Redis"].map((where) => ({
        what: "a cookie",
        form: "plain",
        where,
      })),
    );
  });
});

describe("after a failure, responses and log contain no address, key or secret", () => {
  it.each(Object.entries(FAULTS))("of a store that %s", async (name, fault) => {
    const { worker, rest } = caseOf(name);
    await rest.inject(fault);
    const { responses, statuses } = await sendAll(worker, 2);
    const logs = logOf(worker);

    expect(statuses).toEqual(new Set([200, 401, 429, 503]));
    expect(logs).toContain('"weir":"undecided"');
    expect(leaksIn({ "the log": logs, responses }, MARKERS)).toEqual([]);
  });

  it.each(Object.keys(MISCONFIGURED))("of a Worker with %s", async (name) => {
    const { worker } = caseOf(name);
    const { responses } = await sendAll(worker, 1);
    const logs = logOf(worker);
    expect(leaksIn({ "the log": logs, responses }, MARKERS)).toEqual([]);
  });
});
