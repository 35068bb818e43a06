import { createHash } from "node:crypto";
import type { UpgradeHandler } from "./origin.ts";

// This module implements the parts of RFC 6455 (WebSocket) that the tests need. A client can send
// frames of at most 125 bytes, and a server sends them back.

export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;

export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** The header fields by which a client requests a WebSocket. */
export const HANDSHAKE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** Accepts a WebSocket. Reads and sends nothing. */
export const acceptSocket: UpgradeHandler = (request, socket) => {
  const accept = acceptKey(request.headers["sec-websocket-key"] ?? "");
  // Weir may reset a connection whose client has gone.
  socket.on("error", () => {});
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
};

/** Accepts a WebSocket and sends every frame back, including the frame that closes it. */
export const echoFrames: UpgradeHandler = (request, socket) => {
  acceptSocket(request, socket);
  let pending = Buffer.alloc(0);
  socket.on("data", (data: Buffer) => {
    pending = Buffer.concat([pending, data]);
    for (let read = readMasked(pending); read; read = readMasked(pending)) {
      pending = pending.subarray(read.length);
      if (socket.writableEnded) continue;
      socket.write(writeFrame(read.frame));
      if (read.frame.opcode === CLOSE) socket.end();
    }
  });
};

/**
 * Returns the value of `Sec-WebSocket-Accept`, which proves that the server has read the client's
 * key.
 */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/**
 * Returns the bytes of a frame that contains a whole message of at most 125 bytes. A client must
 * pass a `mask`.
 */
export function writeFrame({ opcode, payload }: Frame, mask?: Buffer): Buffer {
  const head = Buffer.from([0x80 | opcode, (mask ? 0x80 : 0) | payload.length]);
  return Buffer.concat(mask ? [head, mask, masked(payload, mask)] : [head, payload]);
}

/**
 * Returns the first frame in the data from a client, and the frame's length in bytes. Returns
 * undefined until the whole frame has arrived.
 */
function readMasked(data: Buffer): { frame: Frame; length: number } | undefined {
  const [head = 0, size = 0] = data;
  const length = 6 + (size & 0x7f);
  if (data.length < 6 || data.length < length) return undefined;
  const payload = masked(data.subarray(6, length), data.subarray(2, 6));
  return { frame: { opcode: head & 0xf, payload }, length };
}

function masked(payload: Buffer, mask: Buffer): Buffer {
  return Buffer.from(payload.map((byte, index) => byte ^ mask.readUInt8(index % 4)));
}
