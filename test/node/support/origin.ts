import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { listen } from "../../../dev/loopback.ts";

/** A request as it was received, without any decoding. */
export interface Received {
  readonly method: string;
  /** The request's target, byte for byte. */
  readonly url: string;
  /** The header fields, by lower-case name. Node joins repeated fields. */
  readonly headers: IncomingMessage["headers"];
  /** The whole body. Rejects if the client hangs up before the end of the body. */
  readonly body: Promise<Buffer>;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex) => unknown;

export interface Origin {
  readonly url: string;
  /** The host and port of `url`. */
  readonly address: string;
  /** All requests so far, in the order of their arrival. */
  readonly received: Received[];
  /** Sets the handler for the requests to a path, instead of the default response `200 ok`. */
  on(path: string, handler: Handler): void;
  /** Sets the handler for all requests to switch protocols. */
  onUpgrade(handler: UpgradeHandler): void;
  stop(): Promise<void>;
}

/** Starts an origin on loopback. It responds to every request with `200 ok` unless a handler is set. */
export async function startOrigin(): Promise<Origin> {
  const received: Received[] = [];
  const handlers = new Map<string, Handler>();
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const { method = "", url = "", headers } = request;
    const body = buffer(request);
    received.push({ method, url, headers, body });
    const handler = handlers.get(url.replace(/\?.*/s, ""));
    if (handler) handler(request, response);
    else body.then(() => response.end("ok"), ignore);
    // Without this line, an aborted body that no test reads would cause an unhandled rejection.
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

/** Returns a host and port on which no server listens. */
export async function closedPort(): Promise<string> {
  const { address, stop } = await startOrigin();
  await stop();
  return address;
}

function ignore(): void {}
