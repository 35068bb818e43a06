import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  crc32,
  deflateRawSync,
  gunzipSync,
  gzipSync,
} from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { useServers } from "../support/servers.ts";
import * as websocket from "../support/websocket.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const LIMIT = 1_000_000;
const RESERVE = 50_000;
const TEXT = "A line of text.\n".repeat(1000);

const rule = (name: string, fields: object) => ({
  name,
  match: { paths: [`/${name}`] },
  key: "header:x-client",
  limit: LIMIT,
  window: "52w",
  ...fields,
});
const byLength = { cost: { reserve: RESERVE, settle: "custom:length", default: 7 } };
const RULES = [
  rule("bytes", { cost: { reserve: RESERVE, settle: "custom:bytes", default: 7, max: 1e6 } }),
  rule("pieces", { cost: { reserve: RESERVE, settle: "custom:pieces", default: 7 } }),
  rule("length", byLength),
  rule("unread", { cost: { reserve: RESERVE, settle: "custom:field" } }),
  rule("changed", { cost: { reserve: RESERVE, settle: "custom:late" } }),
  {
    ...rule("changing", { cost: { reserve: 1, settle: "custom:changes" } }),
    match: { paths: ["/changed"] },
  },
  rule("marked", { ...byLength, mode: "mark" }),
] as unknown as ConfigInput["rules"];

const main = (config: object) => `
  import { CounterObject, defineConfig, weir, WeirService } from "./weir.mjs";
  const CONSTANT = new TextEncoder().encode("5".repeat(10_000));
  const settle = {
    length: async (response) => (await response.text()).length,
    bytes: async (response) => (await response.bytes()).length,
    async pieces(response) {
      let bytes = 0;
      for await (const chunk of response.body) bytes += chunk.length;
      return bytes / 1024 / 1024;
    },
    async changes(response) {
      for await (const chunk of response.body) {
        chunk.fill(0);
        chunk.buffer.transfer();
      }
      return 1;
    },
    async late(response) {
      await scheduler.wait(100);
      return Number((await response.text()).slice(0, 3));
    },
    field: (response) => Number(response.headers.get("content-length") ?? 0),
  };
  const config = defineConfig({ ...${JSON.stringify(config)}, custom: { settle } });
  const limiter = weir(config);
  export class Limits extends WeirService { config = config; }
  export default {
    async fetch(request, env, ctx) {
      const mode = request.headers.get("x-mode");
      if (request.headers.has("x-constant") && mode === "next") {
        let rest = 10;
        const body = new ReadableStream({ pull(c) { if (rest-- > 0) c.enqueue(CONSTANT); else c.close(); } });
        return limiter.fetch(request, env, ctx, () => new Response(body));
      }
      if (mode === "left") {
        const [{ remaining }] = await ctx.exports.Limits.getValue(new URL(request.url).pathname.slice(1), { key: request.headers.get("x-client") });
        return new Response(String(remaining));
      }
      if (mode !== "next") return limiter.fetch(request, env, ctx);
      return limiter.fetch(request, env, ctx, () => {
        const chunks = ["12", "345"];
        const body = request.headers.has("x-stream")
          ? new ReadableStream({ pull(c) { const chunk = chunks.shift(); if (chunk) c.enqueue(new TextEncoder().encode(chunk)); else c.close(); } })
          : chunks.join("");
        return new Response(body, { headers: { "Content-Length": request.headers.get("x-length") } });
      });
    },
  };
  export { CounterObject };
`;

const servers = useServers();
let worker: RunningWorker;

function start(): Promise<RunningWorker> {
  const config = { rules: RULES, prefix: `transport-${randomUUID()}`, timeoutMs: 5000 };
  return startWorker({
    config: config as ConfigInput,
    main: main(config),
    vars: servers.varsFor("durable-object"),
  });
}

beforeAll(async () => {
  worker = await start();
  servers.origin.onUpgrade(websocket.echoFrames);
});

afterAll(() => worker.stop());

const newClient = () => ({ "x-client": randomUUID() });

