import type { Stats } from "node:fs";
import { open, stat } from "node:fs/promises";
import { decompressed } from "./decompressed.ts";
import { LogError } from "./log-error.ts";

const CHUNK_BYTES = 64 * 1024;

/** The bytes of one log, decompressed. */
export interface ByteSource {
  /** The name as the user has written it. */
  readonly name: string;
  /** The size as stored, in bytes; undefined for a stream. */
  readonly size: number | undefined;
  /** Reads the first bytes. `chunks` returns them again. */
  head(bytes: number): Promise<Buffer>;
  /**
   * Reads all bytes from the start. Call it once. A chunk is valid until the next one is read.
   *
   * @param onRead receives the number of stored bytes that were read
   */
  chunks(onRead: (bytes: number) => void): AsyncGenerator<Buffer>;
  /** Closes a source that is not read to its end. */
  close(): Promise<void>;
}

/**
 * @param name the path of a file; `-` is the standard input
 * @throws {LogError} if there is no such file, or if it is a directory
 */
export async function openByteSource(name: string): Promise<ByteSource> {
  if (name === "-") return streamSource("standard input", process.stdin);
  const stats = await statOf(name);
  if (stats.isDirectory()) {
    throw new LogError(`${name} is a directory. Name its files, such as ${name}/access.log*.`);
  }
  if (stats.isFile()) return fileSource(name, stats.size);
  // A pipe, such as <(ssh …) of a shell, can be read only once.
  return streamSource(name, openFile(name));
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

/** Reads a file into one buffer again and again. A stream would leave each chunk to the garbage collector. */
async function* openFile(name: string): AsyncGenerator<Buffer> {
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
    async head(bytes) {
      const head = await readHead(decompressed(openFile(name)), bytes);
      return Buffer.concat(head.chunks);
    },
    chunks: (onRead) => decompressed(counted(openFile(name), onRead)),
    async close() {},
  };
}

/** A stream. What `head` reads is kept, because a stream can be read only once. */
function streamSource(name: string, stream: AsyncIterable<Buffer>): ByteSource {
  let onRead = (_bytes: number) => {};
  let readBytes = 0;
  const whole = decompressed(
    counted(stream, (bytes) => {
      readBytes += bytes;
      onRead(bytes);
    }),
  );
  let kept: Head = { chunks: [] };
  return {
    name,
    size: undefined,
    async head(bytes) {
      kept = await readHead(withoutReturn(whole), bytes);
      return Buffer.concat(kept.chunks);
    },
    async *chunks(onReadLater) {
      onReadLater(readBytes);
      onRead = onReadLater;
      try {
        yield* kept.chunks.splice(0);
        if (kept.error !== undefined) throw kept.error;
        yield* whole;
      } finally {
        await whole.return(undefined);
      }
    },
    async close() {
      await whole.return(undefined);
    },
  };
}

interface Head {
  readonly chunks: Buffer[];
  /** The error after these chunks. */
  readonly error?: unknown;
}

/**
 * Reads chunks until they have this many bytes, or until the end or an error.
 *
 * @throws an error before the first byte
 */
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
    return { chunks, error };
  }
  return { chunks };
}

/** The same chunks, without closing the source when the loop over them ends. */
function withoutReturn(source: AsyncGenerator<Buffer>): AsyncIterable<Buffer> {
  return { [Symbol.asyncIterator]: () => ({ next: () => source.next() }) };
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onRead(chunk.length);
    yield chunk;
  }
}
