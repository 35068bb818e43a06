import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { ByteSource, Head } from "./byte-source.ts";
import { decompressed } from "./decompressed.ts";
import { LogError } from "./log-error.ts";
import { readNamedPipe } from "./named-pipe.ts";
import { readAhead } from "./read-ahead.ts";
import { counted, streamSource } from "./stream-source.ts";

const CHUNK_BYTES = 64 * 1024;

/**
 * @param name the path of a file; `-` is the standard input
 * @param signal ends the waiting for the first bytes of a stream
 * @throws {LogError} if there is no such file, or if it is a directory
 */
export async function openByteSource(
  name: string,
  signal?: AbortSignal | undefined,
): Promise<ByteSource> {
  if (name === "-") return streamSource("standard input", process.stdin, signal);
  const stats = await statOf(name);
  if (stats.isDirectory()) {
    throw new LogError(`${name} is a directory. Name its files, such as ${name}/access.log*.`);
  }
  if (stats.isFile()) return fileSource(name, stats.size);
  // A pipe, such as <(ssh …) of a shell, can be read only once.
  const stream = stats.isFIFO() ? readNamedPipe(name, signal) : readDevice(name);
  return streamSource(name, stream, signal);
}

async function statOf(name: string): Promise<Stats> {
  try {
    return await stat(name);
  } catch (error) {
    throw new LogError(`${name} cannot be read: ${reasonOf(error)}`);
  }
}

/** Returns why a file could not be read, such as `there is no such file.` */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file.";
  if (code === "EACCES" || code === "EPERM") return "this user may not read it.";
  if (code === "Z_BUF_ERROR") return "its compressed data ends too early.";
  return message.endsWith(".") ? message : `${message}.`;
}

/** Reads a device. Its next bytes may never come, so they are not read ahead. */
async function* readDevice(name: string): AsyncGenerator<Buffer> {
  const file = await open(name);
  try {
    const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** A file. It is closed between `head` and `chunks`, so that many files can wait for their turn. */
function fileSource(name: string, size: number): ByteSource {
  return {
    name,
    size,
    head: (bytes) => readHead(decompressed(readAhead(name)), bytes),
    chunks: (onRead) => decompressed(counted(readAhead(name), onRead)),
    async close() {},
  };
}

/** Reads chunks until they have this many bytes, or until the end or an error. */
async function readHead(source: AsyncIterable<Buffer>, bytes: number): Promise<Head> {
  const chunks: Buffer[] = [];
  let missing = bytes;
  try {
    for await (const chunk of source) {
      // The source overwrites the chunk.
      chunks.push(Buffer.from(chunk));
      missing -= chunk.length;
      if (missing <= 0) break;
    }
  } catch (error) {
    if (missing === bytes) throw error;
  }
  return { bytes: Buffer.concat(chunks), isWhole: missing > 0 };
}
