import { createHash } from "node:crypto";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, it, vi } from "vitest";
import { connectRedis } from "../../../dev/redis-connection.ts";
import { startTestRedis } from "../../../dev/test-redis.ts";
import { startUpstashRest } from "../../../dev/upstash-rest.ts";
import type { Store } from "../../../src/stores/store.ts";
import { expectBounds, type Network, time, type World } from "../../suite/sliding-simulation.ts";
import { microtasks } from "../../suite/virtual-time.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {}, DurableObject: class {} }));

// The types of Workers are not known here, so the compiler must not follow this import.
const path = "../../../src/stores/create-store.ts";
const { createStore } = (await import(path)) as {
  createStore: (binding: object, options: object) => Store;
};

const server = await startTestRedis();
const rest = await startUpstashRest({ redis: server });
const redis = await connectRedis(server);

/** The isolates, by the tokens in their calls. */
const isolates = new Map<string, { readonly net: Network; readonly clock: string }>();
/** The tasks that take real time, such as the calls that are in Redis now. Virtual time then stands still. */
let realTasks = 0;
let restore = () => {};

async function inRealTime<Result>(action: () => Promise<Result>): Promise<Result> {
  realTasks += 1;
  try {
    return await action();
  } finally {
    realTasks -= 1;
  }
}

const agent = new Agent({ keepAlive: true });

/** Sends a call by a client that has no timers of its own. */
async function post(url: string, body: string): Promise<Response> {
  const headers = { authorization: `Bearer ${rest.token}` };
  const answered = Promise.withResolvers<Response>();
  const sent = request(url, { agent, method: "POST", headers }, async (answer) => {
    answered.resolve(new Response(await text(answer), { status: answer.statusCode ?? 0 }));
  });
  sent.on("error", answered.reject).end(body);
  return answered.promise;
}

beforeAll(() => {
  const digest = crypto.subtle.digest.bind(crypto.subtle);
  vi.spyOn(crypto.subtle, "digest").mockImplementation((...args) =>
    inRealTime(() => digest(...args)),
  );
  vi.stubGlobal("fetch", (url: string, { signal, headers, body }: RequestInit) => {
    const token = new Headers(headers).get("authorization")?.replace("Bearer ", "") as string;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
    const send = async () => {
      await passInRedis();
      return post(url, isolate.clock === "store" ? withTime(String(body)) : String(body));
    };
    const isolate = isolates.get(token) as { net: Network; clock: string };
    const answered = isolate.net.call(
      () => inRealTime(send),
      () => new TypeError("fetch failed"),
    );
    return Promise.race([answered, aborted]);
  });
  restore = time.install();
});

afterAll(async () => {
  restore();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  agent.destroy();
  redis.close();
  await rest.stop();
  await server.stop();
});

/** Lets all keys become older. */
const AGE = `for _, key in ipairs(redis.call('KEYS', '*')) do
  local ttl = redis.call('PTTL', key)
  if ttl >= 0 then redis.call('PEXPIRE', key, ttl - ARGV[1]) end
end`;

let passedUntil = 0;

/** Lets the virtual time pass in Redis since the last call. */
async function passInRedis(): Promise<void> {
  const passedMs = Date.now() - passedUntil;
  passedUntil = Date.now();
  if (passedMs > 0) await redis.run([["EVAL", AGE, "0", String(passedMs)]]);
}

/** The scripts that ask Redis for the time, by their digests. */
const scripts = new Map<string, string>();

/** Gives the virtual time to a script, instead of the time of Redis. */
function withTime(body: string): string {
  const [name = "", script = "", ...rest] = JSON.parse(body) as string[];
  const source = name.toUpperCase() === "EVALSHA" ? scripts.get(script) : script;
  if (source === undefined) return body;
  scripts.set(createHash("sha1").update(source).digest("hex"), source);
  const timed = source.replace("call('TIME')", "{ ARGV[#ARGV], 0 }");
  return JSON.stringify(["EVAL", timed, ...rest, Date.now() / 1000]);
}

const world: World = {
  clocks: ["edge", "store"],
  async begin() {
    passedUntil = 0;
    await redis.run([["FLUSHALL"]]);
  },
  createStore(net, options) {
    const token = `isolate${isolates.size}`;
    isolates.set(token, { net, clock: options.clock });
    return createStore({ kind: "upstash", url: rest.url, token }, options);
  },
  async idle() {
    do {
      await microtasks();
      if (realTasks > 0) await new Promise<void>((resolve) => setImmediate(resolve));
    } while (realTasks > 0);
    await microtasks();
  },
};

it.runIf(server.kind === "redis-server")(
  "no interval of a sliding window's length holds more than the limit, in Redis",
  async () => {
    await expectBounds(world, 15);
  },
  900_000,
);
