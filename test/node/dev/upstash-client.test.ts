import { Redis } from "@upstash/redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import { redises } from "./redises.ts";

const clients = [
  { client: "default options", options: {} },
  {
    client: "one request for each command, plain strings",
    options: {
      enableAutoPipelining: false,
      retry: { retries: 0 },
      enableTelemetry: false,
      readYourWrites: false,
      responseEncoding: false,
    } as const,
  },
];

describe.each(redises)("@upstash/redis over $name", ({ start }) => {
  let redis: Awaited<ReturnType<typeof start>>;
  let rest: UpstashRest;

  beforeAll(async () => {
    redis = await start();
    rest = await startUpstashRest({ redis });
  });
  afterAll(async () => {
    await rest.stop();
    await redis.stop();
  });

  describe.each(clients)("$client", ({ options }) => {
    let client: Redis;

    beforeEach(async () => {
      client = new Redis({ url: rest.url, token: rest.token, ...options });
      await client.flushall();
      await client.scriptFlush();
    });

    it("keeps values unchanged", async () => {
      expect(await client.set("text", "é ✓ OK")).toBe("OK");
      expect(await client.get("text")).toBe("é ✓ OK");
      expect(await client.get("nothing")).toBeNull();
      await client.set("object", { a: [1, "2"] });
      expect(await client.get("object")).toEqual({ a: [1, "2"] });
      await client.hset("hash", { a: 1, b: "two" });
      expect(await client.hgetall("hash")).toEqual({ a: 1, b: "two" });
      expect(await client.mget("text", "nothing")).toEqual(["é ✓ OK", null]);
    });

    it("runs a script with Upstash's flag by its digest, and sends the script if Redis lacks it", async () => {
      const script = client.createScript<[number, number]>(
        `#!lua flags=allow-key-locking
        return { redis.call("INCRBY", KEYS[1], ARGV[1]), redis.call("PEXPIRE", KEYS[1], 5000) }`,
      );
      expect(await script.exec(["counter"], ["2"])).toEqual([2, 1]);
      const calls = rest.calls();
      expect(await script.exec(["counter"], ["3"])).toEqual([5, 1]);
      expect(rest.calls() - calls).toBe(1);
    });

    it("throws the error of Redis", async () => {
      await expect(client.evalsha("0".repeat(40), [], [])).rejects.toThrow("NOSCRIPT");
      await client.set("text", "a");
      await expect(client.incr("text")).rejects.toThrow("not an integer");
    });

    it("runs pipelines and transactions", async () => {
      await expect(client.pipeline().set("n", 1).incr("n").exec()).resolves.toEqual(["OK", 2]);
      await expect(client.multi().incr("n").get("n").exec()).resolves.toEqual([3, 3]);
    });

    it("rejects with a wrong token", async () => {
      const stranger = new Redis({ url: rest.url, token: "wrong", ...options });
      await expect(stranger.get("n")).rejects.toThrow("WRONGPASS");
    });
  });
});
