import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningWorker, startWorker } from "../node/support/worker.ts";
import { sendRaw } from "./target.ts";
import { lines } from "./vector.ts";

// What the runtime changes in a request after Weir has matched it. The origin records the bytes of each
// request, because servers in Node would join repeated fields and ignore others.

let worker: RunningWorker;
let received: string[];
const origin = createServer((socket) => {
  let head = "";
  socket.on("error", () => {});
  socket.on("data", (data: Buffer) => {
    head += data.toString("latin1");
    if (!head.includes("\r\n\r\n")) return;
    received.push(head.slice(0, head.indexOf("\r\n\r\n")));
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  });
});

beforeAll(async () => {
  await new Promise<void>((listening) => origin.listen(0, "127.0.0.1", listening));
  const { port } = origin.address() as { port: number };
  worker = await startWorker({
    config: { rules: [{ name: "all", limit: 1_000_000, window: "52w" }], store: "memory" },
    vars: { ORIGIN_URL: `http://127.0.0.1:${port}` },
  });
});

afterAll(async () => {
  await worker.stop();
  origin.close();
});

/** Sends a request, and returns the first line and the sorted fields that the origin has received. */
async function arriving(requestLine: string, ...fields: string[]): Promise<string[]> {
  received = [];
  const request = lines(requestLine, "Host: api.example.com", ...fields);
  expect((await sendRaw(worker.url, { lines: request })).status).toBe(200);
  expect(received).toHaveLength(1);
  const [first = "", ...others] = (received[0] as string).split("\r\n");
  const isUsual = (each: string) => /^(host|cf-connecting-ip|sec-websocket-.*):/i.test(each);
  return [first, ...others.filter((each) => !isUsual(each)).sort()];
}

describe("the fields that arrive", () => {
  it.each<[sent: string[], arrived?: string[]]>([
    // Unchanged, and so are all fields that are not in this table.
    [["X-K: 1", "X-K: 2"]],
    [["X-K: 1", "x_k: 2"]],
    [["X-K: \xe9"]],
    [["X-K:"]],
    [["X-K: a\t b", "Connection: X-K"], ["X-K: a\t b"]],
    [["Authorization: Basic  x", "Range: bytes=0-", "Accept-Encoding: foo"]],
    [["Forwarded: for=x", "Via: 1.1 x", "CDN-Loop: x", "Max-Forwards: 0"]],
    [["X-HTTP-Method-Override: DELETE"]],
    // The runtime joins Cookie fields, so a key that reads a cookie counts such a request by address.
    [["Cookie: a=1", "Cookie: b=2"], ["Cookie: a=1, b=2"]],
    // The runtime removes these. Keys and conditions treat an empty field as absent or as unclear.
    [["Accept:", "User-Agent:"], []],
    [["Keep-Alive: x", "TE: trailers", "Trailer: X-K", "Upgrade: h2c"], []],
    [["Content-Length: 0"], []],
    [["Transfer-Encoding: chunked"], []],
    // Weir removes these.
    [["Expect: 100-continue"], []],
    [["X.Original.URL: /x", "X!Rewrite~URL: /x"], []],
    // A handshake.
    [["Upgrade: WebSocket"], ["Connection: Upgrade", "Upgrade: websocket"]],
  ])("with %j", async (sent, arrived = sent) => {
    expect(await arriving("GET /a HTTP/1.1", ...sent)).toEqual([
      "GET /a HTTP/1.1",
      ...arrived.toSorted(),
    ]);
  });
});

it.each(["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "TRACE", "HEAD"])(
  "%s arrives with its own method if it asks for WebSockets",
  async (method) => {
    const [first, ...fields] = await arriving(`${method} /a HTTP/1.1`, "Upgrade: websocket");
    expect(first).toBe(`${method} /a HTTP/1.1`);
    expect(fields.filter((field) => !field.startsWith("Content-Length"))).toEqual([]);
  },
);
