import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type LocalRedis, startRedis } from "../../../dev/redis.ts";
import { startTestRedis } from "../../../dev/test-redis.ts";
import { PATIENCE } from "../../patience.ts";
import { hasRedisServer, redises } from "./redises.ts";
import { refuses } from "./refuses.ts";

const started: { stop(): Promise<void> }[] = [];

function own<T extends { stop(): Promise<void> }>(redis: T): T {
  started.push(redis);
  return redis;
}

afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(started.splice(0).map((redis) => redis.stop()));
});

async function run(
  redis: Pick<LocalRedis, "host" | "port">,
  name: string,
  ...args: string[]
): Promise<unknown> {
  const client = new Redis({ host: redis.host, port: redis.port });
  try {
    return await client.call(name, ...args);
  } finally {
    client.disconnect();
  }
}

describe.each(redises)("$name", ({ start }) => {
  it("answers as soon as it has started, and is empty", async () => {
    const redis = own(await start());
    expect(await run(redis, "PING")).toBe("PONG");
    expect(await run(redis, "DBSIZE")).toBe(0);
    expect(redis.version).toMatch(/^\d+\.\d+\.\d+/);
  });

  it("runs at the same time as another Redis", async () => {
    const [first, second] = await Promise.all([start().then(own), start().then(own)]);
    await run(first, "SET", "key", "first");
    expect(await run(second, "GET", "key")).toBeNull();
  });

  it("does not listen any more after it has stopped", async () => {
    const redis = await start();
    expect(await refuses(redis)).toBe(false);
    await redis.stop();
    expect(await refuses(redis)).toBe(true);
  });
});

describe.runIf(hasRedisServer)("startRedis, with redis-server on PATH", () => {
  it("starts it, and reports its kind", async () => {
    const redis = own(await startRedis());
    expect(redis.kind).toBe("redis-server");
    expect(await run(redis, "INFO", "server")).toContain(`process_id:${redis.pid}`);
  });

  it("listens on loopback only, and writes nothing to disk", async () => {
    const redis = own(await startRedis());
    expect(await run(redis, "CONFIG", "GET", "bind")).toEqual(["bind", "127.0.0.1"]);
    expect(await run(redis, "CONFIG", "GET", "save")).toEqual(["save", ""]);
    expect(await run(redis, "CONFIG", "GET", "appendonly")).toEqual(["appendonly", "no"]);
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "ends with its parent after %s, and does not keep the signal from the parent",
    async (signal) => {
      const parent = await startParent("setInterval(() => {}, 1000);");
      parent.process.kill(signal);
      expect(await once(parent.process, "exit")).toEqual([null, signal]);
      await vi.waitUntil(() => refuses(parent.redis), PATIENCE);
    },
  );

  it.each([
    ["exits", "process.exit(3);"],
    ["throws", "throw new Error();"],
  ])("ends with its parent that %s", async (_, ending) => {
    const parent = await startParent(ending);
    await once(parent.process, "exit");
    await vi.waitUntil(() => refuses(parent.redis), PATIENCE);
  });
});

describe("startRedis, without redis-server on PATH", () => {
  beforeEach(() => {
    vi.stubEnv("PATH", "");
  });

  it("starts js-redis-server, and reports its kind", async () => {
    expect(own(await startRedis())).toMatchObject({ kind: "js-redis-server", version: "0.3.0" });
  });

  it("explains what to install if the server is required", async () => {
    await expect(startRedis({ requireServer: true })).rejects.toThrow(
      "apt-get install redis-server",
    );
  });
});

describe("startTestRedis, without redis-server on PATH", () => {
  beforeEach(() => {
    vi.stubEnv("PATH", "");
    vi.stubEnv("WEIR_TEST_REDIS", undefined);
  });

  it("starts js-redis-server, even if CI is set", async () => {
    vi.stubEnv("CI", "1");
    expect(own(await startTestRedis()).kind).toBe("js-redis-server");
  });

  it("explains what to install if WEIR_TEST_REDIS requires the server", async () => {
    vi.stubEnv("WEIR_TEST_REDIS", "redis-server");
    await expect(startTestRedis()).rejects.toThrow("apt-get install redis-server");
  });

  it("lists the allowed values if WEIR_TEST_REDIS has another value", async () => {
    vi.stubEnv("WEIR_TEST_REDIS", "valkey");
    await expect(startTestRedis()).rejects.toThrow("Allowed: redis-server, js-redis-server");
  });
});

it("startTestRedis starts js-redis-server instead of redis-server if WEIR_TEST_REDIS requires it", async () => {
  vi.stubEnv("WEIR_TEST_REDIS", "js-redis-server");
  expect(own(await startTestRedis()).kind).toBe("js-redis-server");
});

describe.skipIf(process.platform === "win32")("startRedis, with a redis-server that fails", () => {
  it("has the output of redis-server in the error", async () => {
    await using path = await fakeRedisServer("echo 'Fatal: wrong moon phase'; exit 1");
    vi.stubEnv("PATH", path.name);
    await expect(startRedis()).rejects.toThrow("wrong moon phase");
  });

  it.runIf(hasRedisServer)("tries another port if the first one was taken", async () => {
    await using path = await fakeRedisServer(
      `if mkdir "$(dirname "$0")/tried"; then echo 'bind: Address already in use'; exit 1; fi`,
      `PATH="\${PATH#*${delimiter}}" exec redis-server "$@"`,
    );
    vi.stubEnv("PATH", `${path.name}${delimiter}${process.env.PATH}`);
    expect(await run(own(await startRedis()), "PING")).toBe("PONG");
  });
});

/** Starts a Node process that starts a Redis, prints its address, and then runs the code `then`. */
async function startParent(then: string) {
  const module = JSON.stringify(new URL("../../../dev/redis.ts", import.meta.url).href);
  const code = `
    const { startRedis } = await import(${module});
    const { host, port } = await startRedis({ requireServer: true });
    process.stdout.write(JSON.stringify({ host, port }), () => { ${then} });
  `;
  const parent = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = await once(parent.stdout.setEncoding("utf8"), "data");
  return { process: parent, redis: JSON.parse(line) as LocalRedis };
}

/** Creates a folder with a shell script named redis-server, for use in PATH. */
async function fakeRedisServer(...lines: string[]) {
  const name = await mkdtemp(join(tmpdir(), "weir-path-"));
  const program = join(name, "redis-server");
  await writeFile(program, ["#!/bin/sh", ...lines, ""].join("\n"));
  await chmod(program, 0o755);
  return { name, [Symbol.asyncDispose]: () => rm(name, { recursive: true }) };
}
