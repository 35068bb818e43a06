import { closeSync, constants, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { Socket } from "node:net";
import type { Transform } from "node:stream";
import { setTimeout } from "node:timers/promises";
import zlib from "node:zlib";
import { Decompress } from "fzstd";
import { beforeAbort, LogError } from "./log-request.ts";

/** The bytes of one log, decompressed. */
export interface ByteSource {
  /** The name as the user has written it. */
  readonly name: string;
  /** The size as stored, in bytes; undefined for a stream. */
  readonly size: number | undefined;
  /**
   * Reads the first bytes. `chunks` returns them again.
   *
   * @param bytes how many are enough; a stream that pauses after its first line returns fewer
   * @throws an error before the first byte
   */
  head(bytes: number): Promise<Head>;
  /**
   * Reads all bytes from the start. Call it once. A chunk is valid until the next one is read.
   *
   * @param onRead receives the number of stored bytes that were read
   */
  chunks(onRead: (bytes: number) => void): AsyncGenerator<Buffer>;
  /** Closes a source that is not read to its end. */
  close(): Promise<void>;
}

/** The first bytes of a log. */
export interface Head {
  readonly bytes: Buffer;
  /** Whether there are no more. */
  readonly isWhole: boolean;
}

/**
 * Adds bytes of the input until there are enough.
 *
 * @param start bytes that have been read already
 * @returns fewer bytes only if the input has ended
 */
async function withBytes(
  start: Buffer,
  length: number,
  input: AsyncIterator<Buffer>,
): Promise<Buffer> {
  if (start.length >= length) return start;
  // Reading overwrites the bytes before.
  let bytes = Buffer.from(start);
  while (bytes.length < length) {
    const { value, done } = await input.next();
    if (done) break;
    bytes = Buffer.concat([bytes, value]);
  }
  return bytes;
}

const AHEAD_CHUNK_BYTES = 256 * 1024;

/**
 * Reads a file into two buffers in turn: while the bytes in one are used, the next ones are read into the other. A
 * stream would leave each chunk to the garbage collector.
 */
async function* readAhead(name: string): AsyncGenerator<Buffer> {
  const file = await open(name);
  let reading: Promise<Buffer> | undefined;
  try {
    let buffer = Buffer.allocUnsafeSlow(AHEAD_CHUNK_BYTES);
    let other = Buffer.allocUnsafeSlow(AHEAD_CHUNK_BYTES);
    reading = readInto(file, buffer);
    for (;;) {
      const chunk = await reading;
      if (chunk.length === 0) return;
      [buffer, other] = [other, buffer];
      reading = readInto(file, buffer);
      // An error is thrown when the next bytes are needed.
      reading.catch(() => {});
      yield chunk;
    }
  } finally {
    await reading?.catch(() => {});
    await file.close();
  }
}

async function readInto(file: FileHandle, buffer: Buffer): Promise<Buffer> {
  const { bytesRead } = await file.read(buffer, 0, buffer.length);
  return buffer.subarray(0, bytesRead);
}

const PIPE_CHUNK_BYTES = 64 * 1024;

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
async function* readNamedPipe(
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
  const buffer = Buffer.alloc(PIPE_CHUNK_BYTES);
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

/** A decompressor of Node. */
type Decompressor = Transform & {
  /** The number of compressed bytes that were used. */
  readonly bytesWritten: number;
};

/**
 * Decompresses raw deflate data or one zstd frame. Writes the next bytes only when all decompressed ones have been read:
 * so a small input that becomes very large needs little memory, and an error in the input does not discard
 * what was decompressed before it, as a pipeline would.
 *
 * @param first the first bytes
 * @param input the bytes after them
 * @returns the bytes after the end of the compressed data that have been read already
 */
async function* throughDecompressor(
  decompressor: Decompressor,
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer, Buffer> {
  const state = observed(decompressor);
  let written = first;
  let writtenBefore = 0;
  state.write(first);
  try {
    for (;;) {
      const chunk = decompressor.read();
      // Bytes are left over only after the end of the compressed data.
      const used = decompressor.bytesWritten - writtenBefore;
      if (chunk !== null) yield chunk;
      else if (state.error) throw state.error;
      else if (state.isEnded) return written.subarray(used);
      else if (state.isWriting || state.isEnding) await state.change();
      else {
        if (used < written.length) return written.subarray(used);
        const { value, done } = await input.next();
        writtenBefore += written.length;
        written = done ? Buffer.alloc(0) : value;
        if (done) state.end();
        else state.write(value);
      }
    }
  } finally {
    decompressor.destroy();
  }
}

/** Follows what a decompressor does. */
function observed(decompressor: Decompressor) {
  let wake = () => {};
  let hasChanged = false;
  const onChange = () => {
    hasChanged = true;
    wake();
  };
  const state = {
    error: undefined as Error | undefined,
    isEnded: false,
    isWriting: false,
    isEnding: false,
    write(bytes: Buffer): void {
      state.isWriting = true;
      decompressor.write(bytes, () => {
        state.isWriting = false;
        onChange();
      });
    },
    end(): void {
      state.isEnding = true;
      decompressor.end();
    },
    /** Waits for the next change. */
    async change(): Promise<void> {
      if (!hasChanged) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      hasChanged = false;
    },
  };
  decompressor.on("readable", onChange);
  decompressor.on("end", () => {
    state.isEnded = true;
    onChange();
  });
  decompressor.on("error", (error) => {
    state.error = error;
    onChange();
  });
  return state;
}

const MEMBER_CHUNK_BYTES = 64 * 1024;

const DEFLATE = 8;
/** The bits of the header's flags. */
const HAS_CHECKSUM = 2;
const HAS_EXTRA = 4;
const HAS_NAME = 8;
const HAS_COMMENT = 16;

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
/** The maximum length of a name or a comment, in bytes. Real ones have less than 300. */
const MAX_TEXT_BYTES = 64 * 1024;

const ENDS_EARLY = "unexpected end of file";

/**
 * Decompresses one member of a gzip file (RFC 1952). Node's own reader of gzip would discard up to 64 KiB of
 * correct text before a wrong checksum, and before other bytes after the member.
 *
 * @param first the first bytes
 * @param input the bytes after them
 * @returns the bytes after the member that have been read already
 */
async function* gzipMember(
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer, Buffer> {
  const data = await afterHeader(first, input);
  const inflated = throughDecompressor(
    zlib.createInflateRaw({ chunkSize: MEMBER_CHUNK_BYTES }),
    data,
    input,
  );
  let checksum = 0;
  let length = 0;
  let rest: Buffer;
  try {
    for (;;) {
      const { value, done } = await inflated.next();
      if (done) {
        rest = value;
        break;
      }
      checksum = zlib.crc32(value, checksum);
      length = (length + value.length) % 2 ** 32;
      yield value;
    }
  } finally {
    await inflated.return(Buffer.alloc(0));
  }
  const trailer = await withBytes(rest, TRAILER_BYTES, input);
  if (trailer.length < TRAILER_BYTES) throw new Error(ENDS_EARLY);
  if (trailer.readUInt32LE() !== checksum || trailer.readUInt32LE(4) !== length) {
    throw new Error("its checksum is wrong, so some of it may be damaged");
  }
  return trailer.subarray(TRAILER_BYTES);
}

/** Returns the bytes after the header. */
async function afterHeader(first: Buffer, input: AsyncIterator<Buffer>): Promise<Buffer> {
  let bytes = await withBytes(first, HEADER_BYTES, input);
  const skip = async (length: number) => {
    bytes = await withBytes(bytes, length, input);
    if (bytes.length < length) throw new Error(ENDS_EARLY);
    bytes = bytes.subarray(length);
  };
  const [, , method = 0, flags = 0] = bytes;
  await skip(HEADER_BYTES);
  if (method !== DEFLATE) throw new Error("it is a gzip file with an unknown method");
  if (flags & HAS_EXTRA) {
    bytes = await withBytes(bytes, 2, input);
    await skip(2 + (bytes.length < 2 ? 0 : bytes.readUInt16LE()));
  }
  for (const flag of [HAS_NAME, HAS_COMMENT]) {
    if (!(flags & flag)) continue;
    for (let length = 1; !bytes.includes(0); length = bytes.length + 1) {
      if (length > MAX_TEXT_BYTES) throw new Error("it has no end of its name or comment");
      const before = bytes.length;
      bytes = await withBytes(bytes, before + 1, input);
      if (bytes.length === before) throw new Error(ENDS_EARLY);
    }
    await skip(bytes.indexOf(0) + 1);
  }
  if (flags & HAS_CHECKSUM) await skip(2);
  return bytes;
}

/**
 * How many bytes are decompressed at once. They become at most 32 MiB, because the smallest block has 4 bytes and
 * contains up to 128 KiB.
 */
const SLICE_BYTES = 1024;

/**
 * Decompresses the frames of a zstd file, for versions of Node that cannot.
 *
 * @param first the first bytes, at least 4
 * @param input the bytes after them
 */
async function* zstdInJavaScript(
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  const ready: Buffer[] = [];
  const decompressor = new Decompress((chunk) => {
    // The decompressor may use the memory again.
    ready.push(Buffer.from(chunk));
  });
  refuseLargeWindow(first);
  let chunk: Buffer | undefined = first;
  while (chunk !== undefined) {
    for (let from = 0; from < chunk.length; from += SLICE_BYTES) {
      // The decompressor keeps the slice.
      const slice = Buffer.from(chunk.subarray(from, from + SLICE_BYTES));
      yield* outputOf(() => decompressor.push(slice), ready);
    }
    const { value, done }: IteratorResult<Buffer> = await input.next();
    chunk = done ? undefined : value;
  }
  yield* outputOf(() => decompressor.push(new Uint8Array(0), true), ready);
}

/** Yields what an action adds to a list, also if it fails in the end. */
function* outputOf(act: () => void, ready: Buffer[]): Generator<Buffer> {
  let failure: unknown;
  try {
    act();
  } catch (error) {
    failure = error;
  }
  yield* ready.splice(0);
  if (failure !== undefined) throw failure;
}

const MAGIC = 0xfd2fb528;
/** The window of the frame has the size of its content, which is small. */
const SINGLE_SEGMENT = 0x20;
/** The exponent of 128 MiB, in the form of a frame's header: 2¹⁷ KiB. Node has the same maximum. */
const MAX_WINDOW_EXPONENT = 17;

/** The decompressor allocates up to 2 GiB as soon as the header of a frame demands it. */
function refuseLargeWindow(start: Buffer): void {
  if (start.length < 6 || start.readUInt32LE() !== MAGIC) return;
  const hasWindow = ((start[4] ?? 0) & SINGLE_SEGMENT) === 0;
  if (!hasWindow || (start[5] ?? 0) >> 3 <= MAX_WINDOW_EXPONENT) return;
  throw new Error("a zstd frame needs more than 128 MiB of memory");
}

/** The bytes by which all forms of compression are recognised. */
const MAGIC_BYTES = 4;

type Compression = "gzip" | "zstd";

/** Other forms, by their first bytes, with the program that decompresses them. */
const OTHERS = [
  ["425a68", "bzip2", "bzcat"],
  ["fd377a58", "xz", "xzcat"],
  ["504b0304", "zip", "unzip -p"],
  ["04224d18", "lz4", "lz4cat"],
  ["fffe", "UTF-16", "iconv -f UTF-16"],
  ["feff", "UTF-16", "iconv -f UTF-16"],
] as const;

/**
 * Decompresses gzip and zstd, which it recognises by the first bytes. There may be several gzip members or zstd
 * frames. Other bytes stay as they are.
 *
 * @param isNative whether to use Node's own decompressor of zstd, which Node 20 does not have
 * @throws {LogError} if the bytes are compressed in another way
 */
export async function* decompressed(
  source: AsyncIterable<Buffer>,
  isNative = typeof zlib.createZstdDecompress === "function",
): AsyncGenerator<Buffer> {
  const input = source[Symbol.asyncIterator]();
  try {
    let first: Buffer | undefined = await withBytes(Buffer.alloc(0), MAGIC_BYTES, input);
    const compression = compressionOf(first);
    if (compression === undefined) {
      refuseOthers(first);
      yield first;
      yield* { [Symbol.asyncIterator]: () => input };
    } else if (compression === "zstd" && !isNative) {
      yield* zstdInJavaScript(first, input);
    } else {
      while (first !== undefined) {
        const rest: Buffer =
          compression === "gzip"
            ? yield* gzipMember(first, input)
            : yield* throughDecompressor(zlib.createZstdDecompress(), first, input);
        first = await nextPart(rest, compression, input);
      }
    }
  } finally {
    await input.return?.();
  }
}

/**
 * Returns the start of the next member or frame; undefined after the last one. There may be zeros after a
 * gzip member: tapes had them.
 */
async function nextPart(
  rest: Buffer,
  compression: Compression,
  input: AsyncIterator<Buffer>,
): Promise<Buffer | undefined> {
  let bytes = rest;
  for (;;) {
    const start = bytes.findIndex((byte) => byte !== 0);
    const content = start === -1 ? Buffer.alloc(0) : bytes.subarray(start);
    bytes = await withBytes(content, MAGIC_BYTES, input);
    if (bytes.length === 0) return undefined;
    if (bytes[0] === 0) continue;
    if (compressionOf(bytes) === compression) return bytes;
    throw new Error("other bytes follow the compressed data");
  }
}

function compressionOf(bytes: Buffer): Compression | undefined {
  if (bytes.length < MAGIC_BYTES) return undefined;
  const magic = bytes.readUInt32LE();
  if ((magic & 0xffffff) === 0x088b1f) return "gzip";
  // A frame, or one of the 16 kinds of frames that are to be skipped.
  return magic === 0xfd2fb528 || magic >>> 4 === 0x0184d2a5 ? "zstd" : undefined;
}

function refuseOthers(bytes: Buffer): void {
  const start = bytes.toString("hex", 0, MAGIC_BYTES);
  const [, name, program] = OTHERS.find(([magic]) => start.startsWith(magic)) ?? [];
  if (name === undefined) return;
  throw new LogError(
    `it is ${name}. Allowed are UTF-8, plain or compressed with gzip or zstd. ${program} converts it.`,
  );
}

/**
 * How long the first bytes are awaited after the first line, in milliseconds: `tail -f` writes a few lines, and may
 * then write nothing for hours.
 */
const PAUSE_MS = 1000;

const NEWLINE = 10;

/**
 * A stream. What `head` reads is kept, because a stream can be read only once.
 *
 * @param signal ends `head`, although the next bytes have not come
 */
export function streamSource(
  name: string,
  stream: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): ByteSource {
  let onRead = (_bytes: number) => {};
  let readBytes = 0;
  const whole = decompressed(
    counted(stream, (bytes) => {
      readBytes += bytes;
      onRead(bytes);
    }),
  );
  const kept: Buffer[] = [];
  /** The next chunk, while it is awaited. */
  let next: Promise<IteratorResult<Buffer>> | undefined;
  const close = async () => {
    const closed = whole.return(undefined);
    // The stream closes only after its next bytes, which may never come.
    if (next === undefined) await closed;
    else closed.catch(() => {});
  };
  return {
    name,
    size: undefined,
    async head(bytes): Promise<Head> {
      let length = 0;
      let timeoutMs: number | undefined;
      while (length < bytes) {
        next = whole.next();
        // An error after the first bytes is for the reader of `chunks`.
        next.catch(() => {});
        const result = await beforeAbort(next, { signal, timeoutMs }).catch((error) => {
          if (length === 0) throw error;
        });
        if (result === undefined) break;
        if (result.done) return { bytes: Buffer.concat(kept), isWhole: true };
        // The source overwrites the chunk.
        kept.push(Buffer.from(result.value));
        length += result.value.length;
        if (result.value.includes(NEWLINE)) timeoutMs = PAUSE_MS;
        next = undefined;
      }
      return { bytes: Buffer.concat(kept), isWhole: false };
    },
    async *chunks(onReadLater) {
      onReadLater(readBytes);
      onRead = onReadLater;
      try {
        yield* kept.splice(0);
        for (;;) {
          next ??= whole.next();
          const result = await next;
          next = undefined;
          if (result.done) return;
          yield result.value;
        }
      } finally {
        await close();
      }
    },
    close,
  };
}

/** Passes on chunks, and calls a function with the length of each. */
async function* counted(
  source: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onRead(chunk.length);
    yield chunk;
  }
}

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
