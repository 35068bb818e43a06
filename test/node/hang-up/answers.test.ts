import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { PATIENCE } from "../../patience.ts";
import { drawn } from "../../suite/runs.ts";
import { send } from "../support/client.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import { type RunningWorker, startWorker } from "../support/worker.ts";

const TEXT = Buffer.alloc(20_000, "text");
const BODIES = { identity: TEXT, gzip: gzipSync(TEXT), br: brotliCompressSync(TEXT) };
type Encoding = keyof typeof BODIES;

const METHODS = ["GET", "HEAD", "POST", "DELETE"];
const STATUSES = [200, 204, 206, 304, 500];
/** A client sends an RST, closes its connection, or sends a FIN and reads on. */
const WAYS = ["reset", "close", "half-close"] as const;
const MOMENTS = ["before the head", "after the head"] as const;
const PATHS = ["/plain", "/settled", "/header"];

interface Case {
  readonly path: string;
  readonly method: string;
  readonly encoding: Encoding;
  readonly status: number;
  readonly way: (typeof WAYS)[number];
  readonly moment: (typeof MOMENTS)[number];
}

const CASES = PATHS.flatMap((path) =>
  METHODS.flatMap((method) =>
    (Object.keys(BODIES) as Encoding[]).flatMap((encoding) =>
      STATUSES.flatMap((status) =>
        WAYS.flatMap((way) =>
          MOMENTS.map((moment): Case => ({ path, method, encoding, status, way, moment })),
        ),
      ),
    ),
  ),
);

const servers = useServers();

/** Answers requests to a path, with the rest of the answer when `goOn` is called. */
function answerInParts({ encoding, status, moment }: Case, path: string) {
  const reached = Promise.withResolvers<void>();
  const cut = Promise.withResolvers<void>();
  servers.origin.on(path, async (_, response) => {
    const body = BODIES[encoding];
    // The runtime reuses a connection after the head of an answer without a body. The next request on it would wait
    // for the end of this answer.
    const fields = { "content-encoding": encoding, connection: "close" };
    const isHeadFirst = moment === "after the head";
    if (isHeadFirst) response.writeHead(status, fields).write(body.subarray(0, 10));
    reached.resolve();
    await cut.promise;
    if (isHeadFirst) response.end(body.subarray(10));
    else response.writeHead(status, fields).end(body);
  });
  return { reached: reached.promise, goOn: () => cut.resolve() };
}

/** Sends a request, and hangs up when the origin has been reached. */
async function sendAndHangUp(base: URL, head: string, way: Case["way"], reached: Promise<void>) {
  const socket = connect({ host: base.hostname, port: Number(base.port), noDelay: true });
  socket.on("error", () => {}).resume();
  await once(socket, "connect");
  socket.write(head);
  await reached;
  if (way === "reset") socket.resetAndDestroy();
  else if (way === "close") socket.destroySoon();
  else await new Promise<void>((resolve) => socket.end(resolve));
  return socket;
}

describe.each(REMOTE_STORES)("a slot over the store %s is given back", (store) => {
  let worker: RunningWorker;
  let clients = 0;

  beforeAll(async () => {
    const quota = { limit: 1_000_000, window: "52w" } as const;
    worker = await startWorker({
      config: {
        store,
        rules: [
          { name: "slot", concurrent: 1 },
          {
            name: "settled",
            match: { paths: ["/settled/*"] },
            ...quota,
            cost: { reserve: 1, settle: "custom:length" },
          },
          { name: "header", match: { paths: ["/header/*"] }, ...quota, cost: "header:x-cost" },
        ],
        prefix: `answers-${randomUUID()}`,
      },
      custom: "{ settle: { length: async (response) => (await response.text()).length } }",
      vars: servers.varsFor(store),
    });
  });

  afterAll(() => worker.stop());

  it.each(drawn(CASES))("$path: $method with $status in $encoding, $way $moment", async (each) => {
    const address = `203.0.113.${++clients % 250}`;
    const path = `${each.path}/${clients}`;
    const { reached, goOn } = answerInParts(each, path);
    const fields = `Host: a.example\r\nCF-Connecting-IP: ${address}\r\nContent-Length: 0\r\n`;
    const head = `${each.method} ${path} HTTP/1.1\r\n${fields}\r\n`;
    const socket = await sendAndHangUp(worker.url, head, each.way, reached);
    goOn();
    await vi.waitFor(async () => {
      const { status } = await send(worker.url, "/", { headers: { "CF-Connecting-IP": address } });
      expect(status).toBe(200);
    }, PATIENCE);
    socket.destroy();
  });
});
