import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConfigInput } from "../../src/config/index.ts";
import type { Origin } from "../node/support/origin.ts";
import { WAYS } from "../node/support/ways.ts";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { sendRaw } from "./target.ts";
import { lines } from "./vector.ts";

// Tests how the runtime changes a request after Weir has matched it. The origin records the bytes of each request,
// because servers in Node join repeated fields and ignore others.

const CONFIG: ConfigInput = {
  rules: [{ name: "all", limit: 1_000_000, window: "52w" }],
  store: "memory",
};

let worker: RunningWorker;
let received: string[];
/** The host and port of the origin. */
let address: string;
const server = createServer((socket) => {
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (data: Buffer) => {
    text += data.toString("latin1");
    if (!isComplete(text)) return;
    received.push(text);
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  });
});

function isComplete(text: string): boolean {
  const [head = "", body] = text.split("\r\n\r\n", 2);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const isChunked = /^transfer-encoding: chunked/im.test(head);
  return body !== undefined && (isChunked ? text.endsWith("0\r\n\r\n") : body.length >= length);
}

beforeAll(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  address = `127.0.0.1:${(server.address() as { port: number }).port}`;
});

afterAll(() => {
  server.close();
});

interface Arrived {
  readonly line: string;
  readonly host: string;
  /** The other fields, sorted, without the fields that every request has. */
  readonly fields: readonly string[];
  readonly body: string;
}

/** Sends a request, and returns the only request that the origin has received. */
async function arriving(
  requestLine: string,
  fields: readonly string[] = [],
  body = "",
): Promise<Arrived> {
  received = [];
  const host = fields.some((field) => field.startsWith("Host:")) ? [] : ["Host: api.example.com"];
  const request = { lines: lines(requestLine, ...host, ...fields), body };
  expect((await sendRaw(worker.url, request)).status).toBe(200);
  expect(received).toHaveLength(1);
  const [head = "", ...bodies] = (received[0] as string).split("\r\n\r\n");
  const [line = "", ...all] = head.split("\r\n");
  const isUsual = (field: string) =>
    /^(host|cf-connecting-ip|sec-websocket-(key|version)|x-forwarded-(host|proto)):/i.test(field);
  return {
    line,
    host: all.find((field) => /^host:/i.test(field))?.slice("host: ".length) ?? "",
    fields: all.filter((field) => !isUsual(field)).sort(),
    body: bodies.join("\r\n\r\n"),
  };
}

/** The methods other than GET that workerd accepts, with or without a body. */
const METHODS = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "PURGE", "TRACE", "HEAD"];

/** The runtime would send the first four requests as GET, and the remaining ones without the field. */
const UPGRADES = [
  ["Upgrade: websocket"],
  ["upgrade: WebSocket"],
  ["UPGRADE:  WEBSOCKET\t"],
  ["Upgrade: websocket", "Connection: Upgrade"],
  ["Upgrade: websocket", "Upgrade: websocket"],
  ["Upgrade: websocket, h2c"],
  ["Upgrade: h2c"],
];

function keepsMethods(): void {
  it.each(METHODS)(
    "%s arrives with its method and body with each form of Upgrade",
    async (method) => {
      for (const upgrade of UPGRADES) {
        const fields = [...upgrade, "X-K: \xe9", "Content-Length: 5"];
        expect(
          await arriving(`${method} /a HTTP/1.1`, fields, "hello"),
          `${upgrade}`,
        ).toMatchObject({
          line: `${method} /a HTTP/1.1`,
          fields: ["Content-Length: 5", "X-K: \xe9"],
          body: "hello",
        });
      }
    },
  );
}

