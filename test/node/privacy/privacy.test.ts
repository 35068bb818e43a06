import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { type FaultyRest, type RestFault, startFaultyRest } from "../../../dev/faulty-rest.ts";
import type {} from "../../../dev/provided-redis.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { MARKERS, RULES, requestsOf } from "./clients.ts";
import { leaksIn } from "./leaks.ts";
import { type Stage, startStage } from "./stage.ts";

const ADDRESSES = [MARKERS["an IPv4 address"], MARKERS["an IPv6 address"]];
/** More often than any quota but the leased one has room. */
const ROUNDS = 8;

let origin: Origin;

beforeAll(async () => {
  origin = await startOrigin();
  origin.on("/charged", (_, response) => response.writeHead(401, { "x-cost": "2" }).end());
});

afterAll(async () => {
  await origin.stop();
});

function configOf(fields: Partial<ConfigInput>): ConfigInput {
  return { rules: RULES, jwt: { secret: "JWT_SECRET" }, headers: "both", ...fields };
}

/** Everything that clients are told, while each of them sends everything so many times. */
async function talk(
  stage: Stage,
  rounds: number,
): Promise<{ told: string; statuses: Set<number> }> {
  const told: string[] = [];
  const statuses = new Set<number>();
  for (const address of ADDRESSES) {
    for (let round = 0; round < rounds; round++) {
      const requests = requestsOf(address);
      const answers = await Promise.all(
        requests.map(({ path, headers }) => send(stage.url, path, { headers })),
      );
      for (const { status, headers, body } of answers) {
        told.push(JSON.stringify(headers), `${body}`);
        statuses.add(status);
      }
    }
  }
  return { told: told.join("\n"), statuses };
}

/**
 * All keys with a prefix, and what they hold. DUMP would give a value of any type in one command, but
 * js-redis-server has none: Weir stores strings alone, and another type fails here.
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

/** The names and the content of all files below a folder. */
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

describe("what Weir keeps and tells shows nobody's address, key or secret", () => {
  it.each(["redis", "edge"] as const)(
    "in Redis, by the clock %s",
    async (clock) => {
      const prefix = `privacy-${randomUUID()}`;
      const rest = await startFaultyRest(inject("redis"));
      const stage = await startStage({
        config: configOf({ clock, prefix }),
        vars: varsFor(rest),
      });
      const { told, statuses } = await talk(stage, ROUNDS);
      const logs = stage.logs();
      await Promise.all([stage.stop(), rest.stop()]);
      const stored = await storedInRedis(prefix);

      // What is looked through is there: decisions of both kinds, what was stored and logged of them.
      expect(statuses).toEqual(new Set([200, 401, 429]));
      expect(stored.keys).toBeGreaterThan(20);
      expect(logs).toContain("shadow-denied");
      const where = { "the log": logs, responses: told, Redis: stored.content };
      expect(leaksIn(where, MARKERS)).toEqual([]);
    },
    60_000,
  );

  it("in Durable Objects", async () => {
    const kept = await mkdtemp(join(tmpdir(), "weir-privacy-"));
    try {
      const stage = await startStage({
        config: configOf({ store: "durable-object" }),
        vars: { ORIGIN_URL: origin.url },
        kept,
      });
      const { told, statuses } = await talk(stage, ROUNDS);
      const logs = stage.logs();
      await stage.stop();
      const files = await filesIn(kept);

      expect(statuses).toEqual(new Set([200, 401, 429]));
      const rows = Object.values(files).filter((content) => content.includes("weir:header:52w:"));
      expect(rows.length).toBeGreaterThan(0);
      expect(leaksIn({ "the log": logs, responses: told, ...files }, MARKERS)).toEqual([]);
    } finally {
      await rm(kept, { recursive: true, force: true });
    }
  }, 60_000);

  it("and is looked for in earnest: a rule that is named like a secret is found everywhere", async () => {
    const rest = await startFaultyRest(inject("redis"));
    const prefix = `privacy-${randomUUID()}`;
    const name = MARKERS["a cookie"];
    const rules: ConfigInput["rules"] = (["enforce", "shadow"] as const).map((mode, index) => ({
      name: `${name}${index}`,
      limit: 3,
      window: "52w",
      mode,
    }));
    const stage = await startStage({ config: configOf({ prefix, rules }), vars: varsFor(rest) });
    const { told } = await talk(stage, 1);
    const logs = stage.logs();
    await Promise.all([stage.stop(), rest.stop()]);
    const stored = await storedInRedis(prefix);
    const leaks = leaksIn({ "the log": logs, responses: told, Redis: stored.content }, MARKERS);
    expect(leaks.filter(({ form }) => form === "plain")).toEqual(
      ["the log", "responses", "Redis"].map((where) => ({
        what: "a cookie",
        form: "plain",
        where,
      })),
    );
  }, 60_000);
});

