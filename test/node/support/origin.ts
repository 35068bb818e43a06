import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { listen } from "../../../dev/loopback.ts";

/** A request as it came in: nothing of it decoded. */
export type Received = {
  method: string;
  /** The request's target, byte for byte. */
  url: string;
  /** By lower-case name; repeated ones joined as Node does it. */
  headers: IncomingMessage["headers"];
  /** The whole body; rejects when the client goes away before its end. */
  body: Promise<Buffer>;
};

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex) => unknown;

export type Origin = {
  url: string;
  /** The same as host and port. */
  address: string;
  /** Every request so far, in the order in which they came. */
  received: Received[];
  /** Has requests for a path answered by a handler, and no longer by the usual 200. */
  on(path: string, handler: Handler): void;
  /** Has all attempts to switch protocols answered by a handler. */
  onUpgrade(handler: UpgradeHandler): void;
  /** Stops listening and drops open connections. */
  stop(): Promise<void>;
};

/** Starts an origin on loopback that reads a request and answers `200 ok`, if not told otherwise. */
export async function startOrigin(): Promise<Origin> {
  const received: Received[] = [];
  const handlers = new Map<string, Handler>();
  const server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    const body = buffer(request);
    received.push({ method, url, headers, body });
    const handler = handlers.get(url.replace(/\?.*/s, ""));
    if (handler) handler(request, response);
    else body.then(() => response.end("ok"), ignore);
    // Only who asks for the body minds that it broke off.
    body.catch(ignore);
  });
  const { host, port, stop } = await listen(server);
  return {
    url: `http://${host}:${port}`,
    address: `${host}:${port}`,
    received,
    on: (path, handler) => handlers.set(path, handler),
    onUpgrade: (handler) => server.on("upgrade", handler),
    stop,
  };
}

/** Host and port where nothing listens. */
export async function closedPort(): Promise<string> {
  const { address, stop } = await startOrigin();
  await stop();
  return address;
}

function ignore(): void {}
