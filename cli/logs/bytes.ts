import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { addAbortSignal, Readable, type Transform } from "node:stream";
import zlib from "node:zlib";
import { CommandFailure } from "../command-failure.ts";

/** The name of the standard input in messages. */
export const STANDARD_INPUT = "standard input";

/** The first bytes of a log. */
export interface Head {
  readonly bytes: Buffer;
  /** Whether the log has no more bytes. */
  readonly isWhole: boolean;
}

/** A file or a stream. */
interface Input {
  /** The name as the user has written it. */
  readonly name: string;
  /** Whether it can be read only once. */
  readonly isStream: boolean;
  /** Ends a wait for bytes. */
  readonly signal: AbortSignal | undefined;
  readonly open: () => Readable;
}

/**
 * The bytes of one log, decompressed. A file is closed between `head` and `chunks`, so that many files can wait for
 * their turn. The bytes that `head` reads from a stream are kept.
 */
export class ByteSource {
  readonly name: string;
  readonly #input: Input;
  #stream: Readable | undefined;
  /** The bytes that `head` has read from a stream, and the rest of the stream. */
  #kept: Buffer[] = [];
  #rest: AsyncGenerator<Buffer> | undefined;
  /** The error that followed the kept bytes. */
  #failure: unknown;

  constructor(input: Input) {
    this.name = input.name;
    this.#input = input;
  }

  /**
   * Reads the first bytes. `chunks` returns them again.
   *
   * @param bytes the number of bytes to read; after an abort, the result may have fewer
   * @throws the error, if reading fails before the first byte. `chunks` throws later errors
   */
  async head(bytes: number): Promise<Head> {
    const chunks = this.#open();
    const read: Buffer[] = [];
    let length = 0;
    let isWhole = false;
    try {
      while (length < bytes && !isWhole) {
        const { value, done } = await chunks.next();
        if (!done) read.push(value);
        length += value?.length ?? 0;
        isWhole = done === true;
      }
    } catch (error) {
      if (length === 0 && !this.#input.signal?.aborted) throw error;
      if (this.#input.isStream) this.#failure = error;
    }
    if (this.#input.isStream) [this.#kept, this.#rest] = [[...read], chunks];
    else await chunks.return(undefined);
    return { bytes: Buffer.concat(read), isWhole };
  }

  /** Reads all bytes from the start. Call it once, after `head`. */
  async *chunks(): AsyncGenerator<Buffer> {
    yield* this.#kept.splice(0);
    if (this.#failure !== undefined) throw this.#failure;
    yield* this.#rest ?? this.#open();
  }

  /** Closes a source that is not read to its end. */
  close(): void {
    this.#stream?.destroy();
  }

  #open(): AsyncGenerator<Buffer> {
    const { open, signal } = this.#input;
    const stream = open();
    if (signal) addAbortSignal(signal, stream);
    this.#stream = stream;
    return decompressed(stream);
  }
}

/**
 * @param name the path of a file; `-` is the standard input
 * @param signal ends a wait for bytes of a stream
 * @throws {CommandFailure} if there is no such file
 */
export async function openByteSource(
  name: string,
  signal: AbortSignal | undefined,
): Promise<ByteSource> {
  if (name === "-") {
    const open = () => process.stdin;
    return new ByteSource({ name: STANDARD_INPUT, isStream: true, signal, open });
  }
  const stats = await stat(name).catch((error: unknown) => {
    throw new CommandFailure(2, `${name} cannot be read: ${reasonOf(error)}`);
  });
  if (!stats.isFile()) {
    throw new CommandFailure(
      2,
      `${name} is a directory, a pipe or a device, and a log is read twice. Name files, or use the standard input: … | npx weir replay -.`,
    );
  }
  return new ByteSource({ name, isStream: false, signal, open: () => createReadStream(name) });
}

/** Returns why a file could not be read, such as `there is no such file.` */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file.";
  if (code === "EACCES" || code === "EPERM") return "this user may not read it.";
  if (code === "Z_BUF_ERROR") return "its compressed data ends too early.";
  return message.endsWith(".") ? message : `${message}.`;
}

/** The number of bytes that tell how a log is compressed. */
const MAGIC_BYTES = 4;

/** Decompresses gzip and zstd, which it recognises by the first bytes. Other bytes stay as they are. */
export async function* decompressed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const input = source[Symbol.asyncIterator]();
  try {
    let first: Buffer = Buffer.alloc(0);
    while (first.length < MAGIC_BYTES) {
      const { value, done } = await input.next();
      if (done) break;
      first = Buffer.concat([first, value]);
    }
    const all = joined(first, input);
    const decompressor = decompressorFor(first.toString("hex", 0, MAGIC_BYTES));
    yield* decompressor ? through(decompressor, all) : all;
  } finally {
    await input.return?.();
  }
}

async function* joined(first: Buffer, input: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first;
  yield* { [Symbol.asyncIterator]: () => input };
}

/**
 * With space for one byte, a decompressor goes on only after its last chunk has been read. So an error
 * loses at most the output of one piece of input, and a small input that becomes very large needs little memory.
 */
const ONE_BY_ONE = { highWaterMark: 1, chunkSize: 64 * 1024 };

/** @returns undefined if the bytes are not compressed */
function decompressorFor(start: string): Transform | undefined {
  if (start.startsWith("1f8b08")) return zlib.createGunzip(ONE_BY_ONE);
  if (start !== "28b52ffd" && !/^5.2a4d18$/.test(start)) return undefined;
  if (zlib.createZstdDecompress) return zlib.createZstdDecompress(ONE_BY_ONE);
  throw new CommandFailure(
    2,
    "it is zstd, which Node reads from version 22.15 on. Pipe it: zstdcat FILE | npx weir replay -.",
  );
}

const NOTHING = Buffer.alloc(0);

/** Passes bytes through a decompressor. It reads gzip files of several members, and one zstd frame. */
async function* through(
  decompressor: Transform & { readonly bytesWritten?: number },
  input: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let given = 0;
  const source = Readable.from(input, { objectMode: false, highWaterMark: 1 });
  source.on("data", ({ length }: Buffer) => {
    given += length;
  });
  source.on("error", (error) => decompressor.destroy(error));
  // Ends the decompressor after its last chunk is read, because data that ends too early is an error too.
  source.on("end", () => decompressor.write(NOTHING, () => decompressor.end()));
  // Without this listener, an error after the end of the compressed data would end the process.
  decompressor.on("error", () => {});
  source.pipe(decompressor, { end: false });
  try {
    yield* decompressor;
  } finally {
    source.destroy();
  }
  if (given > (decompressor.bytesWritten ?? given)) {
    throw new Error("other bytes follow its compressed data, which zcat or zstdcat may read");
  }
}