async function expectUsed(
  path: string,
  headers: object,
  used: number,
  { url } = worker,
): Promise<void> {
  await vi.waitFor(async () => {
    const answer = await send(url, path, { headers: { ...headers, "x-mode": "left" } });
    expect(LIMIT - Number(`${answer.body}`)).toBe(used);
  }, PATIENCE);
}

const DECODERS = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
} as Record<string, (body: Buffer) => Buffer>;

const gzip = (body: Buffer) => ({ body, encoding: "gzip", isChunked: false });

describe("a response that a settle function reads", () => {
  it.each(["gzip", "identity"])("in gzip reaches a client that accepts %s", async (accepted) => {
    const body = gzipSync(TEXT);
    const fields = { "content-encoding": "gzip", "content-length": `${body.length}` };
    servers.origin.on("/length", (_, response) => response.writeHead(200, fields).end(body));
    const headers = { ...newClient(), "Accept-Encoding": accepted };
    const answer = await send(worker.url, "/length", { headers });
    expect(answer.headers).toMatchObject(fields);
    expect(answer.body.equals(body)).toBe(true);
    await expectUsed("/length", headers, TEXT.length);
  });

  it("in br is decoded after the isolate has received the first one", async () => {
    const other = await start();
    const body = brotliCompressSync(TEXT);
    const fields = { "content-encoding": "br", "content-length": `${body.length}` };
    servers.origin.on("/length", (_, response) => response.writeHead(200, fields).end(body));
    for (const used of [RESERVE, TEXT.length]) {
      const headers = { ...newClient(), "Accept-Encoding": "gzip, br" };
      const answer = await send(other.url, "/length", { headers });
      expect(servers.origin.received.at(-1)?.headers["accept-encoding"]).toBe("gzip");
      const decode = DECODERS[answer.headers["content-encoding"] ?? ""] ?? ((it: Buffer) => it);
      expect(`${decode(answer.body)}`).toBe(TEXT);
      // A wrong length would break the connection.
      const length = answer.headers["content-length"];
      if (length !== undefined) expect(answer.body).toHaveLength(Number(length));
      await expectUsed("/length", headers, used, other);
    }
    await other.stop();
  });

  const zipped = gzipSync(TEXT);
  const withLength = (body: Buffer) => ({ "content-length": `${body.length}` });
  it.each([
    ["an empty body", 200, gzip(Buffer.alloc(0)), 0],
    ["an empty body of an error", 500, gzip(Buffer.alloc(0)), 0],
    ["an empty body in chunks", 200, { ...gzip(Buffer.alloc(0)), isChunked: true }, RESERVE],
    ["an empty body in br", 200, { ...gzip(Buffer.alloc(0)), encoding: "br" }, 0],
    ["a part of the body", 206, gzip(zipped.subarray(10, 30)), RESERVE],
    ["bytes after the end", 200, gzip(Buffer.concat([zipped, Buffer.alloc(4)])), RESERVE],
    ["a text that is not compressed", 200, gzip(Buffer.from(TEXT)), RESERVE],
  ])("reaches the client unchanged with %s", async (_, status, sent, used) => {
    const { body, encoding, isChunked } = sent;
    servers.origin.on("/length", (_, response) =>
      response
        .writeHead(status, {
          "content-encoding": encoding,
          ...(!isChunked && withLength(body)),
          ...(status === 206 && { "content-range": "bytes 10-29/100" }),
        })
        .end(body),
    );
    const headers = { ...newClient(), "Accept-Encoding": "gzip, br" };
    const answer = await send(worker.url, "/length", { headers });
    expect(answer).toMatchObject({ status, headers: { "content-encoding": encoding } });
    expect(answer.body.equals(body)).toBe(true);
    await expectUsed("/length", headers, used);
  });

  describe("with 200 KiB in gzip", () => {
    const long = gzipSync(randomBytes(200 * 1024));
    const corrupted = Buffer.from(long);
    corrupted.fill(0xff, 100 * 1024, 101 * 1024);
    const badSum = Buffer.from(long);
    badSum.writeUInt32LE(1, long.length - 8);
    it.each([
      ["that are complete", long, 200 * 1024],
      ["that are truncated after 100 KiB", long.subarray(0, 100 * 1024), RESERVE],
      ["that are corrupted after 100 KiB", corrupted, RESERVE],
      ["that have a wrong checksum", badSum, RESERVE],
    ])("%s reaches the client unchanged", async (_, body, used) => {
      for (const isChunked of [false, true]) {
        servers.origin.on("/bytes", (_, response) => {
          response.writeHead(200, {
            "content-encoding": "gzip",
            ...(!isChunked && withLength(body)),
          });
          response.end(body);
        });
        const headers = { ...newClient(), "Accept-Encoding": "gzip, br" };
        const answer = await send(worker.url, "/bytes", { headers });
        expect(answer).toMatchObject({ status: 200, headers: { "content-encoding": "gzip" } });
        expect(answer.headers["content-length"]).toBe(isChunked ? undefined : `${body.length}`);
        expect(answer.body.equals(body)).toBe(true);
        await expectUsed("/bytes", headers, used);
      }
    });
  });

  it("is decoded for the function although its bytes are many times as many", async () => {
    const body = gzipSync(Buffer.alloc(16 * 1024 * 1024));
    servers.origin.on("/pieces", (_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(body),
    );
    const headers = { ...newClient(), "Accept-Encoding": "gzip" };
    const answer = await send(worker.url, "/pieces", { headers });
    expect(answer.body.equals(body)).toBe(true);
    await expectUsed("/pieces", headers, 16);
  });

  it("is decoded in time if the origin compresses thousands of events one by one", async () => {
    const events = Array.from({ length: 3000 }, (_, number) => Buffer.from(`data: ${number}\n\n`));
    const [text, trailer] = [Buffer.concat(events), Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0])];
    trailer.writeUInt32LE(crc32(text), 2);
    trailer.writeUInt32LE(text.length, 6);
    const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    const finishFlush = constants.Z_SYNC_FLUSH;
    const pieces = events.map((event) => deflateRawSync(event, { finishFlush }));
    servers.origin.on("/bytes", (_, response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      for (const piece of [header, ...pieces]) response.write(piece);
      response.end(trailer);
    });
    const headers = { ...newClient(), "Accept-Encoding": "gzip" };
    const answer = await send(worker.url, "/bytes", { headers });
    expect(gunzipSync(answer.body).equals(text)).toBe(true);
    await expectUsed("/bytes", headers, text.length);
  });

  it("is requested in gzip at most, and only under rules with a settle function", async () => {
    const accepted: unknown[] = [];
    for (const path of ["/length", "/free"]) {
      servers.origin.on(path, (request, response) => {
        accepted.push(request.headers["accept-encoding"]);
        response.writeHead(200).end();
      });
      for (const field of ["gzip, br", "br;q=1.0, gzip;q=0.5", "zstd"]) {
        await send(worker.url, path, { headers: { ...newClient(), "Accept-Encoding": field } });
      }
    }
    const unchanged = ["gzip, br", "br;q=1.0, gzip;q=0.5", "zstd"];
    expect(accepted).toEqual(
      ["gzip", " gzip;q=0.5", "identity", ...unchanged].map((each) => each.trim()),
    );
  });

  it("in an encoding that the runtime does not decode is not changed", async () => {
    const fields = { "content-encoding": "zstd", "content-length": "8" };
    servers.origin.on("/length", (_, response) => response.writeHead(200, fields).end("whatever"));
    const headers = { ...newClient(), "Accept-Encoding": "zstd" };
    const answer = await send(worker.url, "/length", { headers });
    expect(answer.headers["content-encoding"]).toBe("zstd");
    expect(`${answer.body}`).toBe("whatever");
    await expectUsed("/length", headers, 8);
  });

  it.each(["/length", "/unread"])("to HEAD keeps its fields: %s", async (path) => {
    const fields = { "content-length": "42", "content-type": "image/png" };
    servers.origin.on(path, (_, response) => response.writeHead(200, fields).end());
    const headers = newClient();
    const answer = await send(worker.url, path, { method: "HEAD", headers });
    expect(answer).toMatchObject({ status: 200, headers: fields });
    await expectUsed(path, headers, path === "/unread" ? 42 : 0);
  });

  it.each([204, 304])("with status %d has no body", async (status) => {
    servers.origin.on("/length", (_, response) =>
      response.writeHead(status, { etag: '"a"' }).end(),
    );
    const headers = newClient();
    const answer = await send(worker.url, "/length", { headers });
    expect(answer).toMatchObject({ status, headers: { etag: '"a"' } });
    expect(answer.body).toHaveLength(0);
    await expectUsed("/length", headers, 0);
  });

  it("is a part of a file, with its fields", async () => {
    const fields = { "content-range": "bytes 2-5/100", "content-length": "4" };
    servers.origin.on("/length", (_, response) => response.writeHead(206, fields).end("cdef"));
    const headers = newClient();
    const answer = await send(worker.url, "/length", {
      headers: { ...headers, Range: "bytes=2-5" },
    });
    expect(answer).toMatchObject({ status: 206, headers: fields, body: Buffer.from("cdef") });
    await expectUsed("/length", headers, 4);
  });

  it.each(["/free", "/length", "/marked"])("keeps a 101 without a WebSocket: %s", async (path) => {
    servers.origin.on(path, (_, response) => {
      response.socket?.end("HTTP/1.1 101 Odd\r\nConnection: close\r\n\r\n");
    });
    const { status } = await send(worker.url, path, { headers: newClient() });
    expect(status).toBe(101);
  });

  it.each(["/length", "/marked"])("switches to a WebSocket: %s", async (path) => {
    const headers = newClient();
    const sent = open(worker.url, path, { headers: { ...headers, ...websocket.HANDSHAKE } }).end();
    const [response, socket] = (await once(sent, "upgrade")) as [IncomingMessage, Duplex];
    expect(response.statusCode).toBe(101);
    const frames = [
      { opcode: websocket.TEXT, payload: Buffer.from("hello") },
      { opcode: websocket.CLOSE, payload: Buffer.from("\x0f\xa1enough", "latin1") },
    ];
    for (const frame of frames) socket.write(websocket.writeFrame(frame, Buffer.from("mask")));
    expect(await buffer(socket)).toEqual(
      Buffer.concat(frames.map((frame) => websocket.writeFrame(frame))),
    );
    await expectUsed(path, headers, RESERVE);
  });

  it.each([undefined, "next"])(
    "is not changed by a function that changes its copy: %s",
    async (mode) => {
      const body = "5".repeat(100_000);
      servers.origin.on("/changed", (_, response) => response.writeHead(200).end(body));
      for (let request = 0; request < 2; request++) {
        const headers = { ...newClient(), ...(mode && { "x-mode": mode, "x-constant": "1" }) };
        const answer = await send(worker.url, "/changed", { headers });
        expect(`${answer.body}`).toBe(body);
        // The function of the other rule reads later, and sees the bytes as they were.
        await expectUsed("/changed", headers, 555);
      }
    },
  );

  describe.each(["3", "5", "9", "x"])("of an app with the Content-Length %s", (length) => {
    // The runtime ignores the length that an app states, so Weir must ignore it too.
    it.each([true, false])("reaches the client, as a stream: %s", async (isStream) => {
      const mode = { "x-mode": "next", "x-length": length, ...(isStream && { "x-stream": "1" }) };
      for (const path of ["/free", "/length"]) {
        const headers = { ...newClient(), ...mode };
        const answer = await send(worker.url, path, { headers });
        expect(`${answer.body}`).toBe("12345");
        expect(["5", undefined]).toContain(answer.headers["content-length"]);
        if (path === "/length") await expectUsed(path, headers, 5);
      }
    });
  });
});