function varsFor(rest: FaultyRest): Record<string, string> {
  return {
    ORIGIN_URL: origin.url,
    UPSTASH_REDIS_REST_URL: rest.url,
    UPSTASH_REDIS_REST_TOKEN: MARKERS["the store's token"],
  };
}

type Fault = (request: IncomingMessage, response: ServerResponse) => unknown;

/** What a store, or something in its place, says of all that it was sent. */
async function quoted({ headers, url }: IncomingMessage, body: Buffer): Promise<string> {
  return `${headers.authorization} ${url} ${body} ${JSON.stringify(headers)}`;
}

function answering(status: number, type: string, write: (said: string) => string): Fault {
  return async (request, response) => {
    const said = await quoted(request, await buffer(request));
    response.writeHead(status, { "content-type": type }).end(write(said));
  };
}

const error = (said: string) => JSON.stringify({ error: said });
const FAULTS: Record<string, RestFault> = {
  "refuses the token and quotes it": {
    answer: answering(401, "application/json", (said) => error(`WRONGPASS invalid: ${said}`)),
  },
  "quotes the command in an error": {
    answer: answering(400, "application/json", (said) => error(`ERR unknown: ${said}`)),
  },
  "quotes it in an error within a success": {
    answer: answering(200, "application/json", (said) => error(said)),
  },
  "answers 503 in HTML": {
    answer: answering(503, "text/html", (said) => `<h1>503</h1><pre>${said}</pre>`),
  },
  "answers with what it was sent": {
    answer: answering(200, "application/json", (said) => JSON.stringify({ result: [said] })),
  },
  "never answers": { answer: () => {} },
  "is not there": { isClosed: true },
};

describe("what goes wrong is told without anybody's address, key or secret", () => {
  it.each(Object.entries(FAULTS))(
    "by a store that %s",
    async (_, fault) => {
      const rest = await startFaultyRest(inject("redis"));
      await rest.inject(fault);
      const prefix = `privacy-${randomUUID()}`;
      const config = configOf({ prefix, timeoutMs: 100 });
      const stage = await startStage({ config, vars: varsFor(rest) });
      const { told, statuses } = await talk(stage, 2);
      const logs = stage.logs();
      await Promise.all([stage.stop(), rest.stop()]);

      expect(statuses).toEqual(new Set([200, 401, 429, 503]));
      expect(logs).toContain('"weir":"undecided"');
      expect(leaksIn({ "the log": logs, responses: told }, MARKERS)).toEqual([]);
    },
    60_000,
  );

  it.each<[string, Record<string, string>, Partial<ConfigInput>]>([
    [
      "a token with a line break in it",
      { UPSTASH_REDIS_REST_TOKEN: `${MARKERS["the store's token"]} x` },
      {},
    ],
    [
      "a URL with the token in it",
      { UPSTASH_REDIS_REST_URL: `redis://:${MARKERS["the store's token"]}@h` },
      {},
    ],
    [
      "an origin that has a password",
      { ORIGIN_URL: `http://u:${MARKERS["a password"]}@origin` },
      {},
    ],
    ["an origin that is not there", { ORIGIN_URL: "http://127.0.0.1:1" }, { store: "memory" }],
    ["a native limiter that is not bound", {}, { nativeLimiter: { binding: "NATIVE" } }],
  ])(
    "by a Worker that has %s",
    async (_, vars, fields) => {
      const rest = await startFaultyRest(inject("redis"));
      const config = configOf({ timeoutMs: 100, prefix: `privacy-${randomUUID()}`, ...fields });
      const stage = await startStage({ config, vars: { ...varsFor(rest), ...vars } });
      const { told } = await talk(stage, 1);
      const logs = stage.logs();
      await Promise.all([stage.stop(), rest.stop()]);
      expect(leaksIn({ "the log": logs, responses: told }, MARKERS)).toEqual([]);
    },
    60_000,
  );
});
