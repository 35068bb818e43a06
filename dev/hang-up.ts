import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * How a client closes its connection. `reset` sends an RST, as a killed process or an attacker
 * does. `end` sends a FIN, as a browser does when it leaves a page.
 */
export type WayToHangUp = "reset" | "end";

export const WAYS_TO_HANG_UP: readonly WayToHangUp[] = ["reset", "end"];

export interface HangUp {
  readonly way: WayToHangUp;
  /**
   * When to hang up: milliseconds after the last byte of the request, a promise to wait for, or a
   * text that the client must receive first.
   */
  readonly when: number | Promise<unknown> | { readonly received: string };
}

/** A request that is sent as text, and that may be incomplete. */
export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  /** The part of the body that is sent. */
  readonly body?: string;
  /** The length in the Content-Length field. @default the length of `body` */
  readonly contentLength?: number;
}

/** Sends a request on a new connection, hangs up, and waits until the socket is closed. */
export async function hangUp(base: URL, request: RawRequest, { way, when }: HangUp): Promise<void> {
  const socket = connect({ host: base.hostname, port: Number(base.port), noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  // The server may answer or hang up first, which does not matter.
  socket.on("error", () => {}).resume();
  await once(socket, "connect");
  socket.write(bytesOf(base, request));
  if (typeof when === "number") await delay(when);
  else await ("received" in when ? Promise.race([receive(socket, when.received), closed]) : when);
  if (way === "reset") socket.resetAndDestroy();
  else socket.destroySoon();
  await closed;
}

/** Resolves when the socket has received a text. */
function receive(socket: Socket, text: string): Promise<void> {
  let received = "";
  return new Promise((resolve) => {
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (received.includes(text)) resolve();
    });
  });
}

function bytesOf(base: URL, { method = "GET", path, headers = {}, ...rest }: RawRequest): string {
  const { body = "", contentLength = Buffer.byteLength(body) } = rest;
  const fields = {
    Host: base.host,
    ...(contentLength > 0 && { "Content-Length": String(contentLength) }),
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
