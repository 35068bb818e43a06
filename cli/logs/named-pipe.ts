import { closeSync, constants, openSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";

const CHUNK_BYTES = 64 * 1024;

/** How often a pipe is tried until a program writes to it, in milliseconds. */
const RETRY_MS = 50;

/** Pipes that the shell has opened, such as `/dev/fd/63` of `<(ssh …)`. */
const OPENED = /^\/(?:dev|proc)\//;

/**
 * Reads a pipe. Reading it like a file would keep a thread busy until the writer ends, and the program could not end
 * before.
 *
 * @param signal ends the waiting for a program that writes
 */
export async function* readNamedPipe(
  name: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const file = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
  let socket: Socket | undefined;
  try {
    if (!OPENED.test(name)) {
      const start = await firstBytes(file, signal);
      if (start === undefined) return;
      if (start.length > 0) yield start;
    }
    socket = new Socket({ fd: file, readable: true, writable: false });
    yield* socket;
  } finally {
    if (socket) socket.destroy();
    else closeSync(file);
  }
}

/**
 * Waits until a program has opened the pipe for writing. Before that, the pipe looks like an empty file.
 *
 * @returns the bytes that can be read already; undefined if the signal is aborted first
 */
async function firstBytes(
  file: number,
  signal: AbortSignal | undefined,
): Promise<Buffer | undefined> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  while (!signal?.aborted) {
    try {
      const length = readSync(file, buffer);
      if (length > 0) return buffer.subarray(0, length);
    } catch (error) {
      // There is a writer, but it has written nothing.
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return Buffer.alloc(0);
      throw error;
    }
    await setTimeout(RETRY_MS);
  }
  return undefined;
}