describe.each(WAYS)("through $way", ({ way, options, host }) => {
  const originOf = () => ({ url: `http://${address}`, address }) as Origin;

  beforeAll(async () => {
    worker = await startWorker(options(originOf(), CONFIG));
  });

  afterAll(async () => {
    await worker.stop();
  });

  keepsMethods();

  it.each<[sent: string[], arrived?: string[]]>([
    // Unchanged, like all fields that are not in this table.
    [["X-K: 1", "X-K: 2", "X-K:"]],
    [["X-K: 1", "x_k: 2"]],
    [["X-K: \xe9"]],
    [["X-K: \xc3\xa9 \x01\x7f"]],
    [["X-K: a\t b", "Connection: X-K"], ["X-K: a\t b"]],
    [["Authorization: Basic  x", "Range: bytes=0-", "Accept-Encoding: foo"]],
    [["Proxy-Authorization: x", "Proxy-Connection: x", "Sec-WebSocket-Protocol: x"]],
    [["Via: 1.1 x", "CDN-Loop: x", "Max-Forwards: 0"]],
    [["CF-Ray: x", "CF-Worker: x", "CF-EW-Via: x", "True-Client-IP: x", "X-Forwarded-For: x"]],
    [["X-HTTP-Method-Override: DELETE"]],
    [["Content_Length: 5", "Transfer_Encoding: chunked"]],
    [["Cookie: a=1;b=\xe9;; c"]],
    // The runtime joins the fields that it knows, for Weir and for the origin. Keys and conditions treat such
    // a value as unclear.
    [["Cookie: a=1", "Cookie: b=2"], ["Cookie: a=1, b=2"]],
    [["Authorization: a", "Authorization: b"], ["Authorization: a, b"]],
    [["User-Agent: a", "User-Agent: b"], ["User-Agent: a, b"]],
    // The runtime removes these fields. Keys and conditions treat an empty field as absent or as unclear.
    [["Accept:", "User-Agent:", "Authorization:", "Cookie:"], []],
    [["Keep-Alive: x", "TE: trailers", "Trailer: X-K"], []],
    [["Upgrade: h2c"], []],
    [["Content-Length: 0"], []],
    [["Transfer-Encoding: chunked"], []],
    // Weir removes this field.
    [["Expect: 100-continue"], []],
    [["X.Original.URL: /x", "X!Rewrite~URL: /x"], []],
    [["Forwarded: for=x", "X_Forwarded_Host: x", "X-Forwarded-Port: 1"], []],
    // A handshake.
    [["Upgrade: WebSocket"], ["Connection: Upgrade", "Upgrade: websocket"]],
    [
      ["Upgrade: websocket", "Sec-WebSocket-Protocol: a", "Sec-WebSocket-Protocol: b"],
      ["Connection: Upgrade", "Sec-WebSocket-Protocol: a, b", "Upgrade: websocket"],
    ],
    [["Upgrade: websocket, h2c"], []],
  ])("GET with %j arrives with the fields that Weir reads", async (sent, arrived = sent) => {
    const { line, fields } = await arriving("GET /a HTTP/1.1", sent);
    expect(line).toBe("GET /a HTTP/1.1");
    expect(fields).toEqual(arrived.toSorted());
  });

  it.each<[fields: string[], sent: string, arrived: Partial<Arrived>]>([
    [["Content-Length: 05"], "hello", { fields: ["Content-Length: 5"], body: "hello" }],
    [
      ["Transfer-Encoding: chunked", "Trailer: X-K"],
      "5;a=b\r\nhello\r\n0\r\nX-K: 1\r\n\r\n",
      { fields: ["Transfer-Encoding: chunked"], body: "5\r\nhello\r\n0\r\n\r\n" },
    ],
    [
      ["Upgrade: websocket", "Transfer-Encoding: chunked"],
      "5\r\nhello\r\n0\r\n\r\n",
      { fields: ["Transfer-Encoding: chunked"], body: "5\r\nhello\r\n0\r\n\r\n" },
    ],
    [[], "", { fields: ["Content-Length: 0"], body: "" }],
  ])("POST with %j arrives with its body", async (fields, sent, arrived) => {
    expect(await arriving("POST /a HTTP/1.1", fields, sent)).toMatchObject(arrived);
  });

  // The origin gets no part of these bodies, not even as a second request.
  it.each([
    ["Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"],
    ["Upgrade: websocket, Content-Length: 27", "GET /b HTTP/1.1\r\nHost: b\r\n\r\n"],
    ["Upgrade: websocket, Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"],
  ])("GET with %s arrives without its body", async (fields, body) => {
    expect((await arriving("GET /a HTTP/1.1", fields.split(", "), body)).body).toBe("");
  });

  it.each([
    ["API.Example.COM:80", "/a", "api.example.com"],
    ["api.example.com.", "/a", "api.example.com."],
    ["api.example.com:8080", "/a", "api.example.com:8080"],
    ["api.example.com", "http://other.example/a", "api.example.com"],
    ["api.example.com", "https://a:b@other.example:1/a", "api.example.com"],
    ["api.example.com", "/a#/../b?c", "api.example.com"],
    ["api.example.com", "/a\\b\\..\\..\\a", "api.example.com"],
  ])("GET with Host: %s and the target %s arrives at its host", async (sent, target, named) => {
    const arrived = await arriving(`GET ${target} HTTP/1.1`, [`Host: ${sent}`]);
    expect(arrived.line).toBe("GET /a HTTP/1.1");
    expect(arrived.host).toBe(way === "ORIGIN_URL" ? host(originOf()) : named);
  });
});

describe.each([
  ["a handler behind rateLimit", "app.fetch(request, env, ctx)"],
  ["next", "limits.fetch(request, env, ctx, send)"],
])("%s that sends the request on", (_, answer) => {
  beforeAll(async () => {
    const main = `
      import { CounterObject, defineConfig, Hono, rateLimit, weir } from "./weir.mjs";
      const config = defineConfig(${JSON.stringify(CONFIG)});
      const limits = weir(config);
      const send = (request) => fetch(new Request("http://${address}/a", request));
      const app = new Hono().use(rateLimit(config)).all("*", (c) => send(c.req.raw));
      export default { fetch: (request, env, ctx) => ${answer} };
      export { CounterObject };
    `;
    worker = await startWorker({ config: CONFIG, main });
  });

  afterAll(async () => {
    await worker.stop();
  });

  keepsMethods();
});
