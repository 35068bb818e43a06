import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { hangUp, WAYS_TO_HANG_UP } from "../../../dev/hang-up.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { PATIENCE } from "../../patience.ts";
import { open, send } from "../support/client.ts";
import { closedPort, type UpgradeHandler } from "../support/origin.ts";
import { REMOTE_STORES, useServers } from "../support/servers.ts";
import {
  acceptSocket,
  BINARY,
  CLOSE,
  echoFrames,
  HANDSHAKE,
  TEXT,
  writeFrame,
} from "../support/websocket.ts";
import { type RunningWorker, startWorkers } from "../support/worker.ts";

const MIB = 1024 * 1024;
const MASK = Buffer.from([1, 2, 3, 4]);
const CLOSE_FRAME = { opcode: CLOSE, payload: Buffer.from("\x0f\xa1enough", "latin1") };
const DEFLATE = { "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits" };

/** The head of a binary message of 64 KiB. */
const HEAD = [0x80 | BINARY, 127, 0, 0, 0, 0, 0, 1, 0, 0];
const FROM_SERVER = Buffer.concat([Buffer.from(HEAD), Buffer.alloc(64 * 1024)]);
/** Its mask is 0, so that the payload stays as it is. */
const FROM_CLIENT = Buffer.concat([
  Buffer.from(HEAD.with(1, 0x80 | 127)),
  Buffer.alloc(4 + 64 * 1024),
]);
/** The bytes that one side tries to send while the other reads nothing. */
const FLOOD_BYTES = 256 * MIB;
/** A connection counts as blocked if it takes no byte for so many milliseconds. */
const BLOCKED_MS = 1000;
/** The bytes that the buffers of the system and of the runtime may hold. */
const BUFFERED_BYTES = 32 * MIB;
const GROWTH_BYTES = 64 * MIB;

const WINDOW = { limit: 1000, window: "1h" } as const;
/** Every use that Weir makes of a response. */
const RULES: ConfigInput["rules"] = [
  { name: "slot", match: { paths: ["/slot"] }, concurrent: 1 },
  { name: "waited", match: { paths: ["/waited"] }, concurrent: 1, wait: "10s" },
  { name: "trial", match: { paths: ["/trial"] }, concurrent: 1, mode: "shadow" },
  {
    name: "settled",
    match: { paths: ["/settled", "/held"] },
    ...WINDOW,
    cost: { reserve: 5, settle: "custom:length" },
  },
  { name: "held", match: { paths: ["/held"] }, concurrent: 1 },
  { name: "header", match: { paths: ["/header"] }, ...WINDOW, cost: "header:x-cost" },
  { name: "window", match: { paths: ["/window"] }, ...WINDOW },
];
const PATHS = ["/slot", "/waited", "/trial", "/settled", "/held", "/header", "/window", "/free"];

const STORES = [...REMOTE_STORES, "a store that fails"];

const servers = useServers();
let workers: ReadonlyMap<string, RunningWorker>;
let handleUpgrade: UpgradeHandler;
let clients = 0;
const newClient = () => ({ "CF-Connecting-IP": `198.51.100.${++clients}` });

beforeAll(async () => {
  const custom = "{ settle: { length: async (response) => (await response.text()).length } }";
  servers.origin.onUpgrade((request, socket) => handleUpgrade(request, socket));
  const dead = `http://${await closedPort()}`;
  const common = { custom, config: { rules: RULES, prefix: `sockets-${randomUUID()}` } };
  const started = await startWorkers([
    ...REMOTE_STORES.map((store) => ({
      ...common,
      config: { ...common.config, store },
      vars: servers.varsFor(store),
    })),
    {
      ...common,
      config: { ...common.config, store: "upstash", headers: "legacy" },
      vars: { ...servers.varsFor("upstash"), UPSTASH_REDIS_REST_URL: dead },
    },
  ]);
  workers = new Map(STORES.map((name, at) => [name, started[at] as RunningWorker]));
});

afterAll(() => workers.get("upstash")?.stop());

/** Opens a WebSocket, and returns the fields of the answer and the connection. */
async function upgrade(worker: RunningWorker, path: string, headers: Record<string, string>) {
  const request = open(worker.url, path, { headers: { ...headers, ...HANDSHAKE } }).end();
  const refused = once(request, "response").then(([{ statusCode }]) => {
    throw new Error(`The handshake was answered with ${statusCode}.`);
  });
  const upgraded = once(request, "upgrade");
  const [response, socket] = (await Promise.race([upgraded, refused])) as [IncomingMessage, Duplex];
  socket.on("error", () => {});
  return { fields: response.headers, socket };
}

