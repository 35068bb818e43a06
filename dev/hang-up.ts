import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/**
 * How a client goes away: `reset` by an RST, as a process that is killed, or an attacker; `end` by a FIN,
 * as a browser that leaves a page.
 */
export type Way = "reset" | "end";

export const WAYS_TO_HANG_UP: readonly Way[] = ["reset", "end"];

export type HangUp = {
  way: Way;
  /** Milliseconds after the request's last byte, or what is waited for. */
  when: number | Promise<unknown>;
};

/** A request as it is written on the wire. */
export type Cut = {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  /** What is sent of the body. */
  body?: string;
  /** What is promised of it, where that is more. */
  contentLength?: number;
};

/** Sends a request on a connection of its own, hangs up on the answer, and waits for the socket's end. */
export async function hangUp(base: URL, request: Cut, { way, when }: HangUp): Promise<void> {
  const socket = connect({ host: base.hostname, port: Number(base.port), noDelay: true });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  // The server may answer or hang up first: neither matters any more.
  socket.on("error", () => {}).resume();
  await once(socket, "connect");
  socket.write(bytesOf(base, request));
  await (typeof when === "number" ? delay(when) : when);
  if (way === "reset") socket.resetAndDestroy();
  else socket.destroySoon();
  await closed;
}

function bytesOf(base: URL, { method = "GET", path, headers = {}, ...rest }: Cut): string {
  const { body = "", contentLength = Buffer.byteLength(body) } = rest;
  const fields = {
    Host: base.host,
    ...(contentLength > 0 && { "Content-Length": String(contentLength) }),
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}
