import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { type Origin, type Received, startOrigin } from "../support/origin.ts";
import { HOST, WAYS } from "../support/ways.ts";
import { echoFrames, HANDSHAKE, TEXT, writeFrame } from "../support/websocket.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

const CONFIG: ConfigInput = {
  rules: [
    { name: "all", limit: 1_000_000, window: "1h" },
    { name: "mark", match: { paths: ["/mark"] }, limit: 0, window: "1h", mode: "shadow" },
  ],
};

let origin: Origin;
let workers: readonly RunningWorker[];
let worker: RunningWorker;
/**
 * The names of the header fields that the origin received, for each request to switch protocols.
 */
const upgrades: string[][] = [];

beforeAll(async () => {
  origin = await startOrigin();
  origin.onUpgrade((incoming, socket) => {
    upgrades.push(Object.keys(incoming.headers));
    echoFrames(incoming, socket);
  });
  workers = await startWorkers(WAYS.map(({ options }) => options(origin, CONFIG)));
});

afterAll(async () => {
  await workers[0]?.stop();
  await origin.stop();
});

function lastReceived(): Received {
  return origin.received.at(-1) as Received;
}

describe.each(WAYS)("a request through $way", ({ way, host }) => {
  beforeAll(() => {
    worker = workers[WAYS.findIndex((each) => each.way === way)] as RunningWorker;
  });

  it.each([
    "/",
    "/?",
    "/a%2Fb//c?x=%20&y",
    "//a//",
    "/%e4%E4/%zz/%",
    "/%2561/%00/%0a",
    "/a;b=c;d/e.f",
    "/a'(b)!*~@:$,+=&[]|c",
    "/a?b=/../c/./d//e?f=g&h=%2F+%20&i[]=1&b=2;j",
    "/.well-known/x/...",
  ])("arrives at %s as it was sent", async (target) => {
    expect((await send(worker.url, target, { headers: { Host: HOST } })).status).toBe(200);
    expect(lastReceived().url).toBe(target);
  });

  it.each([
    ["/a%2Fb//c/../d?x=%20&y", "/a%2Fb//d?x=%20&y"],
    ["/a/./b", "/a/b"],
    ["/a/%2e%2E/b", "/b"],
    ["/a\\b", "/a/b"],
    ["/a^b", "/a%5Eb"],
    ["/a?b#c", "/a?b"],
    ["http://elsewhere.example/a?b", "/a?b"],
  ])("to %s arrives at %s, the URL as Workers parse it", async (target, arriving) => {
    expect((await send(worker.url, target, { headers: { Host: HOST } })).status).toBe(200);
    expect(lastReceived().url).toBe(arriving);
  });

  it.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND", "PURGE"])(
    "keeps the method %s",
    async (method) => {
      const { status } = await send(worker.url, "/method", { method, headers: { Host: HOST } });
      expect(status).toBe(200);
      expect(lastReceived().method).toBe(method);
    },
  );

  it.each([
    "X-Original-URL",
    "x-rewrite-url",
    "X_Original_URL",
    "X_REWRITE_URL",
    "X-Original_Url",
    "X_Rewrite-URL",
    "X.Original.URL",
    "X!Original-URL",
    "x~rewrite|url",
    "X'Rewrite*URL",
  ])("loses %s, which makes some servers choose another path", async (name) => {
    const fields = { [name]: "/login", "x-original-host": "kept", "x-original-uri": "kept" };
    const body = randomBytes(100_000);
    const headers = { Host: HOST, ...fields };
    const answer = await send(worker.url, "/free?a", { method: "POST", headers, body });
    expect(answer.status).toBe(200);
    const { url, headers: arrived, body: arriving } = lastReceived();
    expect(url).toBe("/free?a");
    expect(Object.keys(arrived)).not.toContain(name.toLowerCase());
    expect(arrived).toMatchObject({ "x-original-host": "kept", "x-original-uri": "kept" });
    expect(digest(await arriving)).toBe(digest(body));
  });

  it("loses Expect, because workerd would take the origin's 100 for the response", async () => {
    const headers = { Host: HOST, Expect: "100-continue" };
    const body = randomBytes(10_000);
    const answer = await send(worker.url, "/free", { method: "PUT", headers, body });
    expect(answer.status).toBe(200);
    expect(Object.keys(lastReceived().headers)).not.toContain("expect");
    expect(digest(await lastReceived().body)).toBe(digest(body));
  });

  it("loses these fields even if it is a WebSocket request", async () => {
    const headers = { Host: HOST, ...HANDSHAKE, "X-Original-URL": "/login" };
    const sending = open(worker.url, "/socket", { headers }).end();
    const [response, socket] = (await once(sending, "upgrade")) as [IncomingMessage, Duplex];
    expect(response.statusCode).toBe(101);
    expect(upgrades.at(-1)).toContain("sec-websocket-key");
    expect(upgrades.at(-1)).not.toContain("x-original-url");
    socket.write(writeFrame({ opcode: TEXT, payload: Buffer.from("hello") }, Buffer.alloc(4)));
    const [echoed] = (await once(socket, "data")) as [Buffer];
    expect(String(echoed)).toContain("hello");
    socket.destroy();
  });

  it("keeps its other header fields", async () => {
    const fields = {
      "accept-encoding": "br;q=1, zstd",
      authorization: "Basic eDp5",
      cookie: "a=b; c=d",
      "if-none-match": '"x"',
      origin: "https://page.example",
      range: "bytes=0-1",
      "x-forwarded-for": "198.51.100.1",
      "x-empty": "",
    };
    await send(worker.url, "/fields", { headers: { Host: HOST, ...fields } });
    expect(lastReceived().headers).toMatchObject({ ...fields, host: host(origin) });
  });

  it.each(["content-length", "transfer-encoding"])(
    "keeps a large body with %s",
    async (framing) => {
      const body = randomBytes(4 * 1024 * 1024);
      const framed = framing === "content-length" ? `${body.length}` : "chunked";
      const headers = { Host: HOST, [framing]: framed };
      expect((await send(worker.url, "/upload", { method: "PUT", headers, body })).status).toBe(
        200,
      );
      expect(digest(await lastReceived().body)).toBe(digest(body));
      expect(lastReceived().headers[framing]).toBe(framed);
    },
  );

  it("reaches the origin while its body is still being sent", async () => {
    const firstChunk = Promise.withResolvers<string>();
    origin.on("/chat", (incoming, response) => {
      incoming.once("data", (chunk: Buffer) => firstChunk.resolve(chunk.toString()));
      incoming.once("end", () => response.end("all there"));
    });
    const sending = open(worker.url, "/chat", { method: "POST", headers: { Host: HOST } });
    sending.write("first");
    // The client sends the second chunk only after the origin has received the first chunk.
    expect(await firstChunk.promise).toBe("first");
    sending.end(", second");
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    expect((await buffer(response)).toString()).toBe("all there");
    expect((await lastReceived().body).toString()).toBe("first, second");
  });

  it("can be aborted by the client without an error", async () => {
    const begun = Promise.withResolvers<void>();
    origin.on("/given-up", (incoming) => {
      incoming.once("data", () => begun.resolve());
    });
    const headers = { Host: HOST, "Content-Length": "1000000" };
    const sending = open(worker.url, "/given-up", { method: "POST", headers });
    sending.on("error", () => {}).write("the beginning");
    await begun.promise;
    sending.destroy();
    await expect(lastReceived().body).rejects.toThrow("aborted");

    // If Weir logged the aborted request, that line would come before the line about this request.
    expect((await send(worker.url, "/mark", { headers: { Host: HOST } })).status).toBe(200);
    await vi.waitFor(() => expect(worker.logs()).toHaveLength(1), PATIENCE);
    expect(worker.logs()).toEqual([expect.stringContaining('"policy":"mark"')]);
  });
});

function digest(data: Buffer): string {
  return createHash("sha256").update(data).digest("hex");
}