/** Opens a WebSocket as soon as the client has a slot again. */
function upgradeNext(...args: Parameters<typeof upgrade>) {
  return vi.waitFor(() => upgrade(...args), PATIENCE);
}

/** Returns the connection to the origin of the next WebSocket, which the origin only accepts. */
function nextSocket(): Promise<Duplex> {
  const { promise, resolve } = Promise.withResolvers<Duplex>();
  handleUpgrade = (request, socket) => {
    acceptSocket(request, socket);
    resolve(socket);
  };
  return promise;
}

/** Sends messages until the connection is blocked, or until `FLOOD_BYTES` have been sent. */
async function flood(socket: Duplex, message: Buffer): Promise<number> {
  let sent = 0;
  while (sent < FLOOD_BYTES) {
    sent += message.length;
    if (socket.write(message)) continue;
    const drained = once(socket, "drain").then(() => true);
    if (!(await Promise.race([drained, delay(BLOCKED_MS, false)]))) break;
  }
  return sent;
}

describe.each(STORES)("WebSockets over %s", (store) => {
  const running = () => workers.get(store) as RunningWorker;

  describe.each(PATHS)("to %s", (path) => {
    it("pass messages and the Close, and agree to no compression that the origin lacks", async () => {
      handleUpgrade = echoFrames;
      const { fields, socket } = await upgrade(running(), path, { ...newClient(), ...DEFLATE });
      expect(fields["sec-websocket-extensions"]).toBeUndefined();
      const frames = [
        { opcode: TEXT, payload: Buffer.from("hello") },
        { opcode: BINARY, payload: Buffer.from([0, 255, 1]) },
        CLOSE_FRAME,
      ];
      for (const frame of frames) socket.write(writeFrame(frame, MASK));
      const expected = Buffer.concat(frames.map((frame) => writeFrame(frame)));
      expect(await buffer(socket)).toEqual(expected);
    });

    it("hold no slot after the handshake, and end at the origin with their client", async () => {
      const headers = newClient();
      const opened: (readonly [client: Duplex, origin: Duplex])[] = [];
      for (let at = 0; at < 3; at++) {
        const accepted = nextSocket();
        const { socket } = await upgradeNext(running(), path, headers);
        opened.push([socket, await accepted]);
      }
      await vi.waitFor(async () => {
        expect((await send(running().url, path, { headers })).status).toBe(200);
      }, PATIENCE);
      for (const [client, origin] of opened) {
        const ended = Promise.race([once(origin.resume(), "end"), once(origin, "close")]);
        client.destroy();
        await ended;
        origin.destroy();
      }
    });
  });

  it("let a side that reads nothing stop the other side, without filling the memory", async () => {
    const before = running().residentBytes();
    const floods: Promise<number>[] = [];
    const opened: Duplex[] = [];
    for (const path of PATHS) {
      for (const isByOrigin of [true, false]) {
        const accepted = nextSocket();
        const { socket } = await upgrade(running(), path, newClient());
        const origin = await accepted;
        opened.push(socket.pause(), origin.pause());
        floods.push(isByOrigin ? flood(origin, FROM_SERVER) : flood(socket, FROM_CLIENT));
      }
    }
    for (const sent of await Promise.all(floods)) expect(sent).toBeLessThan(BUFFERED_BYTES);
    expect(running().residentBytes() - before).toBeLessThan(GROWTH_BYTES);
    for (const socket of opened) socket.destroy();
  });

  it.each(WAYS_TO_HANG_UP)("leave the slot of a handshake that ends by %s", async (way) => {
    const headers = newClient();
    const reached = Promise.withResolvers<() => void>();
    handleUpgrade = (incoming, socket) => {
      socket.on("error", () => {});
      reached.resolve(() => acceptSocket(incoming, socket));
    };
    const request = { path: "/slot", headers: { ...headers, ...HANDSHAKE } };
    await hangUp(running().url, request, { way, when: reached.promise });
    handleUpgrade = echoFrames;
    (await reached.promise)();
    (await upgradeNext(running(), "/slot", headers)).socket.destroy();
  });
});
