import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { type OwnRedis, startOwnRedis } from "../../../dev/own-redis.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import type { Store } from "../../../src/stores/store.ts";
import { IS_LONG, SEED } from "../../suite/runs.ts";
import { type Network, simulate, TIMEOUT_MS, type World } from "../../suite/slot-simulation.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {}, DurableObject: class {} }));

// The types of Workers are not known here, so the compiler must not follow this import.
const path = "../../../src/stores/create-store.ts";
const { createStore } = (await import(path)) as {
  createStore: (binding: object, options: object) => Store;
};

let redis: OwnRedis;
let rest: UpstashRest;
/** The tasks that take real time, such as the calls that are in Redis now. Virtual time then stands still. */
let realTasks = 0;
let net: Network;
const realFetch = globalThis.fetch;

beforeAll(async () => {
  const started = await startOwnRedis();
  if (!started) throw new Error("this test needs redis-server in PATH");
  redis = started;
  rest = await startUpstashRest({ redis, host: "127.0.0.1" });
  const digest = crypto.subtle.digest.bind(crypto.subtle);
  vi.spyOn(crypto.subtle, "digest").mockImplementation((...args) =>
    inRealTime(() => digest(...args)),
  );
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const { signal, ...rest } = init;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
    const answered = net.call(
      () => inRealTime(() => call(url, rest)),
      () => new TypeError("fetch failed"),
    );
    return Promise.race([answered, aborted]);
  });
});

/** Sends a call, and reads its whole answer. */
async function call(url: string, init: RequestInit): Promise<Response> {
  const response = await realFetch(url, init);
  return new Response(await response.text(), response);
}

async function inRealTime<Result>(action: () => Promise<Result>): Promise<Result> {
  realTasks += 1;
  try {
    return await action();
  } finally {
    realTasks -= 1;
  }
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  });
});

afterAll(async () => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  await rest?.stop();
  await redis?.stop();
});

const STEP_MS = 25;

const world: World = {
  createStore: (each, prefix) => {
    net = each;
    const options = { clock: "edge", prefix, timeoutMs: TIMEOUT_MS };
    return createStore({ kind: "upstash", url: rest.url, token: rest.token }, options);
  },
  faults: {
    full: async () => {
      await redis.run("config", "set", "maxmemory", "1");
      return () => redis.run("config", "set", "maxmemory", "0");
    },
    flushed: async () => {
      await redis.run("flushall");
      return async () => {};
    },
    "scripts flushed": async () => {
      await redis.run("script", "flush");
      return () => redis.run("script", "flush");
    },
    restarted: async () => {
      await redis.kill();
      await redis.start();
      return async () => {};
    },
  },
  forgets: ["flushed", "restarted"],
  async pass(ms) {
    for (let left = ms; left > 0; left -= STEP_MS) {
      await vi.advanceTimersByTimeAsync(Math.min(STEP_MS, left));
      do await new Promise<void>((resolve) => setImmediate(resolve));
      while (realTasks > 0);
    }
  },
};

it("after faults of Redis, no slot is taken that nobody has", async () => {
  const wrong: string[] = [];
  for (let at = 0; at < (IS_LONG ? 500 : 12); at++)
    wrong.push(...(await simulate(world, SEED + at)));
  expect(wrong).toEqual([]);
}, 900_000);
