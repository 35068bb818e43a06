import zlib from "node:zlib";
import { gzipMember } from "./gzip-member.ts";
import { LogError } from "./log-error.ts";
import { throughDecompressor } from "./through-decompressor.ts";
import { withBytes } from "./with-bytes.ts";
import { zstdInJavaScript } from "./zstd-in-javascript.ts";

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
