import { createHash } from "node:crypto";
import { connect } from "node:net";
import getPort from "get-port";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startJsRedis } from "../../../dev/js-redis.ts";
import { startUpstashRest, type UpstashRest } from "../../../dev/upstash-rest.ts";
import { PATIENCE } from "../../patience.ts";
import { redises } from "./redises.ts";

const FLAG = "#!lua flags=allow-key-locking";

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

type Body = { result?: unknown; error?: string };

/** Sends a request in the same way as an Upstash client, and reads the answer. */
async function call(
  rest: UpstashRest,
  path: string,
  body?: unknown,
  { headers = {}, method = "POST" }: { headers?: Record<string, string>; method?: string } = {},
) {
  const response = await fetch(rest.url + path, {
    method,
    headers: { authorization: `Bearer ${rest.token}`, ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

describe.each(redises)("the REST API over $name", ({ start }) => {
  let redis: Awaited<ReturnType<typeof start>>;
  let rest: UpstashRest;

  beforeAll(async () => {
    redis = await start();
    rest = await startUpstashRest({ redis });
  });
  beforeEach(async () => {
    await call(rest, "/pipeline", [["FLUSHALL"], ["SCRIPT", "FLUSH"]]);
  });
  afterAll(async () => {
    await rest.stop();
    await redis.stop();
  });

  describe("commands", () => {
    it("answers with the result of a command", async () => {
      expect(await call(rest, "/", ["SET", "key", "value"])).toEqual({
        status: 200,
        body: { result: "OK" },
      });
      expect((await call(rest, "/", ["GET", "key"])).body).toEqual({ result: "value" });
    });

    it("accepts numbers and booleans as arguments", async () => {
      await call(rest, "/", ["RPUSH", "list", 1, -2.5, true]);
      expect((await call(rest, "/", ["LRANGE", "list", 0, -1])).body).toEqual({
        result: ["1", "-2.5", "true"],
      });
    });

    it("answers 400 with Redis's message if a command fails", async () => {
      await call(rest, "/", ["SET", "key", "value"]);
      expect(await call(rest, "/", ["INCR", "key"])).toEqual({
        status: 400,
        body: { error: "ERR value is not an integer or out of range" },
      });
    });

    it("answers with the reply of Redis in its original form", async () => {
      await call(rest, "/", ["hset", "hash", "a", 1]);
      expect((await call(rest, "/", ["hgetall", "hash"])).body).toEqual({ result: ["a", "1"] });
      expect((await call(rest, "/", ["hget", "hash", "b"])).body).toEqual({ result: null });
    });

    it("reads a command from the path, then the body, then the query", async () => {
      await call(rest, "/set/a%2Fb", "a value", {});
      expect((await call(rest, "/get/a%2Fb", undefined, { method: "GET" })).body).toEqual({
        result: "a value",
      });
      await call(rest, "/set/short?EX=100", "lived");
      expect((await call(rest, "/ttl/short", undefined, { method: "GET" })).body).toEqual({
        result: 100,
      });
    });

    it.each([[["MULTI"]], [["subscribe", "channel"]], [["BLPOP", "list", 0]]])(
      "rejects %j, which needs its own connection",
      async (command) => {
        const { status, body } = await call(rest, "/", command);
        expect(status).toBe(400);
        expect(body.error).toMatch(/^ERR \w+ is not available over REST$/);
      },
    );
  });

  describe("base64", () => {
    const headers = { "upstash-encoding": "base64" };
    const base64 = (text: string) => Buffer.from(text).toString("base64");

    it("encodes strings but not integers, null or OK", async () => {
      const commands = [
        ["SET", "key", "é"],
        ["GET", "key"],
        ["GET", "none"],
        ["INCR", "n"],
      ];
      expect((await call(rest, "/pipeline", commands, { headers })).body).toEqual([
        { result: "OK" },
        { result: base64("é") },
        { result: null },
        { result: 1 },
      ]);
    });

    it("encodes every string of nested lists, including OK", async () => {
      const script = "return {'a', 1, {'OK', false, {'b'}}}";
      expect((await call(rest, "/", ["EVAL", script, 0], { headers })).body).toEqual({
        result: [base64("a"), 1, [base64("OK"), null, [base64("b")]]],
      });
    });

    it("keeps bytes that are not text", async () => {
      const script = "return string.char(0, 255, 128)";
      expect((await call(rest, "/", ["EVAL", script, 0], { headers })).body).toEqual({
        result: Buffer.from([0, 255, 128]).toString("base64"),
      });
    });

    it("does not encode errors", async () => {
      const { body } = await call(rest, "/", ["NOPE"], { headers });
      expect(body.error).toMatch(/^ERR unknown command/);
    });
  });

  describe("pipelines", () => {
    it("answers with the result or error of each command, and continues after an error", async () => {
      const commands = [
        ["SET", "key", "value"],
        ["INCR", "key"],
        ["GET", "key"],
      ];
      expect(await call(rest, "/pipeline", commands)).toEqual({
        status: 200,
        body: [
          { result: "OK" },
          { error: "ERR value is not an integer or out of range" },
          { result: "value" },
        ],
      });
    });
  });

  describe("transactions", () => {
    it("answers with the result or error of each command", async () => {
      const commands = [
        ["SET", "key", "value"],
        ["INCR", "key"],
        ["GET", "key"],
      ];
      expect(await call(rest, "/multi-exec", commands)).toEqual({
        status: 200,
        body: [
          { result: "OK" },
          { error: expect.stringContaining("ERR value is not an integer") },
          { result: "value" },
        ],
      });
    });

    it("runs nothing if Redis rejects one of the commands", async () => {
      const { status, body } = await call(rest, "/multi-exec", [["SET", "key", "value"], ["GET"]]);
      expect(status).toBe(400);
      expect(body.error).toMatch(/^EXECABORT/);
      expect((await call(rest, "/", ["GET", "key"])).body).toEqual({ result: null });
    });

    it("runs them atomically, without other commands in between", async () => {
      const increments = Array.from({ length: 20 }, () => ["INCR", "n"]);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => call(rest, "/multi-exec", increments)),
      );
      for (const { body } of answers) {
        const results = (body as unknown as { result: number }[]).map(({ result }) => result);
        const first = results[0] as number;
        expect(results).toEqual(increments.map((_, index) => first + index));
      }
    });
  });

  describe("scripts with Upstash's flag", () => {
    const script = `${FLAG}\nreturn ARGV[1]`;
    const noScript = { error: expect.stringMatching(/^NOSCRIPT No matching script/) };

    it("runs them, and finds them by the digest of the text sent", async () => {
      expect((await call(rest, "/", ["EVAL", script, 0, "a"])).body).toEqual({ result: "a" });
      const evalsha = ["EVALSHA", sha1(script).toUpperCase(), 0, "b"];
      expect((await call(rest, "/", evalsha)).body).toEqual({ result: "b" });
    });

    it.each([
      ["a carriage return", `${FLAG}\r\nreturn ARGV[1]`, "a"],
      ["nothing", FLAG, null],
    ])("runs them with %s after the flag", async (_, source, result) => {
      expect((await call(rest, "/", ["EVAL", source, 0, "a"])).body).toEqual({ result });
    });

    it("answers NOSCRIPT before the script is sent, and after SCRIPT FLUSH", async () => {
      const evalsha = ["EVALSHA", sha1(script), 0, "a"];
      expect(await call(rest, "/", evalsha)).toEqual({ status: 400, body: noScript });
      await call(rest, "/", ["EVAL", script, 0, "a"]);
      await call(rest, "/", ["SCRIPT", "FLUSH"]);
      expect(await call(rest, "/", evalsha)).toEqual({ status: 400, body: noScript });
    });

    it.each(["/pipeline", "/multi-exec"])("runs them in %s", async (path) => {
      const commands = [
        ["EVAL", script, 0, "a"],
        ["EVALSHA", sha1(script), 0, "b"],
        ["SCRIPT", "LOAD", script],
      ];
      expect((await call(rest, path, commands)).body).toEqual([
        { result: "a" },
        { result: "b" },
        { result: sha1(script) },
      ]);
    });

    it("loads them under the digest of the text sent, and reports that they exist", async () => {
      const load = ["script", "load", script];
      expect((await call(rest, "/", load)).body).toEqual({ result: sha1(script) });
      const exists = ["SCRIPT", "EXISTS", sha1(script), sha1("return 1")];
      expect((await call(rest, "/", exists)).body).toEqual({ result: [1, 0] });
    });

    it("keeps the line numbers of the source in errors", async () => {
      const { body } = await call(rest, "/", ["EVAL", `${FLAG}\n\nerror('here')`, 0]);
      expect(body.error).toContain("user_script:3: here");
    });

    it("removes only the line with the flag, and sends any other first line to Redis", async () => {
      const { status } = await call(rest, "/", ["EVAL", `${FLAG},no-such-flag\nreturn 1`, 0]);
      expect(status).toBe(400);
    });
  });

  describe("errors", () => {
    const paths = ["/", "/pipeline", "/multi-exec", "/get/key", "/no/such"];

    it.each(paths)("answers 401 on %s without the token, or with another token", async (path) => {
      const refused = { status: 401, body: { error: expect.stringMatching(/^WRONGPASS/) } };
      for (const authorization of ["", "Bearer", "Bearer wrong", `Basic ${rest.token}`]) {
        const headers = { authorization };
        expect(await call(rest, path, ["GET", "key"], { headers })).toEqual(refused);
      }
    });

    it.each([
      ["/", "", "not JSON"],
      ["/", '["GET"', "not JSON"],
      ["/", "{}", "must be a JSON array"],
      ["/", "[]", "must be a JSON array"],
      ["/", '"PING"', "must be a JSON array"],
      ["/", '["GET", null]', "element 2"],
      ["/", '["GET", {"a": 1}]', "element 2"],
      ["/pipeline", "[]", "array of commands"],
      ["/pipeline", '["GET", "key"]', "command 1 must be a JSON array"],
      ["/multi-exec", '[["GET", "key"], []]', "command 2 must be a JSON array"],
      ["/get/%zz", "", "percent-encoding"],
    ])("answers 400 on %s to %s: %s", async (path, body, message) => {
      expect(await call(rest, path, body)).toEqual({
        status: 400,
        body: { error: expect.stringContaining(message) },
      });
    });

    it("answers 413 to a body of more than 1 MiB", async () => {
      const padded = (bytes: number) => JSON.stringify(["PING"]).padEnd(bytes);
      expect((await call(rest, "/", padded(1024 * 1024))).status).toBe(200);
      expect(await call(rest, "/", padded(1024 * 1024 + 1))).toEqual({
        status: 413,
        body: { error: "ERR the body is larger than 1 MiB" },
      });
    });

    it("answers 405 to other methods", async () => {
      expect((await call(rest, "/", undefined, { method: "DELETE" })).status).toBe(405);
    });
  });

  it("counts the requests that it received", async () => {
    const before = rest.calls();
    await call(rest, "/pipeline", [["PING"], ["PING"]]);
    await call(rest, "/", ["PING"], { headers: { authorization: "" } });
    expect(rest.calls() - before).toBe(2);
  });
});

describe("the REST API", () => {
  it("uses the given token and port", async () => {
    const redis = await startJsRedis();
    const port = await getPort();
    const rest = await startUpstashRest({ redis, token: "a token", port });
    expect(rest).toMatchObject({ token: "a token", url: `http://127.0.0.1:${port}` });
    expect((await call(rest, "/", ["PING"])).body).toEqual({ result: "PONG" });
    await expect(startUpstashRest({ redis, port })).rejects.toThrow("EADDRINUSE");
    await rest.stop();
    await redis.stop();
  });

  it("delays each answer by delayMs", async () => {
    const redis = await startJsRedis();
    const rest = await startUpstashRest({ redis, delayMs: 50 });
    const start = performance.now();
    await call(rest, "/", ["PING"]);
    expect(performance.now() - start).toBeGreaterThanOrEqual(49);
    await rest.stop();
    await redis.stop();
  });

  it("does not start without Redis", async () => {
    const redis = { host: "127.0.0.1", port: await getPort({ host: "127.0.0.1" }) };
    await expect(startUpstashRest({ redis })).rejects.toThrow(
      `No Redis at 127.0.0.1:${redis.port}`,
    );
  });

  it("answers 503 while Redis cannot be reached, and works again afterwards", async () => {
    const first = await startJsRedis();
    const rest = await startUpstashRest({ redis: first });
    await first.stop();

    const gone = { status: 503, body: { error: "ERR Redis did not answer" } };
    for (const path of ["/pipeline", "/multi-exec"]) {
      expect(await call(rest, path, [["PING"]])).toEqual(gone);
    }
    expect(await call(rest, "/", ["PING"])).toEqual(gone);

    const second = await startJsRedis({ port: first.port });
    const statusOfPing = async () => (await call(rest, "/", ["PING"])).status;
    await vi.waitFor(async () => expect(await statusOfPing()).toBe(200), PATIENCE);
    await rest.stop();
    await second.stop();
  });

  it("answers 503 to commands that Redis had not answered when it stopped", async () => {
    const redis = await startJsRedis();
    const rest = await startUpstashRest({ redis });
    // This command waits for an entry that is never added.
    const pending = call(rest, "/", ["XREAD", "BLOCK", 0, "STREAMS", "stream", "$"]);
    await vi.waitUntil(() => rest.calls() === 1, PATIENCE);
    await redis.stop();
    expect((await pending).status).toBe(503);
    await rest.stop();
  });

  it("closes open connections when it stops", async () => {
    const redis = await startJsRedis();
    const rest = await startUpstashRest({ redis });
    const socket = connect(Number(new URL(rest.url).port), "127.0.0.1");
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await new Promise((resolve) => socket.once("connect", resolve));
    await rest.stop();
    await closed;
    await redis.stop();
  });
});
