import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type Duplex, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { type Outgoing, open, send } from "../support/client.ts";
import { type Origin, startOrigin } from "../support/origin.ts";
import { HOST, WAYS } from "../support/ways.ts";
import * as websocket from "../support/websocket.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

const CONFIG: ConfigInput = { rules: [{ name: "all", limit: 1_000_000, window: "1h" }] };
const TEXT = "It is what it is. ".repeat(1000);

let origin: Origin;
let workers: readonly RunningWorker[];
let worker: RunningWorker;

beforeAll(async () => {
  origin = await startOrigin();
  origin.onUpgrade(websocket.echoFrames);
  workers = await startWorkers(WAYS.map(({ options }) => options(origin, CONFIG)));
});

afterAll(async () => {
  await workers[0]?.stop();
  await origin.stop();
});

function sendToHost(path: string, outgoing: Outgoing = {}) {
  return send(worker.url, path, { ...outgoing, headers: { Host: HOST, ...outgoing.headers } });
}

describe.each(WAYS)("a response through $way", ({ way }) => {
  beforeAll(() => {
    worker = workers[WAYS.findIndex((each) => each.way === way)] as RunningWorker;
  });

  it.each([200, 201, 226, 400, 404, 429, 500, 503, 599])("keeps status %d", async (status) => {
    origin.on("/status", (_, response) => response.writeHead(status).end("as it is"));
    const answer = await sendToHost("/status");
    expect(answer).toMatchObject({ status, body: Buffer.from("as it is") });
  });

  it.each([204, 304])("keeps status %d, which has no body", async (status) => {
    origin.on("/empty", (_, response) => response.writeHead(status, { ETag: '"1"' }).end());
    const answer = await sendToHost("/empty");
    expect(answer).toMatchObject({ status, headers: { etag: '"1"' } });
    expect(answer.body).toHaveLength(0);
  });

  it.each([
    [600, "GET"],
    [999, "GET"],
    [999, "HEAD"],
  ])("keeps status %d to %s, although `new Response` throws for it", async (status, method) => {
    origin.on("/odd", (_, response) => response.writeHead(status).end());
    expect((await sendToHost("/odd", { method })).status).toBe(status);
  });

  it("to a HEAD request has the fields of a body, but no body", async () => {
    const fields = { "content-length": "42", "content-type": "image/png" };
    origin.on("/head", (_, response) => response.writeHead(200, fields).end());
    const answer = await sendToHost("/head", { method: "HEAD" });
    expect(answer).toMatchObject({ status: 200, headers: fields });
    expect(answer.body).toHaveLength(0);
  });

  it.each([301, 302, 303, 307, 308])("that redirects with %d is not followed", async (status) => {
    const location = "http://elsewhere.example/a%2Fb?c";
    origin.on("/moved", (_, response) => response.writeHead(status, { location }).end("moved"));
    const before = origin.received.length;
    const answer = await sendToHost("/moved", { method: "POST", body: "body" });
    expect(answer).toMatchObject({ status, headers: { location }, body: Buffer.from("moved") });
    expect(origin.received).toHaveLength(before + 1);
  });

  it("keeps repeated Set-Cookie fields apart", async () => {
    const cookies = ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/", "b=2", "a=3; HttpOnly"];
    origin.on("/cookies", (_, response) => response.setHeader("Set-Cookie", cookies).end());
    expect((await sendToHost("/cookies")).headers["set-cookie"]).toEqual(cookies);
  });

  it.each([
    ["gzip", gzipSync(TEXT), "gzip"],
    ["gzip", gzipSync(TEXT), "identity"],
    ["gzip", Buffer.from("not gzip at all"), "gzip"],
    ["br", brotliCompressSync(TEXT), "gzip, br"],
    ["zstd", Buffer.from("whatever"), "zstd"],
  ])("in %s is not changed: %#", async (encoding, body, accepted) => {
    const fields = { "content-encoding": encoding, "content-length": `${body.length}` };
    origin.on("/compressed", (_, response) => response.writeHead(200, fields).end(body));
    const answer = await sendToHost("/compressed", { headers: { "Accept-Encoding": accepted } });
    expect(answer).toMatchObject({ headers: fields, body });
  });

  it("reaches the client while the origin is still writing it", async () => {
    const acknowledged = Promise.withResolvers<void>();
    origin.on("/events", async (_, response) => {
      response.write("data: 1\n\n");
      await acknowledged.promise;
      response.end("data: 2\n\n");
    });
    const sent = open(worker.url, "/events", { headers: { Host: HOST } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const [first] = (await once(response, "data")) as [Buffer];
    expect(first.toString()).toBe("data: 1\n\n");
    // The origin sends the second event only after the client has received the first event.
    acknowledged.resolve();
    expect((await buffer(response)).toString()).toBe("data: 2\n\n");
  });

  it("breaks off if the origin's response breaks off, and later requests work", async () => {
    origin.on("/broken", async (_, response) => {
      response.writeHead(200, { "Content-Length": "100" });
      response.write("a part", () => response.destroy());
    });
    const sent = open(worker.url, "/broken", { headers: { Host: HOST } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    await expect(buffer(response)).rejects.toThrow("aborted");
    expect((await sendToHost("/")).status).toBe(200);
  });

  it("can be aborted by the client, and the origin's connection is then closed", async () => {
    const gone = Promise.withResolvers<string>();
    origin.on("/endless", (_, response) => {
      response.once("close", () => gone.resolve("gone"));
      Readable.from(endless()).pipe(response);
    });
    const sent = open(worker.url, "/endless", { headers: { Host: HOST } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => {}).destroy();
    expect(await gone.promise).toBe("gone");
    expect((await sendToHost("/")).status).toBe(200);
  });

  it("is 502 if the origin closes the connection without a response", async () => {
    origin.on("/nothing", (_, response) => response.destroy());
    const { status, headers } = await sendToHost("/nothing");
    expect(status).toBe(502);
    expect(headers).toMatchObject({ "content-type": "application/problem+json" });
  });

  it("can be a WebSocket, which carries messages in both directions, and its close", async () => {
    const frames = [
      { opcode: websocket.TEXT, payload: Buffer.from("text") },
      { opcode: websocket.BINARY, payload: Buffer.from([0, 255]) },
      { opcode: websocket.CLOSE, payload: Buffer.from("\x0f\xa1enough", "latin1") },
    ];
    const headers = { Host: HOST, ...websocket.HANDSHAKE };
    const sent = open(worker.url, "/socket", { headers }).end();
    const [response, socket] = (await once(sent, "upgrade")) as [IncomingMessage, Duplex];
    expect(response.headers).toMatchObject({
      "sec-websocket-accept": websocket.acceptKey(headers["Sec-WebSocket-Key"]),
      "ratelimit-policy": '"all";q=1000000;w=3600',
    });
    for (const frame of frames) socket.write(websocket.writeFrame(frame, Buffer.from("mask")));
    const echoed = Buffer.concat(frames.map((frame) => websocket.writeFrame(frame)));
    expect(await buffer(socket)).toEqual(echoed);
  });
});

function* endless() {
  while (true) yield TEXT;
}
